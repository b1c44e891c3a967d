// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-fpm/otelcol-fpm/test/chart/container"
)

const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/"

// apiServer answers list and watch of pods as an API server does that knows the
// roles of a rendering. It stands in for a cluster, which no test has.
type apiServer struct {
	server *httptest.Server
	roles  []role

	mu        sync.Mutex
	pods      []corev1.Pod
	forbidden []string
	asked     []string
}

func newAPIServer(t *testing.T, o objects) *apiServer {
	t.Helper()
	a := &apiServer{roles: o.roles}
	a.server = httptest.NewTLSServer(a)
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
	})
	return a
}

// give lets a pod find the server: the variables and the token that a kubelet gives.
func (a *apiServer) give(s *container.Spec) {
	host, port, _ := net.SplitHostPort(a.server.Listener.Addr().String())
	s.Environment = append(s.Environment, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	s.Files[accountFolder+"token"] = "token-of-" + podName
	s.Files[accountFolder+"namespace"] = namespace
	s.Files[accountFolder+"ca.crt"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw}))
}

// add adds a pod; only before a Collector asks.
func (a *apiServer) add(pod corev1.Pod) { a.pods = append(a.pods, pod) }

// enginePod is a running pod of the node with one named port.
func enginePod(name, namespace, address, port string) corev1.Pod {
	return corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID("uid-" + name), ResourceVersion: "5", Labels: map[string]string{"role": "decode"}},
		Spec: corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{
			Name: "engine", Image: "engine", Ports: []corev1.ContainerPort{{Name: port, ContainerPort: 20380, Protocol: corev1.ProtocolTCP}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "engine", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}},
	}
}

// allowed asks the rendered roles, as an API server does.
func (a *apiServer) allowed(namespace, resource, verb string) bool {
	for _, r := range a.roles {
		if r.namespace != "" && r.namespace != namespace {
			continue
		}
		for _, rule := range r.rules {
			if slices.Contains(rule.APIGroups, "") && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb) {
				return true
			}
		}
	}
	return false
}

// ServeHTTP knows /api/v1/pods and /api/v1/namespaces/<namespace>/pods.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	of := ""
	if len(path) == 3 && path[0] == "namespaces" {
		of, path = path[1], path[2:]
	}
	query := r.URL.Query()
	verb := "list"
	if query.Get("watch") != "" {
		verb = "watch"
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer token-of-"+podName || len(path) != 1 || !a.allowed(of, path[0], verb) {
		a.note(&a.forbidden, verb+" "+r.URL.String())
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
		})
		return
	}
	a.note(&a.asked, of)
	var pods []corev1.Pod
	for _, pod := range a.pods {
		if (of == "" || of == pod.Namespace) && query.Get("fieldSelector") == "spec.nodeName="+pod.Spec.NodeName {
			pods = append(pods, pod)
		}
	}
	if verb == "list" {
		_ = json.NewEncoder(w).Encode(corev1.PodList{
			TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: pods,
		})
		return
	}
	if query.Get("sendInitialEvents") == "true" {
		for _, pod := range pods {
			event(w, "ADDED", pod)
		}
		event(w, "BOOKMARK", corev1.Pod{
			TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
		})
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func event(w http.ResponseWriter, kind string, pod corev1.Pod) {
	_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": pod})
}

func (a *apiServer) note(list *[]string, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// denied are the requests that the roles do not allow.
func (a *apiServer) denied() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.forbidden)
}

// namespaces are those that were asked for and allowed.
func (a *apiServer) namespaces() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

func (a *apiServer) waitDenied(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(a.denied()) > 0 }, time.Minute, 50*time.Millisecond)
}
