{{- define "lockkeeper.name" -}}
{{- if contains "lockkeeper" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-lockkeeper" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* For what is outside the release's namespace: another operator there is of another class. */}}
{{- define "lockkeeper.nameEverywhere" -}}
{{- $name := include "lockkeeper.name" . }}
{{- if .Values.class }}{{ printf "%s-%s" $name .Values.class }}{{ else }}{{ $name }}{{ end }}
{{- end }}

{{- define "lockkeeper.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "lockkeeper.name" .) }}
{{- end }}

{{- define "lockkeeper.selector" -}}
app.kubernetes.io/name: lockkeeper-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lockkeeper.labels" -}}
{{ include "lockkeeper.selector" . }}
app.kubernetes.io/part-of: lockkeeper
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* An image: a list of the root, what is said of the image, its repository. */}}
{{- define "lockkeeper.reference" -}}
{{- $root := index . 0 }}{{ $image := index . 1 }}
{{- with $root.Values.imageRegistry }}{{ trimSuffix "/" . }}/{{ end }}
{{- index . 2 }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "lockkeeper.image" -}}
{{ include "lockkeeper.reference" (list . .Values.image .Values.image.repository) }}
{{- end }}

{{- define "lockkeeper.brokerImage" -}}
{{ include "lockkeeper.reference" (list . .Values.brokerImage .Values.brokerImage.repository) }}
{{- end }}

{{/* Empty where nothing is said of it: the operator makes it of the brokers' image. */}}
{{- define "lockkeeper.analyticsImage" -}}
{{- $image := .Values.analyticsImage }}
{{- $repository := $image.repository | default (printf "%s-analytics" .Values.brokerImage.repository) }}
{{- if not $image.repository }}
{{- $image = merge (dict "tag" ($image.tag | default .Values.brokerImage.tag)) $image }}
{{- end }}
{{- if or .Values.analyticsImage.repository .Values.analyticsImage.tag .Values.analyticsImage.digest }}
{{- include "lockkeeper.reference" (list . $image $repository) }}
{{- end }}
{{- end }}

{{/* What the operator does to the objects of a namespace; each verb is one it uses. */}}
{{- define "lockkeeper.rules" -}}
- apiGroups: [lockkeeper.dev]
  resources: [brokers, destinations, brokernetworks, journalbackups]
  verbs: [get, list, watch, patch]
- apiGroups: [lockkeeper.dev]
  resources: [journalanalyses]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [lockkeeper.dev]
  resources: [brokers/status, destinations/status, brokernetworks/status, journalanalyses/status, journalbackups/status]
  verbs: [get, patch]
# Where an owner may block the deletion of what it owns, who says so needs this.
- apiGroups: [lockkeeper.dev]
  resources: [brokers/finalizers, destinations/finalizers, brokernetworks/finalizers, journalanalyses/finalizers, journalbackups/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [secrets, serviceaccounts, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
# Never delete: what is in a claim cannot be made again.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch]
# Nobody can give a right that he has not himself: to brokers over their own pods.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch, delete]
# What fills the first journal of a Broker, makes backups, and carries analyses out.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
{{- if or .Values.analytics.enabled .Values.backups.enabled }}
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if .Values.backups.enabled }}
- apiGroups: [snapshot.storage.k8s.io]
  resources: [volumesnapshots]
  verbs: [get, list, create, patch, delete]
{{- end }}
{{- if .Values.analytics.enabled }}
# What drivers of analyses are given: they make and end executors, and what these need.
- apiGroups: [""]
  resources: [configmaps, pods]
  verbs: [create, update, deletecollection]
# What carries analyses out, besides Jobs.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [sparkoperator.k8s.io]
  resources: [scheduledsparkapplications, sparkapplications]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [spark.apache.org]
  resources: [sparkapplications]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [ingresses, networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [gateway.networking.k8s.io]
  resources: [tlsroutes]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
# update: brokers hold their Leases by it.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors, servicemonitors]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}

{{- define "lockkeeper.releaseHook" }}
    helm.sh/hook: post-delete
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
