// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kubernetesAPI stands in for an API server, of which there is none where tests
// run: it lists and watches the pods of one node, and knows nothing else.
type kubernetesAPI struct {
	node    string
	address string

	mu      sync.Mutex
	version int
	pods    map[string]*corev1.Pod
	watches map[chan metav1.WatchEvent]bool
	refused []string
}

func startKubernetesAPI(t *testing.T, node string) *kubernetesAPI {
	t.Helper()
	api := &kubernetesAPI{node: node, pods: map[string]*corev1.Pod{}, watches: map[chan metav1.WatchEvent]bool{}}
	server := httptest.NewServer(api)
	api.address = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return api
}

// kubeconfig writes a kubeconfig that names the server.
func (api *kubernetesAPI) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {token: test}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`, api.address)), 0o600))
	return path
}

func (api *kubernetesAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != "/api/v1/pods" || query.Get("fieldSelector") != "spec.nodeName="+api.node {
		api.mu.Lock()
		api.refused = append(api.refused, r.Method+" "+r.URL.String())
		api.mu.Unlock()
		http.Error(w, "not allowed", http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if query.Get("watch") == "" {
		_ = json.NewEncoder(w).Encode(api.list())
		return
	}
	api.watch(w, r, query.Get("sendInitialEvents") == "true")
}

func (api *kubernetesAPI) list() *corev1.PodList {
	api.mu.Lock()
	defer api.mu.Unlock()
	list := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(api.version)},
	}
	for _, pod := range api.pods {
		list.Items = append(list.Items, *pod)
	}
	return list
}

// watch streams events, and before them the pods that are there when it is
// asked to.
func (api *kubernetesAPI) watch(w http.ResponseWriter, r *http.Request, initial bool) {
	events := make(chan metav1.WatchEvent, 100)
	api.mu.Lock()
	if initial {
		for _, pod := range api.pods {
			events <- event("ADDED", pod)
		}
		events <- event("BOOKMARK", &corev1.Pod{
			TypeMeta: podType,
			ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: strconv.Itoa(api.version),
				Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			},
		})
	}
	api.watches[events] = true
	api.mu.Unlock()
	defer func() {
		api.mu.Lock()
		delete(api.watches, events)
		api.mu.Unlock()
	}()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-events:
			if json.NewEncoder(w).Encode(e) != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

var podType = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}

func event(kind string, pod *corev1.Pod) metav1.WatchEvent {
	raw, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	e := metav1.WatchEvent{Type: kind}
	e.Object.Raw = raw
	return e
}

// add runs a pod with an address and named ports.
func (api *kubernetesAPI) add(name, address string, ports map[string]int) {
	pod := &corev1.Pod{
		TypeMeta:   podType,
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "inference", UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: api.node, Containers: []corev1.Container{{Name: "engine"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address,
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "engine", Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
	for port, number := range ports {
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports,
			corev1.ContainerPort{Name: port, ContainerPort: int32(number), Protocol: corev1.ProtocolTCP})
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	api.pods[name] = pod
	api.tell("ADDED", pod)
}

func (api *kubernetesAPI) remove(name string) {
	api.mu.Lock()
	defer api.mu.Unlock()
	pod := api.pods[name]
	delete(api.pods, name)
	api.tell("DELETED", pod)
}

func (api *kubernetesAPI) tell(kind string, pod *corev1.Pod) {
	api.version++
	pod.ResourceVersion = strconv.Itoa(api.version)
	for events := range api.watches {
		events <- event(kind, pod)
	}
}
