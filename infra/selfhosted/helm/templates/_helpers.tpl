{{- define "orbweaver.labels" -}}
app.kubernetes.io/name: orbweaver
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "orbweaver.secret" -}}
{{ .Values.secret.existingSecret | default .Release.Name }}
{{- end }}

{{- /* What the pods of workers and of the search page have in common. */ -}}
{{- define "orbweaver.pod" -}}
automountServiceAccountToken: false # pods do not call Kubernetes
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.serviceAccount }}
{{- if or .create .name }}
serviceAccountName: {{ .name | default $.Release.Name }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* What their containers have in common. The template's argument is a list: the root, and the values of the part. */ -}}
{{- define "orbweaver.container" -}}
{{- $root := index . 0 }}{{- $part := index . 1 -}}
image: {{ required "image is required: the image that you built, such as REGISTRY/orbweaver:TAG" $root.Values.image | quote }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
- name: ORBWEAVER_PLATFORM
  value: {{ required "platform is required: postgres://USER@HOST:5432/DATABASE?blobs=s3://BUCKET?endpoint=http://HOST:PORT" $root.Values.platform | quote }}
- name: GOMEMLIMIT
  value: {{ $part.goMemLimit | quote }}
{{- range $name, $value := $root.Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
envFrom:
- secretRef: {name: {{ include "orbweaver.secret" $root }}}
resources: {{ toJson $part.resources }}
{{- end }}
