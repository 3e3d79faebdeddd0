{{- define "lodge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "lodge.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "lodge.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "lodge.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* labels that select pods: (list $ "their component") */}}
{{- define "lodge.selectorOf" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: {{ include "lodge.name" $ }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "lodge.selector" -}}
{{- include "lodge.selectorOf" (list . .Values.role) -}}
{{- end -}}

{{/* labels of a pod: (list $ "its component") */}}
{{- define "lodge.podLabels" -}}
{{- $ := index . 0 -}}
{{- include "lodge.selectorOf" . }}
app.kubernetes.io/part-of: lodge
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* labels of an object: (list $ "its component") */}}
{{- define "lodge.labels" -}}
{{- $ := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
{{ include "lodge.podLabels" . }}
app.kubernetes.io/version: {{ $.Values.image.tag | default $.Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
{{- end -}}

{{/* metadata of an object: (list $ "suffix of its name" "its component; default: the role") */}}
{{- define "lodge.metadata" -}}
{{- $ := index . 0 -}}
{{- $component := $.Values.role -}}
{{- if gt (len .) 2 }}{{ $component = index . 2 }}{{ end -}}
name: {{ include "lodge.fullname" $ }}{{ index . 1 }}
namespace: {{ $.Release.Namespace }}
labels:
  {{- include "lodge.labels" (list $ $component) | nindent 2 }}
{{- end -}}

{{/* annotations of an object: (list $ further...) */}}
{{- define "lodge.annotations" -}}
{{- $ := index . 0 -}}
{{- $all := deepCopy $.Values.commonAnnotations -}}
{{- range rest . }}{{ $all = merge $all (. | default dict) }}{{ end -}}
{{- with $all }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "lodge.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "lodge.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "lodge.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* the member of the roster that this release is, in YAML: address and identity */}}
{{- define "lodge.member" -}}
{{- if eq .Values.role "evaluator" -}}
{{- toYaml (dict "address" .Values.evaluators.address "identity" (include "lodge.evaluatorIdentity" .)) -}}
{{- else if not .Values.roster -}}
{{- fail "roster: set it to the text of the roster, the same for all releases: --set-file roster=roster.yaml" -}}
{{- else -}}
{{- $r := fromYaml .Values.roster -}}
{{- if not (and (kindIs "slice" (get $r "parties")) (kindIs "map" (get $r "coordinator"))) -}}
{{- fail "roster: the text is not a roster: it needs parties and a coordinator" -}}
{{- end -}}
{{- if eq .Values.role "coordinator" -}}
{{- toYaml $r.coordinator -}}
{{- else -}}
{{- $found := dict -}}
{{- range $r.parties }}{{ if eq .name $.Values.party.name }}{{ $found = . }}{{ end }}{{ end -}}
{{- if not $found -}}
{{- fail (printf "party.name: %q is not in the roster" .Values.party.name) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lodge.host" -}}
{{- $address := get (fromYaml (include "lodge.member" .)) "address" | default "" -}}
{{- regexReplaceAll ":[0-9]+$" $address "" | trimPrefix "[" | trimSuffix "]" -}}
{{- end -}}

{{- define "lodge.tlsSecret" -}}
{{- if and .Values.tls.certManager.enabled .Values.tls.existingSecret -}}
{{- fail "tls: set either existingSecret or certManager, not both" -}}
{{- else if .Values.tls.certManager.enabled -}}
{{- include "lodge.fullname" . }}-tls
{{- else -}}
{{- required "tls.existingSecret: name the Secret with certificate, key and authorities, or enable tls.certManager" .Values.tls.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "lodge.evaluatorIdentity" -}}
{{- .Values.evaluators.identity | default (printf "spiffe://lodge/evaluator/%s" .Values.evaluators.name) -}}
{{- end -}}

{{- define "lodge.evaluatorSecret" -}}
{{- if eq .Values.role "evaluator" -}}
{{- include "lodge.tlsSecret" . -}}
{{- else if .Values.evaluators.existingSecret -}}
{{- .Values.evaluators.existingSecret -}}
{{- else if .Values.tls.certManager.enabled -}}
{{- include "lodge.fullname" . }}-evaluators-tls
{{- else -}}
{{- fail "evaluators.existingSecret: name the Secret with the certificate of the evaluators, which differs from the party's" -}}
{{- end -}}
{{- end -}}

{{/* parameter sets in YAML, with missing hashes filled in: (list $ params) */}}
{{- define "lodge.pins" -}}
{{- $ := index . 0 -}}
{{- $known := fromYaml ($.Files.Get "files/params.yaml") -}}
{{- $pins := list -}}
{{- range index . 1 -}}
{{- $hash := .hash | default (get $known .name) -}}
{{- if not $hash }}{{ fail (printf "params: the chart does not know the hash of %s: set it; `lodge params show %s` prints it" .name .name) }}{{ end -}}
{{- $pins = append $pins (dict "name" .name "hash" $hash) -}}
{{- end -}}
{{- toYaml (dict "pins" $pins) -}}
{{- end -}}

{{/* the addresses in the configuration of a process: (list $ port) */}}
{{- define "lodge.listens" -}}
{{- $v := (index . 0).Values -}}
{{- $ports := list (int (index . 1)) (int $v.health.port) -}}
{{- if $v.metrics.enabled }}{{ $ports = append $ports (int $v.metrics.port) }}{{ end -}}
{{- if $v.console.enabled }}{{ $ports = append $ports (int $v.console.port) }}{{ end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}
{{- fail "health.port, metrics.port and console.port: the ports of a pod must differ from each other and from its main port" -}}
{{- end -}}
listen: 0.0.0.0:{{ index . 1 }}
health_listen: 0.0.0.0:{{ $v.health.port }}
stop_after: {{ $v.stopAfterSeconds }}s
{{- if $v.metrics.enabled }}
metrics_listen: 0.0.0.0:{{ $v.metrics.port }}
{{- end }}
tls:
  certificate: /etc/lodge/tls/tls.crt
  key: /etc/lodge/tls/tls.key
  ca: {{ ternary "/etc/lodge/config/ca.pem" "/etc/lodge/tls/ca.crt" (not (empty $v.tls.ca)) }}
{{- end -}}

{{/* configuration of evaluators */}}
{{- define "lodge.evaluatorConfig" -}}
{{- $v := .Values -}}
{{- $c := deepCopy $v.evaluators.config -}}
{{- $_ := set $c "params" (get (fromYaml (include "lodge.pins" (list . $c.params))) "pins") -}}
{{- $identity := $v.evaluators.partyIdentity -}}
{{- if eq $v.role "party" }}{{ $identity = get (fromYaml (include "lodge.member" .)) "identity" }}{{ end -}}
{{- if not $identity }}{{ fail "evaluators.partyIdentity: set it to the identity of the party in the roster" }}{{ end -}}
{{- $own := dict "name" $v.evaluators.name "party" (dict "name" $v.party.name "identity" $identity) -}}
{{- toYaml (merge $own (fromYaml (include "lodge.listens" (list . $v.evaluators.port))) $c) -}}
{{- end -}}

{{/* the process's configuration file */}}
{{- define "lodge.config" -}}
{{- $v := .Values -}}
{{- $party := eq $v.role "party" -}}
{{- $c := deepCopy (ternary $v.party.config $v.coordinator.config $party) -}}
{{- $params := ternary (get (get $c "policy" | default dict) "params") (get $c "params") $party -}}
{{- $pins := get (fromYaml (include "lodge.pins" (list . $params))) "pins" -}}
{{- $own := merge (dict "roster" "/etc/lodge/config/roster.yaml") (fromYaml (include "lodge.listens" (list . $v.service.port))) -}}
{{- if $v.tls.clientCA }}{{ $_ := set $own.tls "client_ca" "/etc/lodge/config/client-ca.pem" }}{{ end -}}
{{- if $v.console.enabled }}{{ $_ := set $own "console" (dict "listen" (printf "0.0.0.0:%v" $v.console.port)) }}{{ end -}}
{{- if $party -}}
{{- $vault := dict "key_file" "/etc/lodge/keys/vault.key" -}}
{{- if $v.party.postgres.enabled -}}
{{- $_ := set $vault "postgres_dsn_file" "/etc/lodge/keys/postgres-dsn" -}}
{{- else -}}
{{- $_ := set $vault "dir" "/var/lib/lodge/vault" -}}
{{- end -}}
{{- $_ := set $c.policy "params" $pins -}}
{{- if $v.evaluators.enabled -}}
{{- $pool := dict "name" $v.evaluators.name "identity" (include "lodge.evaluatorIdentity" .)
      "domain" (required "evaluators.domain: name the administrator of this cluster" $v.evaluators.domain)
      "address" (printf "%s-evaluators.%s.svc:%v" (include "lodge.fullname" .) .Release.Namespace $v.evaluators.port) -}}
{{- $evaluators := $c.evaluators | default dict -}}
{{- $_ := set $evaluators "processes" (prepend ($evaluators.processes | default list) $pool) -}}
{{- $_ := set $c "evaluators" $evaluators -}}
{{- end -}}
{{- $own = merge $own (dict "name" $v.party.name "signing_key" "/etc/lodge/keys/signing.key" "vault" $vault "audit_dir" "/var/lib/lodge/audit") -}}
{{- else -}}
{{- $_ := set $c "params" $pins -}}
{{- $_ := set $own "data_dir" "/var/lib/lodge/data" -}}
{{- end -}}
{{- toYaml (merge $own $c) -}}
{{- end -}}

{{- define "lodge.configFile" -}}
/etc/lodge/config/{{ .Values.role }}.yaml
{{- end -}}

{{- define "lodge.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "lodge.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* the placement of all pods */}}
{{- define "lodge.placement" -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "imagePullSecrets" }}
{{- with get $.Values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "lodge.mounts" -}}
- name: data
  mountPath: /var/lib/lodge
- name: config
  mountPath: /etc/lodge/config
  readOnly: true
- name: tls
  mountPath: /etc/lodge/tls
  readOnly: true
{{- if eq .Values.role "party" }}
- name: keys
  mountPath: /etc/lodge/keys
  readOnly: true
{{- end }}
- name: tmp
  mountPath: /tmp
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* volumes of the process and of its maintenance; files of Secrets belong to root and the group of the process */}}
{{- define "lodge.volumes" -}}
- name: config
  configMap:
    name: {{ include "lodge.fullname" . }}
- name: tls
  secret:
    secretName: {{ include "lodge.tlsSecret" . }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.tls.certificateKey }}, path: tls.crt}
      - {key: {{ .Values.tls.keyKey }}, path: tls.key}
      {{- if not .Values.tls.ca }}
      - {key: {{ .Values.tls.caKey }}, path: ca.crt}
      {{- end }}
{{- if eq .Values.role "party" }}
- name: keys
  secret:
    secretName: {{ required "keys.existingSecret: name the Secret with the party's keys" .Values.keys.existingSecret }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.keys.signingKey }}, path: signing.key}
      - {key: {{ .Values.keys.vaultKey }}, path: vault.key}
      {{- if .Values.party.postgres.enabled }}
      - {key: {{ .Values.keys.postgresKey }}, path: postgres-dsn}
      {{- end }}
{{- end }}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 64Mi
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lodge.environment" -}}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
