{{/*
The Collector's configuration as text: alternateConfig as it is, or what the chart makes of
the values, with config laid over it.
*/}}
{{- define "otelcol-fpm.config" -}}
{{- if .Values.alternateConfig -}}
{{- toYaml .Values.alternateConfig -}}
{{- else -}}
{{- $config := include "otelcol-fpm.generatedConfig" . | fromYaml -}}
{{- with get $config "Error" }}{{ fail . }}{{ end -}}
{{- include "otelcol-fpm.merge" (dict "into" $config "from" .Values.config) -}}
{{- toYaml $config -}}
{{- end -}}
{{- end -}}

{{/*
Merges maps in place. (mergeOverwrite of the template language does not let false, 0 or an
empty list win.) null takes away a key that is there, and stays where none is: there it means
"with all defaults", as in any Collector configuration.
*/}}
{{- define "otelcol-fpm.merge" -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- $old := get $into $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $old) -}}
{{- include "otelcol-fpm.merge" (dict "into" $old "from" $value) -}}
{{- else if and (kindIs "invalid" $value) (hasKey $into $key) -}}
{{- $_ := unset $into $key -}}
{{- else -}}
{{- $_ := set $into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "otelcol-fpm.generatedConfig" -}}
{{- $metricsTo := list -}}
{{- $logsTo := list -}}
{{- if .Values.prometheus.enabled }}{{ $metricsTo = append $metricsTo "prometheus" }}{{ end -}}
{{- if .Values.traces.enabled }}{{ $logsTo = append $logsTo "fpm_trace" }}{{ end -}}
{{- if .Values.otlp.exporter.enabled -}}
{{- if has "metrics" .Values.otlp.exporter.signals }}{{ $metricsTo = append $metricsTo "otlp_grpc" }}{{ end -}}
{{- if has "logs" .Values.otlp.exporter.signals }}{{ $logsTo = append $logsTo "otlp_grpc" }}{{ end -}}
{{- end -}}
{{- $memory := include "otelcol-fpm.memoryMiB" . | int64 -}}
{{- /* A page shows the last value of a gauge only: one a second is enough. */ -}}
{{- $pageOnly := and .Values.prometheus.enabled (not .Values.otlp.exporter.enabled) -}}
{{- $page := dict -}}
{{- if $pageOnly }}{{ $_ := set $page "gauge_interval" "1s" }}{{ end -}}
{{- $passes := list -}}
{{- $metricsFrom := list -}}
receivers:
  {{- if eq .Values.mode "daemonset" }}
  {{- $passes = append $passes "receiver_creator" }}
  receiver_creator:
    watch_observers: [k8s_observer]
    receivers:
      fpm:
        rule: {{ toJson .Values.discovery.rule }}
        config:
          {{- toYaml (merge (deepCopy (.Values.discovery.config | default dict)) $page) | nindent 10 }}
        {{- with .Values.discovery.resourceAttributes }}
        resource_attributes:
          {{- toYaml . | nindent 10 }}
        {{- end }}
  {{- end }}
  {{- if .Values.engines.endpoints }}
  {{- $passes = append $passes "fpm" }}
  fpm:
    endpoints:
      {{- toYaml .Values.engines.endpoints | nindent 6 }}
    {{- with merge (deepCopy (.Values.engines.config | default dict)) $page }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- if .Values.otlp.receiver.enabled }}
  {{- $passes = append $passes "otlp" }}
  otlp:
    protocols:
      grpc: {endpoint: "[${env:MY_POD_IP}]:4317"}
      http: {endpoint: "[${env:MY_POD_IP}]:4318"}
  {{- end }}
  {{- $metricsFrom = $passes }}
  {{- if .Values.metricEvent.enabled }}
  {{- $metricsFrom = append $passes "metric_event" }}
  metric_event:
    endpoint: "tcp://[${env:MY_POD_IP}]:20280"
    {{- with .Values.metricEvent.config }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
processors:
  memory_limiter:
    check_interval: 1s
    limit_mib: {{ div (mul $memory 75) 100 }}
    spike_limit_mib: {{ div (mul $memory 15) 100 }}
  {{- $dedup := dict }}
  {{- if $pageOnly }}
  {{- /* Of the changes within one batch and second the last one: what comes by OTLP or from TokenSpeed may have more. */ -}}
  {{- $_ := set $dedup "resolution" "1s" }}
  {{- end }}
  {{- if .Values.metricEvent.enabled }}
  {{- /* TokenSpeed filters its gauges too, once a second give or take some milliseconds. */ -}}
  {{- $_ := set $dedup "tolerance" "100ms" }}
  {{- end }}
  gauge_dedup: {{ toJson $dedup }}
exporters:
  {{- if .Values.prometheus.enabled }}
  prometheus:
    endpoint: "[${env:MY_POD_IP}]:9464"
    {{- with .Values.prometheus.config }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- if .Values.traces.enabled }}
  fpm_trace:
    path: /var/lib/otelcol-fpm/traces/{{ include "otelcol-fpm.ownFolder" . }}/dynamo-fpm
    {{- toYaml .Values.traces.config | nindent 4 }}
  {{- end }}
  {{- if .Values.otlp.exporter.enabled }}
  {{- /* One consumer: several would send batches out of order. */ -}}
  {{- $otlp := dict "sending_queue" (dict "num_consumers" 1) -}}
  {{- if include "otelcol-fpm.diskQueue" . -}}
  {{- $queue := dict "num_consumers" 1 "storage" "file_storage" "sizer" "bytes" "queue_size" (int64 .Values.otlp.exporter.diskQueue.bytes) -}}
  {{- $otlp = dict "sending_queue" $queue "retry_on_failure" (dict "max_elapsed_time" "0s") -}}
  {{- end -}}
  {{- include "otelcol-fpm.merge" (dict "into" $otlp "from" .Values.otlp.exporter.config) }}
  otlp_grpc:
    {{- toYaml $otlp | nindent 4 }}
  {{- end }}
extensions:
  health_check:
    http:
      endpoint: "[${env:MY_POD_IP}]:13133"
      status: {enabled: true, path: /status}
  {{- if eq .Values.mode "daemonset" }}
  k8s_observer:
    auth_type: serviceAccount
    node: ${env:K8S_NODE_NAME}
    observe_pods: true
    {{- with .Values.discovery.namespaces }}
    namespaces: {{ toJson . }}
    {{- end }}
  {{- end }}
  {{- if include "otelcol-fpm.diskQueue" . }}
  file_storage:
    directory: /var/lib/otelcol-fpm/queue/{{ include "otelcol-fpm.ownFolder" . }}
    create_directory: true
  {{- end }}
service:
  extensions:
    - health_check
    {{- if eq .Values.mode "daemonset" }}
    - k8s_observer
    {{- end }}
    {{- if include "otelcol-fpm.diskQueue" . }}
    - file_storage
    {{- end }}
  telemetry:
    metrics:
      readers:
        - pull:
            exporter:
              prometheus:
                host: ${env:MY_POD_IP}
                port: 8888
                # Names as without this block.
                without_scope_info: true
                without_type_suffix: true
                without_units: true
  pipelines:
    {{- if $metricsTo }}
    metrics:
      receivers: {{ toJson $metricsFrom }}
      processors: [memory_limiter, gauge_dedup]
      exporters: {{ toJson $metricsTo }}
    {{- end }}
    {{- if and $logsTo $passes }}
    logs:
      receivers: {{ toJson $passes }}
      processors: [memory_limiter]
      exporters: {{ toJson $logsTo }}
    {{- end }}
{{- end -}}
