{{- /* The image of one program: (list . "webhook"). */ -}}
{{- define "gpufence.image" -}}
{{- $top := index . 0 -}}
{{- $registry := required "image.registry is empty: gpufence has no public registry. Push the images to yours (docs/install.md) and say where they are: --set image.registry=registry.example.com/gpufence" $top.Values.image.registry -}}
{{ printf "%s/%s:%s" $registry (index . 1) ($top.Values.image.tag | default $top.Chart.AppVersion) }}
{{- end -}}

{{- /* Whether agents act by their own account: as it is said, else as the cluster's version asks for; empty is no. */ -}}
{{- define "gpufence.kubernetes130" -}}
{{- if kindIs "bool" .Values.kubernetes130 -}}
{{- if .Values.kubernetes130 }}true{{ end -}}
{{- else if semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version -}}
true
{{- end -}}
{{- end -}}

{{- /* The webhook's setting of the driver's limits: YAML takes a plain on and off for true and false. */ -}}
{{- define "gpufence.driverLimits" -}}
{{- if kindIs "bool" .Values.driverLimits }}{{ ternary "on" "off" .Values.driverLimits }}{{ else }}{{ .Values.driverLimits }}{{ end -}}
{{- end -}}
