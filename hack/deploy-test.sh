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

Tests deploy/ and `statusgate manifests install` on the API server of KUBECONFIG, which must not have statusgate:

- renders each folder with kustomize, checks that backfill and audit are consistent with the policies, and dry-runs every object. It
  skips and reports kinds that the server does not have (PodDisruptionBudget of policy/v1 before Kubernetes 1.21, cert-manager) and
  the completionMode of the Job before 1.21;
- applies the output of `statusgate manifests install` for each source of certificates, in a namespace for each; applies it again,
  which must change nothing; and applies all example policies by server-side apply. If cert-manager is missing, it creates CRDs in its place.

It deletes everything at the end. KUBECTL names the kubectl to use; the default is the one in PATH or of the control plane. STATUSGATE
names the program; the default is target/debug/statusgate.
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

statusgate=${STATUSGATE-$root/target/debug/statusgate}
[[ -x $statusgate ]] || { echo "deploy-test: no program $statusgate; build it first" >&2 && exit 2; }

work=$(mktemp -d)
readonly work statusgate
made_namespace=
installed=()
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
    uninstall || status=1
    [[ -z $made_namespace ]] || delete_namespace "$namespace" || status=1
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
    grep -qF "\"$(tr / : <<<"system/serviceaccount/$account")\"" "$root/crates/statusgate-cluster/src/backfill/judge.rs" ||
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

# delete_namespace NAME
delete_namespace() {
    kubectl --namespace "$1" delete serviceaccount statusgate --ignore-not-found >/dev/null
    # Without the namespace controller of a real cluster, the namespace would stay terminating and block later tests, so remove
    # its finalizer.
    if kubectl --namespace kube-system get lease kube-controller-manager >/dev/null 2>&1; then
        kubectl delete namespace "$1" --ignore-not-found --timeout 60s >/dev/null
    else
        kubectl delete namespace "$1" --ignore-not-found --wait=false >/dev/null
        printf '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "%s"}, "spec": {"finalizers": []}}' "$1" >"$work/finalize.json"
        kubectl replace --raw "/api/v1/namespaces/$1/finalize" --filename "$work/finalize.json" >/dev/null
    fi
}

# === install ===

# crd PLURAL KIND: a CRD of cert-manager, without its schema.
crd() {
    cat <<CRD
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: $1.cert-manager.io
spec:
  group: cert-manager.io
  names: {kind: $2, plural: $1}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
CRD
}

make_cert_manager() {
    if served cert-manager.io/v1 Issuer; then return; fi
    { crd issuers Issuer && crd certificates Certificate; } >"$work/cert-manager-crds.yaml"
    installed+=("$work/cert-manager-crds.yaml")
    kubectl apply --filename "$work/cert-manager-crds.yaml" >/dev/null
    kubectl wait --for=condition=Established --timeout 30s crd/issuers.cert-manager.io crd/certificates.cert-manager.io >/dev/null
    until served cert-manager.io/v1 Certificate; do sleep 0.2; done
}

# apply FILE WHAT: twice. The second time must not change anything.
apply() {
    kubectl apply --filename "$1" >"$work/out" 2>&1 || { bad "apply $2: $(<"$work/out")" && return; }
    kubectl apply --filename "$1" >"$work/out" 2>&1 || { bad "apply $2 again: $(<"$work/out")" && return; }
    if grep -v ' unchanged$' "$work/out" >"$work/changed"; then
        bad "apply $2 again: $(<"$work/changed")"
    else
        say "applied twice: $2, $(wc -l <"$work/out") objects"
    fi
}

# install SOURCE: of certificates.
install() {
    local file=$work/install-$1.yaml
    "$statusgate" manifests install --certificates "$1" --namespace "statusgate-test-$1" --kubernetes-version "$version" >"$file"
    installed+=("$file")
    apply "$file" "manifests install --certificates $1"
}

# Exactly the rights of the account of the server: VERB RESOURCE yes|no
fit_rights() {
    local verb resource expected answer
    while read -r verb resource expected; do
        answer=$(kubectl auth can-i "$verb" "$resource" --as system:serviceaccount:statusgate-test-managed:statusgate \
            --namespace statusgate-test-managed 2>/dev/null || true)
        same "may the server $verb $resource" "$expected" "$answer"
    done <<'RIGHTS'
list statuspolicies.statusgate.dev yes
watch statusconventions.statusgate.dev yes
update statuspolicies.statusgate.dev no
patch statuspolicies.statusgate.dev no
delete statuspolicies.statusgate.dev no
get customresourcedefinitions.apiextensions.k8s.io yes
watch customresourcedefinitions.apiextensions.k8s.io yes
patch customresourcedefinitions.apiextensions.k8s.io no
create mutatingwebhookconfigurations.admissionregistration.k8s.io yes
patch validatingwebhookconfigurations.admissionregistration.k8s.io/statusgate-documents yes
watch validatingwebhookconfigurations.admissionregistration.k8s.io/statusgate yes
patch validatingwebhookconfigurations.admissionregistration.k8s.io/other no
list validatingwebhookconfigurations.admissionregistration.k8s.io no
delete validatingwebhookconfigurations.admissionregistration.k8s.io/statusgate no
create secrets yes
get secrets/statusgate-tls yes
update secrets/statusgate-tls yes
get secrets/other no
list secrets no
delete secrets/statusgate-tls no
create leases.coordination.k8s.io yes
patch leases.coordination.k8s.io yes
delete leases.coordination.k8s.io yes
get pods no
get configmaps no
RIGHTS
}

uninstall() {
    local index file source
    for ((index = ${#installed[@]} - 1; index >= 0; index--)); do
        file=${installed[index]}
        kubectl delete --filename "$file" --ignore-not-found --wait=false >/dev/null
        source=${file##*/install-}
        [[ $source == "$file" ]] || delete_namespace "statusgate-test-${source%.yaml}"
    done
}

# === main ===

if kubectl get crd statuspolicies.statusgate.dev >/dev/null 2>&1; then
    say "this API server has statusgate; use one for tests: hack/with-control-plane.sh"
    exit 2
fi

# The policies of backfill and audit.
mapfile -t policies < <(sed -n "s|^ *- \(.*\.yaml\)\$|$root/deploy/policies/\1|p" "$root/deploy/policies/kustomization.yaml" | sort)
overlays=(base cert-manager self-managed high-availability)
for overlay in "${overlays[@]}"; do render "$overlay"; done
render backfill
fit_backfill
render audit
fit_audit

version=$(kubectl get --raw /version | grep -oE '"gitVersion": ?"[^"]*"' | cut -d '"' -f 4)
say "dry run on Kubernetes $version"
make_namespace
for overlay in "${overlays[@]}" backfill audit; do
    for file in "$work/$overlay"/*.yaml; do
        # Objects that the overlay does not change were tested already.
        [[ $overlay == base ]] || ! cmp -s "$file" "$work/base/${file##*/}" || continue
        dry_run "deploy/$overlay: $(basename "$file" .yaml)" "$file"
    done
done
dry_run_pod

make_cert_manager
for source in managed cert-manager files; do
    install "$source"
    # The bindings name one account: the next source moves them to another namespace.
    [[ $source != managed ]] || fit_rights
done
kubectl wait --for=condition=Established --timeout 30s crd/statuspolicies.statusgate.dev >/dev/null
until served statusgate.dev/v1alpha1 StatusPolicy; do sleep 0.2; done
for file in "$root"/deploy/policies/*.yaml; do
    [[ ${file##*/} == kustomization.yaml ]] || cat "$file" <(echo "---")
done >"$work/policies.yaml"
installed+=("$work/policies.yaml")
# Server-side: otherwise kubectl drops `value: null` of a default.
kubectl apply --server-side --filename "$work/policies.yaml" >"$work/out" 2>&1 || bad "apply the example policies: $(<"$work/out")"

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
