#!/usr/bin/env bash
# Tests the Helm chart without Helm. See --help.
set -euo pipefail

help() {
    cat <<'HELP'
usage: hack/chart-test.sh

Renders deploy/chart with hack/helm-render for the values in tests/fixtures/chart. Where the first line of such a file names a command,
`# statusgate manifests install ...`, the chart must render the objects that this command prints. No rendering may contain a caBundle or
a webhook. With KUBECONFIG (hack/with-control-plane.sh hack/chart-test.sh), it also applies the chart twice; the second time must change
nothing. STATUSGATE names the program; the default is target/debug/statusgate.
HELP
}

case ${1-} in
"") ;;
-h | --help) help && exit ;;
*) help >&2 && exit 2 ;;
esac

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
statusgate=${STATUSGATE-$root/target/debug/statusgate}
[[ -x $statusgate ]] || { echo "chart-test: no program $statusgate; build it first" >&2 && exit 2; }
work=$(mktemp -d)
readonly root statusgate work
trap 'rm -rf "$work"' EXIT
failures=0

say() { echo "chart-test: $*" >&2; }

bad() {
    say "FAILED: $*"
    failures=$((failures + 1))
}

"$root/hack/packages.sh" golang-go golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev
(cd "$root/hack/helm-render" && GO111MODULE=off GOFLAGS='' GOPATH=/usr/share/gocode go build -o "$work/helm-render" .)

# render NAME ARG...: to $work/NAME.yaml
render() {
    "$work/helm-render" template "${@:2}" "$root/deploy/chart" >"$work/$1.yaml" 2>"$work/error" || { bad "render $1: $(<"$work/error")" && return 1; }
    ! grep -niE 'caBundle|^webhooks:' "$work/$1.yaml" >&2 || bad "$1: the server owns the webhooks and their caBundle"
}

# compare NAME COMMAND...: the objects of a command. Helm creates the namespace, and the command leaves the ConfigMap to the user.
compare() {
    "$statusgate" "${@:2}" >"$work/$1.expected"
    if "$work/helm-render" diff -without Namespace -without ConfigMap "$work/$1.expected" "$work/$1.yaml" 2>"$work/error"; then
        say "$1: the objects of \`statusgate ${*:2}\`"
    else
        bad "$1: $(<"$work/error")"
    fi
}

for file in "$root"/tests/fixtures/chart/*.yaml; do
    name=$(basename "$file" .yaml)
    read -ra command < <(sed -n '1s/^# statusgate //p' "$file") || true
    version=$(sed -n '1s/.*--kubernetes-version=\([^ ]*\).*/\1/p' "$file")
    render "$name" -f "$file" -kube-version "v${version:-1.30}.0" || continue
    [[ ${#command[@]} -eq 0 ]] || compare "$name" "${command[@]}"
done

# Another namespace.
render namespace -n gates && compare namespace manifests install --namespace=gates

# Before Helm deletes the rest, a Job deletes the registrations. Its image has the program as entry point.
render hooks -hooks -n gates
[[ $(grep -c 'helm.sh/hook: pre-delete' "$work/hooks.yaml") == 4 ]] || bad "hooks: not four objects before the deletion"
grep -qF 'args: [uninstall]' "$work/hooks.yaml" || bad "hooks: no Job runs statusgate uninstall"
! grep -qE 'name: statusgate$' <(sed -n '/labels:/,/spec:/p' "$work/hooks.yaml") || bad "hooks: the Service would select the pod of the Job"
"$work/helm-render" template -hooks -f "$root/tests/fixtures/chart/nothing-managed.yaml" "$root/deploy/chart" >"$work/no-hooks.yaml"
! grep -q kind: "$work/no-hooks.yaml" || bad "nothing-managed: the registrations are not those of the chart"

# The values that the command does not have.
for text in 'image: r.example.org/statusgate:1' 'imagePullPolicy: Always' '- name: pull' 'appcat.yaml: |' 'metav1.yaml: |' \
    'extra-statuspolicy-widgets.yaml: |' '--policies=/etc/statusgate/policies' '--watch-policies' '--max-in-flight=512' 'memory: 1Gi' \
    'kubernetes.io/os: linux' 'operator: Exists' 'nodeAffinity: {}' 'maxSkew: 2' 'note: "1"' 'team: platform' 'maxUnavailable: 25%' \
    'port: 8443' 'kind: ServiceMonitor' 'interval: 15s' 'release: prometheus' 'kind: PrometheusRule' 'alert: StatusgateDown' \
    'name: statusgate-dashboards' 'statusgate.json: "{' 'helm.sh/resource-policy: keep'; do
    grep -qF -e "$text" "$work/everything.yaml" || bad "everything: no $text"
done
egress=$(sed -n '/^  egress:/,/^---/p' "$work/everything.yaml" | sed -n 's/^ *-* *port: //p' | tr '\n' ' ')
[[ $egress == '8443 53 53 4318 ' ]] || bad "everything: egress to the ports $egress"
# A server that makes no calls needs its own rules too.
printf 'networkPolicy: {extraEgress: [{ports: [{port: 4318, protocol: TCP}]}]}\n' >"$work/egress"
render egress -f "$root/tests/fixtures/chart/nothing-managed.yaml" -f "$work/egress"
egress=$(sed -n '/^  egress:/,/^---/p' "$work/egress.yaml" | sed -n 's/^ *-* *port: //p' | tr '\n' ' ')
[[ $egress == '4318 ' ]] || bad "nothing-managed: egress to the ports $egress"
alerts=$(grep -c 'alert:' "$work/everything.yaml")
links=$(grep -cE 'runbook_url: https://git.example.org/statusgate/docs/runbooks.md#statusgate[a-z]+$' "$work/everything.yaml" || true)
[[ $links == "$alerts" ]] || bad "everything: $links of $alerts alerts have a link to their runbook"
for kind in NetworkPolicy PodDisruptionBudget; do
    ! grep -q "^kind: $kind" "$work/least.yaml" || bad "least: has a $kind"
done
! grep -q 'limits:' "$work/least.yaml" || bad "least: a null does not remove the limits"
sed 's/^policies:.*/policies: [unknown]/' "$root/tests/fixtures/chart/everything.yaml" >"$work/unknown-policy"
if "$work/helm-render" template -f "$work/unknown-policy" "$root/deploy/chart" >/dev/null 2>"$work/error"; then
    bad "an unknown example policy is rendered"
else
    grep -qF 'there is no example policy "unknown"' "$work/error" || bad "an unknown example policy: $(<"$work/error")"
fi

# === on an API server ===

if [[ -n ${KUBECONFIG-} && $failures -eq 0 ]]; then
    version=$(kubectl get --raw /version | grep -oE '"gitVersion": ?"[^"]*"' | cut -d '"' -f 4)
    # This API server has no Prometheus operator.
    printf 'serviceMonitor: {enabled: false}\nprometheusRule: {enabled: false}\n' >"$work/without-operator"
    kubectl create namespace gates >/dev/null
    for name in default everything; do
        render "applied-$name" -n gates -kube-version "$version" -f "$root/tests/fixtures/chart/$name.yaml" -f "$work/without-operator"
        kubectl apply --filename "$work/applied-$name.yaml" >"$work/out" 2>&1 || bad "apply $name: $(<"$work/out")"
        kubectl apply --filename "$work/applied-$name.yaml" >"$work/out" 2>&1 || bad "apply $name again: $(<"$work/out")"
        if grep -v ' unchanged$' "$work/out" >"$work/changed"; then
            bad "apply $name again: $(<"$work/changed")"
        else
            say "applied twice on Kubernetes $version: $name, $(wc -l <"$work/out") objects"
        fi
    done
    # The Job of the hook, with its account.
    kubectl apply --filename "$work/hooks.yaml" >/dev/null || bad "apply the hooks"
    # Exit code 1: the cluster does not define all resources of the example policies.
    "$statusgate" manifests registrations --crds "$root/deploy/crds" >"$work/registrations.yaml" 2>/dev/null || [[ $? -eq 1 ]] || bad "no registrations"
    kubectl apply --filename "$work/registrations.yaml" >/dev/null || bad "apply the registrations"
    account=system:serviceaccount:gates:statusgate-uninstall
    sed "s/^\( *\)user:\$/&\n\1  as: $account/" "$KUBECONFIG" >"$work/kubeconfig"
    KUBECONFIG=$work/kubeconfig "$statusgate" uninstall >"$work/out" || bad "the hook: $(<"$work/out")"
    [[ $(grep -c '^deleted' "$work/out") == 3 ]] || bad "the hook deleted: $(<"$work/out")"
    say "the hook deletes the registrations, as $account"
fi

if [[ $failures -gt 0 ]]; then
    say "$failures failed"
    exit 1
fi
say ok
