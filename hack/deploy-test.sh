#!/usr/bin/env bash
# Tests the manifests in deploy/ against a real API server. See --help.
#
# Only kubectl reads the YAML: `annotate --local` passes any document to a go-template without a server, so neither jq nor a YAML
# library is needed. kubectl also renders, from version 1.20 (Debian 12, kustomize 2.0.3) on. The kustomizations explain what they do
# for the old version.
# shellcheck disable=SC2016 # the dollars in single quotes are the templates'
set -euo pipefail

help() {
    cat <<'HELP'
usage: hack/deploy-test.sh KUBECONFIG

Renders deploy/base, deploy/cert-manager, deploy/backfill and deploy/audit, checks that their parts are consistent with each other
and with the policies, and dry-runs every object on the API server of KUBECONFIG. It skips and reports kinds that the server does not
have (PodDisruptionBudget of policy/v1 before Kubernetes 1.21, cert-manager) and the completionMode of the Job before 1.21. A dry run
needs the namespace: if statusgate-system is missing, the test creates it with the ServiceAccount and deletes it at the end. It writes
nothing else. KUBECTL names the kubectl to use; the default is the one in PATH or of the control plane.
HELP
}

case ${1-} in
-h | --help) help && exit ;;
"" | -*) help >&2 && exit 2 ;;
esac
[[ $# -eq 1 ]] || { help >&2 && exit 2; }
[[ -r $1 ]] || { echo "deploy-test: cannot read $1" >&2 && exit 2; }
kubeconfig=$(realpath -- "$1")
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
readonly kubeconfig root
readonly namespace=statusgate-system

if [[ -z ${KUBECTL-} ]]; then
    KUBECTL=$(type -P kubectl) || KUBECTL=$("$root/hack/control-plane.sh" assets)/kubectl
fi

work=$(mktemp -d)
readonly work
made_namespace=
failures=0

say() { echo "deploy-test: $*" >&2; }

# Reports every failure, because the manifests change together.
bad() {
    say "FAILED: $*"
    failures=$((failures + 1))
}

# A separate discovery cache: kubectl's cache is per address and port, which test servers reuse. Without `command`,
# KUBECTL=kubectl would call this function recursively.
kubectl() {
    command "$KUBECTL" --kubeconfig "$kubeconfig" --cache-dir "$work/cache" "$@"
}

# shellcheck disable=SC2317 # called by the trap
clean() {
    local status=$?
    [[ -z $made_namespace ]] || delete_namespace || status=1
    rm -rf "$work"
    exit "$status"
}
trap clean EXIT

# === reading documents ===

# ask FILE TEMPLATE: renders the go-template with the document.
ask() {
    kubectl annotate --local --overwrite --filename "$1" --output go-template="$2" hack/deploy-test=read
}

# same WHAT EXPECTED ACTUAL
same() {
    [[ $2 == "$3" ]] || bad "$1: expected $2, got $3"
}

# render NAME: writes the overlay's documents to $work/NAME/KIND.NAME.yaml.
render() {
    local to=$work/$1 file
    mkdir "$to" "$to.split"
    kubectl kustomize "$root/deploy/$1" >"$to.yaml" 2>"$to.log" || { cat "$to.log" >&2 && say "deploy/$1 does not render" && exit 1; }
    # Only `---` in the first column separates; the content of the ConfigMap is indented.
    awk -v dir="$to.split" 'BEGIN { n = 100 } /^---$/ { n++; next } { print > (dir "/" n ".yaml") }' "$to.yaml"
    for file in "$to.split"/*.yaml; do
        mv "$file" "$to/$(ask "$file" '{{.kind}}.{{.metadata.name}}').yaml"
    done
}

# === consistency ===

# The rules that the registrations need for the policies: GROUP VERSION RESOURCE OPERATIONS SCOPE
wanted_rules() {
    local file
    for file in "${policies[@]}"; do
        ask "$file" '{{range .spec.resources}}{{$rule := .}}{{range .apiGroups}}{{$group := .}}{{range $rule.apiVersions}}{{$version := .}}{{range $rule.resources -}}
            {{$group}} {{$version}} {{.}}{{if eq (print $rule.statusSubresource) "false"}} CREATE,UPDATE,{{else}}/status UPDATE,{{end}} *{{"\n"}}
            {{- end}}{{end}}{{end}}{{end}}'
    done | sort
}

registered_rules() {
    ask "$1" '{{range .webhooks}}{{range .rules}}{{$rule := .}}{{range .apiGroups}}{{$group := .}}{{range $rule.apiVersions}}{{$version := .}}{{range $rule.resources -}}
        {{$group}} {{$version}} {{.}} {{range $rule.operations}}{{.}},{{end}} {{$rule.scope}}{{"\n"}}
        {{- end}}{{end}}{{end}}{{end}}{{end}}' | sort
}

# fit NAME: checks an overlay.
fit() {
    local at=$work/$1 file kind verb address labels text arguments seconds
    local deployment=$at/Deployment.statusgate.yaml service=$at/Service.statusgate.yaml

    for file in Deployment.statusgate Service.statusgate PodDisruptionBudget.statusgate NetworkPolicy.statusgate \
        ServiceAccount.statusgate "Namespace.$namespace" ConfigMap.statusgate-policies \
        MutatingWebhookConfiguration.statusgate ValidatingWebhookConfiguration.statusgate; do
        [[ -e $at/$file.yaml ]] || { say "FAILED: deploy/$1 has no $file" && exit 1; }
    done

    for kind in Mutating Validating; do
        file=$at/${kind}WebhookConfiguration.statusgate.yaml
        [[ $kind == Mutating ]] && verb=mutate || verb=validate
        registered_rules "$file" >"$at.rules"
        diff -u --label "the policies" --label "deploy/$1, $kind" "$work/wanted" "$at.rules" >&2 ||
            bad "deploy/$1: the rules of the ${kind}WebhookConfiguration are not those of deploy/policies"
        same "deploy/$1: the webhooks of the ${kind}WebhookConfiguration" \
            "$verb.statusgate.dev Ignore Equivalent None [v1] $([[ $kind == Mutating ]] && echo IfNeeded || echo '<no value>'); " \
            "$(ask "$file" '{{range .webhooks}}{{.name}} {{.failurePolicy}} {{.matchPolicy}} {{.sideEffects}} {{.admissionReviewVersions}} {{.reinvocationPolicy}}; {{end}}')"
        address=$(ask "$service" '{{.metadata.namespace}} {{.metadata.name}} {{(index .spec.ports 0).port}}')
        same "deploy/$1: where the ${kind}WebhookConfiguration points" "$address /$verb" \
            "$(ask "$file" '{{range .webhooks}}{{with .clientConfig.service}}{{.namespace}} {{.name}} {{.port}} {{.path}}{{end}}{{end}}')"
    done

    # Service → pods → process: a port by its name, then by its number in the arguments.
    same "deploy/$1: the container port behind the Service" "webhook=8443" \
        "$(ask "$service" '{{(index .spec.ports 0).targetPort}}')=$(ask "$deployment" '{{range (index .spec.template.spec.containers 0).ports}}{{if eq .name "webhook"}}{{.containerPort}}{{end}}{{end}}')"
    labels=$(ask "$deployment" '{{.spec.template.metadata.labels}}')
    same "deploy/$1: the Service's selector" "$labels" "$(ask "$service" '{{.spec.selector}}')"
    same "deploy/$1: the Deployment's selector" "$labels" "$(ask "$deployment" '{{.spec.selector.matchLabels}}')"
    same "deploy/$1: the PodDisruptionBudget's selector" "$labels" "$(ask "$at/PodDisruptionBudget.statusgate.yaml" '{{.spec.selector.matchLabels}}')"
    same "deploy/$1: the NetworkPolicy's selector" "$labels" "$(ask "$at/NetworkPolicy.statusgate.yaml" '{{.spec.podSelector.matchLabels}}')"
    same "deploy/$1: the open ports" "8443,8080," "$(ask "$at/NetworkPolicy.statusgate.yaml" '{{range .spec.ingress}}{{range .ports}}{{.port}},{{end}}{{end}}')"

    # The restricted Pod Security Standard; servers before 1.23 do not check it.
    same "deploy/$1: the security context" "true RuntimeDefault, false true [ALL] <no value>" \
        "$(ask "$deployment" '{{with .spec.template.spec}}{{with .securityContext}}{{.runAsNonRoot}} {{.seccompProfile.type}}{{end}}, {{with (index .containers 0).securityContext}}{{.allowPrivilegeEscalation}} {{.readOnlyRootFilesystem}} {{.capabilities.drop}} {{.capabilities.add}}{{end}}{{end}}')"

    # The arguments use the folders where the volumes are mounted, and the volumes use the objects of this overlay.
    arguments=$(ask "$deployment" '{{range (index .spec.template.spec.containers 0).args}}{{.}} {{end}}')
    same "deploy/$1: the mounts" "/etc/statusgate/policies /etc/statusgate/tls " \
        "$(ask "$deployment" '{{range (index .spec.template.spec.containers 0).volumeMounts}}{{.mountPath}} {{end}}')"
    same "deploy/$1: the volumes" "statusgate-policies statusgate-tls " \
        "$(ask "$deployment" '{{range .spec.template.spec.volumes}}{{with .configMap}}{{.name}}{{end}}{{with .secret}}{{.secretName}}{{end}} {{end}}')"
    for text in --policies=/etc/statusgate/policies --tls-cert=/etc/statusgate/tls/tls.crt --tls-key=/etc/statusgate/tls/tls.key \
        --listen=0.0.0.0:8443 --probe-listen=0.0.0.0:8080; do
        [[ " $arguments " == *" $text "* ]] || bad "deploy/$1: the server is not started with $text"
    done
    seconds=$(grep -oE -e '--(grace|drain-timeout)=[0-9]+s' <<<"$arguments" | grep -oE '[0-9]+' | paste -sd +)
    [[ $(ask "$deployment" '{{.spec.template.spec.terminationGracePeriodSeconds}}') -gt $((seconds)) ]] ||
        bad "deploy/$1: terminationGracePeriodSeconds is not more than $seconds"

    # Exactly the policies.
    same "deploy/$1: the policies in the ConfigMap" "$(printf '%s ' "${policies[@]##*/}")" \
        "$(ask "$at/ConfigMap.statusgate-policies.yaml" '{{range $name, $text := .data}}{{$name}} {{end}}')"
    for file in "${policies[@]}"; do
        ask "$at/ConfigMap.statusgate-policies.yaml" "{{index .data \"${file##*/}\"}}" | diff -u - "$file" >&2 ||
            bad "deploy/$1: ${file##*/} in the ConfigMap is not the file"
    done
}

# The objects for cert-manager: without it, they cannot be dry-run.
fit_certificates() {
    local at=$work/cert-manager kind
    local certificate=$at/Certificate.statusgate-tls.yaml ca=$at/Certificate.statusgate-ca.yaml
    for kind in Mutating Validating; do
        same "the CA of the ${kind}WebhookConfiguration" "$(ask "$certificate" '{{.metadata.namespace}}/{{.metadata.name}}')" \
            "$(ask "$at/${kind}WebhookConfiguration.statusgate.yaml" '{{index .metadata.annotations "cert-manager.io/inject-ca-from"}}')"
    done
    same "the Secret of the serving certificate" statusgate-tls "$(ask "$certificate" '{{.spec.secretName}}')"
    same "the first name in the serving certificate" "$(ask "$at/Service.statusgate.yaml" '{{.metadata.name}}.{{.metadata.namespace}}.svc')" \
        "$(ask "$certificate" '{{index .spec.dnsNames 0}}')"
    same "the issuer of the serving certificate" "$(ask "$at/Issuer.statusgate-ca.yaml" '{{.kind}} {{.metadata.name}}')" \
        "$(ask "$certificate" '{{.spec.issuerRef.kind}} {{.spec.issuerRef.name}}')"
    same "the Secret of that issuer" "$(ask "$ca" '{{.spec.secretName}}')" "$(ask "$at/Issuer.statusgate-ca.yaml" '{{.spec.ca.secretName}}')"
    same "the issuer of the CA" "$(ask "$at/Issuer.statusgate-selfsigned.yaml" '{{.kind}} {{.metadata.name}}')" \
        "$(ask "$ca" '{{.spec.issuerRef.kind}} {{.spec.issuerRef.name}}')"
}

# The rights that backfill needs for the policies: GROUP RESOURCE VERBS
wanted_rights() {
    local file
    for file in "${policies[@]}"; do
        ask "$file" '{{range .spec.resources}}{{$rule := .}}{{range .apiGroups}}{{$group := .}}{{range $rule.resources -}}
            {{$group}} {{.}} get,list,{{"\n"}}
            {{- $group}} {{.}}{{if ne (print $rule.statusSubresource) "false"}}/status{{end}} patch,{{"\n"}}
            {{- end}}{{end}}{{end}}'
    done
    echo "apiextensions.k8s.io customresourcedefinitions get,"
}

fit_backfill() {
    local at=$work/backfill count job=$work/backfill/Job.statusgate-backfill.yaml account
    ask "$at/ClusterRole.statusgate-backfill.yaml" '{{range .rules}}{{$rule := .}}{{range .apiGroups}}{{$group := .}}{{range $rule.resources -}}
        {{$group}} {{.}} {{range $rule.verbs}}{{.}},{{end}}{{"\n"}}
        {{- end}}{{end}}{{end}}' | sort >"$at.rights"
    wanted_rights | sort | diff -u --label "the policies" --label "deploy/backfill, ClusterRole" - "$at.rights" >&2 ||
        bad "deploy/backfill: the rights are not those that deploy/policies needs"
    account=$(ask "$at/ServiceAccount.statusgate-backfill.yaml" '{{.metadata.namespace}}/{{.metadata.name}}')
    same "deploy/backfill: who has the rights" "$account ClusterRole statusgate-backfill" \
        "$(ask "$at/ClusterRoleBinding.statusgate-backfill.yaml" '{{range .subjects}}{{.namespace}}/{{.name}}{{end}} {{.roleRef.kind}} {{.roleRef.name}}')"
    same "deploy/backfill: the account of the pods" "$account" "$(ask "$job" '{{.metadata.namespace}}/{{.spec.template.spec.serviceAccountName}}')"
    grep -qF "\"$(tr / : <<<"system/serviceaccount/$account")\"" "$root/src/cluster/backfill/judge.rs" ||
        bad "deploy/backfill: the account is not the writer that backfill judges for"
    count=$(ask "$job" '{{.spec.completions}}')
    same "deploy/backfill: the number of shards" "Indexed $count $count --shard=\$(JOB_COMPLETION_INDEX)/$count" \
        "$(ask "$job" '{{.spec.completionMode}} {{.spec.completions}} {{.spec.parallelism}} {{range (index .spec.template.spec.containers 0).args}}{{.}}{{"\n"}}{{end}}' |
            sed -n -e '1s/ [^ ]*$//p' -e '/^--shard/p' | paste -sd ' ')"
    same "deploy/backfill: the image" "$(ask "$work/base/Deployment.statusgate.yaml" '{{(index .spec.template.spec.containers 0).image}}')" \
        "$(ask "$job" '{{(index .spec.template.spec.containers 0).image}}')"
    same "deploy/backfill: the security context" "true RuntimeDefault, false true [ALL] <no value>" \
        "$(ask "$job" '{{with .spec.template.spec}}{{with .securityContext}}{{.runAsNonRoot}} {{.seccompProfile.type}}{{end}}, {{with (index .containers 0).securityContext}}{{.allowPrivilegeEscalation}} {{.readOnlyRootFilesystem}} {{.capabilities.drop}} {{.capabilities.add}}{{end}}{{end}}')"
    [[ $(ask "$job" '{{.spec.template.metadata.labels}}') != "$(ask "$work/base/Service.statusgate.yaml" '{{.spec.selector}}')" ]] ||
        bad "deploy/backfill: the Service of the server would select its pods"
}

# The rights that audit needs for the policies: GROUP RESOURCE VERBS
wanted_lists() {
    local file
    for file in "${policies[@]}"; do
        ask "$file" '{{range .spec.resources}}{{$rule := .}}{{range .apiGroups}}{{$group := .}}{{range $rule.resources -}}
            {{$group}} {{.}} list,{{"\n"}}
            {{- end}}{{end}}{{end}}'
    done
    echo "apiextensions.k8s.io customresourcedefinitions get,"
}

fit_audit() {
    local at=$work/audit deployment=$work/audit/Deployment.statusgate-audit.yaml account arguments text
    ask "$at/ClusterRole.statusgate-audit.yaml" '{{range .rules}}{{$rule := .}}{{range .apiGroups}}{{$group := .}}{{range $rule.resources -}}
        {{$group}} {{.}} {{range $rule.verbs}}{{.}},{{end}}{{"\n"}}
        {{- end}}{{end}}{{end}}' | sort >"$at.rights"
    wanted_lists | sort | diff -u --label "the policies" --label "deploy/audit, ClusterRole" - "$at.rights" >&2 ||
        bad "deploy/audit: the rights are not those that deploy/policies needs"
    account=$(ask "$at/ServiceAccount.statusgate-audit.yaml" '{{.metadata.namespace}}/{{.metadata.name}}')
    [[ $(sed -n '/^  - kind: ServiceAccount/,$p' "$root/deploy/audit/reports.yaml" | awk '/name/ {print $2}' | sort | paste -sd /) == "$(tr / '\n' <<<"$account" | sort | paste -sd /)" ]] ||
        bad "deploy/audit: reports.yaml is for another account"
    same "deploy/audit: who has the rights" "$account ClusterRole statusgate-audit" \
        "$(ask "$at/ClusterRoleBinding.statusgate-audit.yaml" '{{range .subjects}}{{.namespace}}/{{.name}}{{end}} {{.roleRef.kind}} {{.roleRef.name}}')"
    same "deploy/audit: the account of the pod" "$account" "$(ask "$deployment" '{{.metadata.namespace}}/{{.spec.template.spec.serviceAccountName}}')"
    same "deploy/audit: the image" "$(ask "$work/base/Deployment.statusgate.yaml" '{{(index .spec.template.spec.containers 0).image}}')" \
        "$(ask "$deployment" '{{(index .spec.template.spec.containers 0).image}}')"
    same "deploy/audit: the security context" "true RuntimeDefault, false true [ALL] <no value>" \
        "$(ask "$deployment" '{{with .spec.template.spec}}{{with .securityContext}}{{.runAsNonRoot}} {{.seccompProfile.type}}{{end}}, {{with (index .containers 0).securityContext}}{{.allowPrivilegeEscalation}} {{.readOnlyRootFilesystem}} {{.capabilities.drop}} {{.capabilities.add}}{{end}}{{end}}')"
    arguments=$(ask "$deployment" '{{range (index .spec.template.spec.containers 0).args}}{{.}} {{end}}')
    for text in "audit --policies=/etc/statusgate/policies --watch" --probe-listen=0.0.0.0:8080; do
        [[ " $arguments" == *" $text "* ]] || bad "deploy/audit: it is not started with $text"
    done
    [[ $(ask "$deployment" '{{.spec.template.metadata.labels}}') != "$(ask "$work/base/Service.statusgate.yaml" '{{.spec.selector}}')" ]] ||
        bad "deploy/audit: the Service of the server would select its pods"
}

# === dry run ===

# served APIVERSION KIND
served() {
    local path=/apis/$1
    [[ $1 == */* ]] || path=/api/$1
    if ! kubectl get --raw "$path" >"$work/resources" 2>"$work/error"; then
        grep -q NotFound "$work/error" || { cat "$work/error" >&2 && say "the API server does not answer" && exit 1; }
        return 1
    fi
    grep -qE "\"kind\": ?\"$2\"" "$work/resources"
}

# The kinds that a server may lack. No other kind may be skipped.
may_be_missing() {
    case $1 in
    "policy/v1 PodDisruptionBudget") echo "served since Kubernetes 1.21" ;;
    cert-manager.io/*) echo "cert-manager is not installed" ;;
    *) return 1 ;;
    esac
}

# dry_run LABEL FILE
dry_run() {
    local label=$1 file=$2 type why validate=true
    type=$(ask "$file" '{{.apiVersion}} {{.kind}}')
    if [[ $type == "batch/v1 Job" ]] && ! kubectl explain job.spec.completionMode >/dev/null 2>&1; then
        say "left out: completionMode of $label: this API server does not know it: served since Kubernetes 1.21"
        validate=false
    fi
    # shellcheck disable=SC2086 # two words
    if ! served $type; then
        if why=$(may_be_missing "$type"); then
            say "skipped: $label: this API server has no ${type#* } in ${type% *}: $why"
        else
            bad "$label: this API server has no ${type#* } in ${type% *}"
        fi
    elif ! kubectl apply --dry-run=server --validate="$validate" --filename "$file" >"$work/out" 2>&1; then
        bad "$label: $(<"$work/out")"
    elif grep -q 'would violate PodSecurity' "$work/out"; then
        bad "$label: $(<"$work/out")"
    else
        say "$(<"$work/out")"
    fi
}

# Pod Security admission only warns about workloads, so dry-run the pod too.
dry_run_pod() {
    local deployment=$work/base/Deployment.statusgate.yaml
    printf '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "statusgate-0", "namespace": "%s", "labels": %s}, "spec": %s}' "$namespace" \
        "$(kubectl annotate --local --filename "$deployment" --output jsonpath='{.spec.template.metadata.labels}' a=b)" \
        "$(kubectl annotate --local --filename "$deployment" --output jsonpath='{.spec.template.spec}' a=b)" >"$work/pod.json"
    dry_run "a pod of the Deployment" "$work/pod.json"
}

make_namespace() {
    if kubectl get namespace "$namespace" >/dev/null 2>&1; then return; fi
    made_namespace=yes
    kubectl apply --filename "$work/base/Namespace.$namespace.yaml" --filename "$work/base/ServiceAccount.statusgate.yaml" >"$work/out" 2>&1 ||
        { cat "$work/out" >&2 && say "cannot make namespace $namespace" && exit 1; }
}

delete_namespace() {
    kubectl --namespace "$namespace" delete serviceaccount statusgate --ignore-not-found >/dev/null
    # Without the namespace controller of a real cluster, the namespace would stay terminating and block later tests, so remove
    # its finalizer.
    if kubectl --namespace kube-system get lease kube-controller-manager >/dev/null 2>&1; then
        kubectl delete namespace "$namespace" --timeout 60s >/dev/null
    else
        kubectl delete namespace "$namespace" --wait=false >/dev/null
        printf '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "%s"}, "spec": {"finalizers": []}}' "$namespace" >"$work/finalize.json"
        kubectl replace --raw "/api/v1/namespaces/$namespace/finalize" --filename "$work/finalize.json" >/dev/null
    fi
}

# === main ===

# The deployed policies: the examples with registered resources.
mapfile -t policies < <(sed -n "s|^ *- \(.*\.yaml\)\$|$root/deploy/policies/\1|p" "$root/deploy/policies/kustomization.yaml" | sort)
wanted_rules >"$work/wanted"
[[ -s $work/wanted ]] || bad "deploy/policies names no resources"
for overlay in base cert-manager; do
    render "$overlay"
    fit "$overlay"
done
fit_certificates
render backfill
fit_backfill
render audit
fit_audit

version=$(kubectl get --raw /version | grep -oE '"gitVersion": ?"[^"]*"' | cut -d '"' -f 4)
say "dry run on Kubernetes $version"
make_namespace
for overlay in base cert-manager backfill audit; do
    for file in "$work/$overlay"/*.yaml; do
        # Objects that the overlay does not change were tested already.
        [[ $overlay == base ]] || ! cmp -s "$file" "$work/base/${file##*/}" || continue
        dry_run "deploy/$overlay: $(basename "$file" .yaml)" "$file"
    done
done
dry_run_pod
if kubectl apply --dry-run=server --filename "$root/deploy/crds/appcat-example.yaml" >"$work/out" 2>&1; then
    say "$(<"$work/out")"
else
    bad "deploy/crds: $(<"$work/out")"
fi

if [[ $failures -gt 0 ]]; then
    say "$failures failed"
    exit 1
fi
say ok
