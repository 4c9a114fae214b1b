{{- define "keyhold.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- define "keyhold.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The pods that serve: not those of the job that migrates. */}}
{{- define "keyhold.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "keyhold.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "keyhold.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
# Secret files belong to this group.
fsGroup: 1000
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "keyhold.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Where the secrets are, which are files so that no environment or description of a pod shows them. */}}
{{- define "keyhold.secretEnv" -}}
- name: KEYHOLD_DATABASE_URL_FILE
  value: /run/secrets/keyhold/database-url
- name: KEYHOLD_ROOT_SECRET_FILE
  value: /run/secrets/keyhold/root-secret
{{- if or .Values.privateCA.existingConfigMap .Values.privateCA.existingSecret }}
- name: NODE_EXTRA_CA_CERTS
  value: /run/secrets/keyhold/ca.crt
{{- end }}
{{- end }}

{{- define "keyhold.secretSources" -}}
- secret:
    name: {{ .Values.database.existingSecret }}
    items:
      - key: {{ .Values.database.urlKey }}
        path: database-url
- secret:
    name: {{ .Values.rootSecret.existingSecret }}
    items:
      - key: {{ .Values.rootSecret.key }}
        path: root-secret
{{- with .Values.privateCA }}
{{- if and .existingConfigMap .existingSecret }}{{ fail "privateCA: existingConfigMap and existingSecret are mutually exclusive" }}{{ end }}
{{- range $kind, $name := dict "configMap" .existingConfigMap "secret" .existingSecret }}
{{- if $name }}
- {{ $kind }}:
    name: {{ $name }}
    items:
      - key: {{ $.Values.privateCA.key }}
        path: ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end }}
