{{- define "otelcol-fpm.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 52 characters: a StatefulSet's pods carry its name and a hash in a label of 63. */}}
{{- define "otelcol-fpm.fullname" -}}
{{- $name := include "otelcol-fpm.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "otelcol-fpm.selectorLabels" -}}
app.kubernetes.io/name: {{ include "otelcol-fpm.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "otelcol-fpm.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "otelcol-fpm.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .Values.mode }}
app.kubernetes.io/part-of: otelcol-fpm
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "otelcol-fpm.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "otelcol-fpm.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "otelcol-fpm.fullname" .) -}}
{{- end -}}

{{/* The observer asks the API server; nothing else here does. */}}
{{- define "otelcol-fpm.needsToken" -}}
{{- if eq .Values.mode "daemonset" }}true{{ end -}}
{{- end -}}

{{/* Bytes of a quantity like 512Mi, which the schema has checked. */}}
{{- define "otelcol-fpm.bytes" -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- mul (regexFind "^[0-9]+" (toString .) | int64) (get $units (regexFind "[A-Za-z]*$" (toString .))) -}}
{{- end -}}

{{/* What the container may use, in MiB; GOMEMLIMIT and memory_limiter follow from it. */}}
{{- define "otelcol-fpm.memoryMiB" -}}
{{- div (include "otelcol-fpm.bytes" .Values.resources.limits.memory | int64) 1048576 -}}
{{- end -}}

{{- define "otelcol-fpm.diskQueue" -}}
{{- if and .Values.otlp.exporter.enabled .Values.otlp.exporter.diskQueue.enabled }}true{{ end -}}
{{- end -}}

{{- define "otelcol-fpm.needsDataVolume" -}}
{{- if or .Values.dataVolume.enabled .Values.traces.enabled (include "otelcol-fpm.diskQueue" .) }}true{{ end -}}
{{- end -}}

{{- define "otelcol-fpm.dataVolumeType" -}}
{{- .Values.dataVolume.type | default (ternary "persistentVolumeClaim" "emptyDir" (eq .Values.mode "statefulset")) -}}
{{- end -}}

{{/*
The folder of the data volume that is this pod's own, so that no two pods write the same
files on a volume they share. Pods of a DaemonSet come and go under new names while one at a
time is on a node: the node's name lets them find the files of the one before.
*/}}
{{- define "otelcol-fpm.ownFolder" -}}
{{- if eq .Values.mode "daemonset" }}${env:K8S_NODE_NAME}{{ else }}${env:MY_POD_NAME}{{ end -}}
{{- end -}}
