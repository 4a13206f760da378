{{/* The label of every object. It also selects the pods. */}}
{{- define "statusgate.labels" -}}
app.kubernetes.io/name: statusgate
{{- end }}

{{- define "statusgate.metadata" -}}
name: statusgate
namespace: {{ .Release.Namespace }}
labels:
  {{- include "statusgate.labels" . | nindent 2 }}
{{- end }}

{{/* Whether the server has policies as files. */}}
{{- define "statusgate.hasFiles" -}}
{{- if or (not .Values.watchPolicies) .Values.policies .Values.extraPolicies }}true{{ end }}
{{- end }}

{{/* Whether the server calls the API server. */}}
{{- define "statusgate.callsTheAPI" -}}
{{- if or .Values.watchPolicies .Values.manageWebhooks (eq .Values.certificates "managed") }}true{{ end }}
{{- end }}
