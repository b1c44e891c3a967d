{{- define "otelcol-fpm.podTemplate" -}}
{{- $volume := include "otelcol-fpm.dataVolumeType" . -}}
metadata:
  annotations:
    # A changed configuration makes new pods: the Collector reads it at its start alone.
    checksum/config: {{ include "otelcol-fpm.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- include "otelcol-fpm.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
    app.kubernetes.io/component: {{ .Values.mode }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "otelcol-fpm.serviceAccountName" . }}
  automountServiceAccountToken: {{ eq (include "otelcol-fpm.needsToken" .) "true" }}
  # Of the injected variables, one a Service, nothing here needs any.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if and (include "otelcol-fpm.needsDataVolume" .) (eq $volume "hostPath") .Values.dataVolume.hostPath.chown.enabled }}
  initContainers:
    - name: chown
      image: {{ .Values.dataVolume.hostPath.chown.image }}
      command: [chown, {{ printf "%d:%d" (int64 .Values.podSecurityContext.runAsUser) (int64 .Values.podSecurityContext.runAsGroup) | quote }}, /var/lib/otelcol-fpm]
      securityContext:
        runAsNonRoot: false
        runAsUser: 0
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL], add: [CHOWN]}
      resources:
        requests: {cpu: 10m, memory: 16Mi}
        limits: {memory: 16Mi}
      volumeMounts:
        - {name: data, mountPath: /var/lib/otelcol-fpm}
  {{- end }}
  containers:
    - name: otelcol-fpm
      image: {{ include "otelcol-fpm.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - --config=/etc/otelcol-fpm/config.yaml
        # The health page then tells the state of each component.
        - --feature-gates=+extension.healthcheck.useComponentStatus
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      env:
        - name: MY_POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        - name: MY_POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: K8S_NODE_NAME
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
        - name: GOMEMLIMIT
          value: {{ printf "%dMiB" (div (mul (include "otelcol-fpm.memoryMiB" . | int64) 80) 100) }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        {{- range include "otelcol-fpm.ports" . | fromYamlArray }}
        - {name: {{ .name }}, containerPort: {{ .port }}, protocol: TCP}
        {{- end }}
      # The health page answers 200 while an engine is away: that is no reason to restart.
      startupProbe:
        httpGet: {path: /status, port: health}
        periodSeconds: 2
        failureThreshold: 30
      livenessProbe:
        httpGet: {path: /status, port: health}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /status, port: health}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/otelcol-fpm, readOnly: true}
        {{- if include "otelcol-fpm.needsDataVolume" . }}
        - {name: data, mountPath: /var/lib/otelcol-fpm}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "otelcol-fpm.fullname" . }}
    {{- if include "otelcol-fpm.needsDataVolume" . }}
    {{- if eq $volume "emptyDir" }}
    - name: data
      emptyDir: {sizeLimit: {{ .Values.dataVolume.emptyDir.sizeLimit }}}
    {{- else if eq $volume "hostPath" }}
    - name: data
      hostPath:
        path: {{ printf "%s/%s/%s" (trimSuffix "/" .Values.dataVolume.hostPath.path) .Release.Namespace (include "otelcol-fpm.fullname" .) }}
        type: DirectoryOrCreate
    {{- else if ne .Values.mode "statefulset" }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.dataVolume.persistentVolumeClaim.existingClaim }}
    {{- end }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The ports of the pod, each {name, port}: container, Service and NetworkPolicy use this list. */}}
{{- define "otelcol-fpm.ports" -}}
- {name: health, port: 13133}
- {name: telemetry, port: 8888}
{{- if .Values.prometheus.enabled }}
- {name: metrics, port: 9464}
{{- end }}
{{- if .Values.otlp.receiver.enabled }}
- {name: otlp-grpc, port: 4317}
- {name: otlp-http, port: 4318}
{{- end }}
{{- if .Values.metricEvent.enabled }}
- {name: metric-event, port: 20280}
{{- end }}
{{- with .Values.extraPorts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
