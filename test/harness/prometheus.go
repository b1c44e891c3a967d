// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Prometheus is a running Prometheus server.
type Prometheus struct {
	*Process
	Address string
}

// Tool finds a program that is no part of the project. Where there is none the
// test is skipped, in continuous integration (CI=true) it fails.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		say := tb.Skipf
		if os.Getenv("CI") == "true" {
			say = tb.Fatalf
		}
		say("%s is not installed (Debian has it in the package prometheus): %v", name, err)
	}
	return path
}

// StartPrometheus starts a server with a configuration in YAML and more flags,
// and waits until it answers.
func StartPrometheus(tb testing.TB, config string, flags ...string) *Prometheus {
	tb.Helper()
	program := Tool(tb, "prometheus")
	dir := tb.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	p := &Prometheus{Address: Address(tb)}
	p.Process = start(tb, "Prometheus", dir, nil, program, append([]string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + p.Address, "--log.level=warn",
	}, flags...)...)
	Wait(tb, "Prometheus does not answer", func() bool {
		if p.Ended() {
			tb.Fatalf("Prometheus did not start: %v", p.err)
		}
		response, err := http.Get("http://" + p.Address + "/-/ready")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

// Sample is a value at a time, in seconds since 1970.
type Sample struct {
	At, Value float64
}

// Result is a series that a query found, with its samples: one for a vector,
// all for a range.
type Result struct {
	Labels  map[string]string
	Samples []Sample
}

// Query runs a query now. A query that is not understood fails the test.
func (p *Prometheus) Query(tb testing.TB, query string) []Result {
	tb.Helper()
	var answer struct {
		Result json.RawMessage `json:"result"`
		Type   string          `json:"resultType"`
	}
	p.get(tb, "/api/v1/query", url.Values{"query": {query}}, &answer)
	if answer.Type == "scalar" {
		var one [2]any
		if err := json.Unmarshal(answer.Result, &one); err != nil {
			tb.Fatalf("%s: %v", query, err)
		}
		return []Result{{Samples: []Sample{sample(tb, one)}}}
	}
	var series []struct {
		Metric map[string]string `json:"metric"`
		Value  *[2]any           `json:"value"`
		Values [][2]any          `json:"values"`
	}
	if err := json.Unmarshal(answer.Result, &series); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	results := make([]Result, 0, len(series))
	for _, s := range series {
		if s.Value != nil {
			s.Values = append(s.Values, *s.Value)
		}
		result := Result{Labels: s.Metric}
		for _, v := range s.Values {
			result.Samples = append(result.Samples, sample(tb, v))
		}
		results = append(results, result)
	}
	return results
}

func sample(tb testing.TB, pair [2]any) Sample {
	tb.Helper()
	at, _ := pair[0].(float64)
	text, _ := pair[1].(string)
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		tb.Fatalf("no sample: %v", pair)
	}
	return Sample{At: at, Value: value}
}

// LabelValues are the values of a label in all series that match a selector.
func (p *Prometheus) LabelValues(tb testing.TB, label, selector string) (values []string) {
	tb.Helper()
	p.get(tb, "/api/v1/label/"+url.PathEscape(label)+"/values", url.Values{"match[]": {selector}}, &values)
	return values
}

func (p *Prometheus) get(tb testing.TB, path string, parameters url.Values, into any) {
	tb.Helper()
	client := http.Client{Timeout: 20 * time.Second}
	response, err := client.Get(fmt.Sprintf("http://%s%s?%s", p.Address, path, parameters.Encode()))
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	var envelope struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&envelope); err != nil {
		tb.Fatalf("%s %v: %v", path, parameters, err)
	}
	if envelope.Status != "success" {
		tb.Fatalf("%s %v: %s", path, parameters, envelope.Error)
	}
	if err := json.Unmarshal(envelope.Data, into); err != nil {
		tb.Fatalf("%s %v: %v", path, parameters, err)
	}
}
