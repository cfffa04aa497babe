{{- /* The image of one program: (list . "webhook"). */ -}}
{{- define "gpufence.image" -}}
{{- $top := index . 0 -}}
{{- $registry := required "image.registry is empty: gpufence has no public registry. Push the images to yours (docs/install.md) and say where they are: --set image.registry=registry.example.com/gpufence" $top.Values.image.registry -}}
{{- with get ($top.Values.image.digests | default dict) (index . 1) }}{{ printf "%s/%s@%s" $registry (index $ 1) . }}{{ else -}}
{{ printf "%s/%s:%s" $registry (index . 1) ($top.Values.image.tag | default $top.Chart.AppVersion) }}
{{- end }}
{{- end -}}

{{- /* The namespace of everything: nothing of ours belongs into `default`. */ -}}
{{- define "gpufence.namespace" -}}
{{- .Values.namespace | default (eq .Release.Namespace "default" | ternary "gpufence-system" .Release.Namespace) -}}
{{- end -}}

{{- /* The version, and what a Job is made of beside it: (list . "digest of its manifest"). */ -}}
{{- define "gpufence.content" -}}
{{- $top := index . 0 -}}
{{- $made := list (index . 1) (include "gpufence.image" (list $top "certs")) $top.Values.image.pullPolicy $top.Values.imagePullSecrets $top.Values.certs $top.Values.settings.certs -}}
{{ regexReplaceAll "[^a-z0-9]+" (lower $top.Chart.AppVersion) "-" }}-{{ $made | toJson | sha256sum | trunc 10 }}
{{- end -}}

{{- /* Whether agents act by their own account: as it is said, else as the cluster's version asks for; empty is no. */ -}}
{{- define "gpufence.kubernetes130" -}}
{{- if kindIs "bool" .Values.kubernetes130 -}}
{{- if .Values.kubernetes130 }}true{{ end -}}
{{- else if .Values.gitops -}}
{{- fail "kubernetes130 is not said: with gitops=true nothing asks the cluster for its version. Say kubernetes130=true for Kubernetes 1.30 to 1.35, false from 1.36 on" -}}
{{- else if semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version -}}
true
{{- end -}}
{{- end -}}

{{- /* The webhook's setting of the driver's limits: YAML takes a plain on and off for true and false. */ -}}
{{- define "gpufence.driverLimits" -}}
{{- if kindIs "bool" .Values.driverLimits }}{{ ternary "on" "off" .Values.driverLimits }}{{ else }}{{ .Values.driverLimits }}{{ end -}}
{{- end -}}
