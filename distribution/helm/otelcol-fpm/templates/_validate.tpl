{{/*
What the schema cannot say: values that contradict each other. All of them at once, each with
its key, what it is, and what is allowed.
*/}}
{{- define "otelcol-fpm.validate" -}}
{{- $problems := include "otelcol-fpm.problems" . | trim -}}
{{- if $problems -}}
{{- fail (printf "\n\n%s\n" $problems) -}}
{{- end -}}
{{- end -}}

{{- define "otelcol-fpm.problems" -}}
{{- $v := .Values -}}
{{- $daemonset := eq $v.mode "daemonset" -}}
{{- $volume := include "otelcol-fpm.dataVolumeType" . -}}
{{- if and $daemonset $v.engines.endpoints }}
engines.endpoints: not allowed in mode daemonset, where each node would subscribe to every engine and each pass be counted many times; discovery finds the engines of a node
{{- end }}
{{- $passes := or $daemonset $v.engines.endpoints $v.otlp.receiver.enabled $v.alternateConfig $v.config.receivers }}
{{- if not (or $passes $v.metricEvent.enabled) }}
engines.endpoints: nothing comes in; name engines here, or set otlp.receiver.enabled or metricEvent.enabled, or use mode daemonset
{{- end }}
{{- if and $v.metricEvent.enabled $v.traces.enabled (not $passes) }}
traces.enabled: nothing to write; metric events are no forward passes
{{- end }}
{{- if and (not $daemonset) $v.engines.endpoints (gt (int $v.replicaCount) 1) }}
replicaCount: {{ $v.replicaCount }} is not allowed with engines.endpoints, must be 1: each replica would count every pass
{{- end }}
{{- if and (not $v.alternateConfig) (not $v.prometheus.enabled) (not $v.otlp.exporter.enabled) (not $v.traces.enabled) }}
prometheus.enabled: nothing goes out; enable prometheus, otlp.exporter or traces
{{- end }}
{{- if and $v.otlp.exporter.enabled (not $v.alternateConfig) (not $v.otlp.exporter.config.endpoint) }}
otlp.exporter.config.endpoint: missing; the address of the gateway, like gateway.example.com:4317
{{- end }}
{{- if and $daemonset (not $v.alternateConfig) (hasPrefix "type == \"pod\"" $v.discovery.rule) (not $v.discovery.config.endpoint) }}
discovery.config.endpoint: missing; a rule that finds pods says nothing of their port: "[`endpoint`]:20380"
{{- end }}
{{- if and $v.alternateConfig $v.config }}
config: not allowed beside alternateConfig, which is used as it is
{{- end }}
{{- if and $v.alternateConfig (not (has "health_check" (dig "service" "extensions" list $v.alternateConfig))) }}
alternateConfig.service.extensions: health_check is missing, without which the probes fail
{{- end }}
{{- if and $daemonset (not $v.serviceAccount.create) (not $v.serviceAccount.name) }}
serviceAccount.name: missing; with serviceAccount.create false it names the account that may read pods
{{- end }}
{{- if and $daemonset (ne (toString (dig "rollingUpdate" "maxSurge" 0 $v.updateStrategy)) "0") }}
updateStrategy.rollingUpdate.maxSurge: {{ $v.updateStrategy.rollingUpdate.maxSurge }} is not allowed in mode daemonset, must be 0: two pods of a node would count every pass twice
{{- end }}
{{- if $v.podDisruptionBudget.enabled }}
{{- $min := $v.podDisruptionBudget.minAvailable }}
{{- $max := $v.podDisruptionBudget.maxUnavailable }}
{{- if $daemonset }}
podDisruptionBudget.enabled: not allowed in mode daemonset, whose pods no drain evicts
{{- end }}
{{- if eq (kindIs "invalid" $min) (kindIs "invalid" $max) }}
podDisruptionBudget.minAvailable: exactly one of minAvailable and maxUnavailable must be set, the other null
{{- end }}
{{- if and (not (kindIs "invalid" $min)) (not (kindIs "string" $min)) (ge (int $min) (int $v.replicaCount)) }}
podDisruptionBudget.minAvailable: {{ $min }} is not allowed with replicaCount {{ $v.replicaCount }}, must be less: no node could be drained
{{- end }}
{{- end }}
{{- if lt (include "otelcol-fpm.memoryMiB" . | int) 256 }}
resources.limits.memory: {{ $v.resources.limits.memory }} is not allowed, must be at least 256Mi
{{- end }}
{{- if include "otelcol-fpm.needsDataVolume" . }}
{{- if and (eq $volume "hostPath") (not $daemonset) }}
dataVolume.type: hostPath is not allowed in mode {{ $v.mode }}, whose pods move from node to node; must be emptyDir or persistentVolumeClaim
{{- end }}
{{- if and (eq $volume "persistentVolumeClaim") (ne $v.mode "statefulset") (not $v.dataVolume.persistentVolumeClaim.existingClaim) }}
dataVolume.persistentVolumeClaim.existingClaim: missing; mode {{ $v.mode }} makes no claim, mode statefulset does
{{- end }}
{{- if and (eq $volume "persistentVolumeClaim") (eq $v.mode "statefulset") $v.dataVolume.persistentVolumeClaim.existingClaim }}
dataVolume.persistentVolumeClaim.existingClaim: not allowed in mode statefulset, which makes one claim for each pod
{{- end }}
{{- $size := "" }}
{{- if eq $volume "emptyDir" }}{{ $size = $v.dataVolume.emptyDir.sizeLimit }}{{ end }}
{{- if and (eq $volume "persistentVolumeClaim") (eq $v.mode "statefulset") }}{{ $size = $v.dataVolume.persistentVolumeClaim.size }}{{ end }}
{{- $wanted := 0 }}
{{- if $v.traces.enabled }}{{ $wanted = add $wanted (int64 $v.traces.config.max_total_bytes) }}{{ end }}
{{- if include "otelcol-fpm.diskQueue" . }}{{ $wanted = add $wanted (mul 2 (int64 $v.otlp.exporter.diskQueue.bytes)) }}{{ end }}
{{- if and $size (gt (mul $wanted 10) (mul 9 (include "otelcol-fpm.bytes" $size | int64))) }}
dataVolume: {{ $size }} is too small for {{ $wanted }} bytes (traces.config.max_total_bytes and twice otlp.exporter.diskQueue.bytes), which must be at most 90 % of it
{{- end }}
{{- end }}
{{- end -}}
