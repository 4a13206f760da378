#!/usr/bin/env bash
# Tests deploy/monitoring and docs/runbooks.md. See --help.
#
# The metrics come from a running server, so a renamed metric fails the test. `promtool check metrics` reads the older text format, in which
# the type of a counter has the suffix of its samples and an info is a gauge; awk converts this difference.
set -euo pipefail

help() {
    cat <<'HELP'
usage: hack/monitoring-test.sh [BINARY]

Starts `BINARY serve` (default: target/debug/statusgate) with all managed parts and its own control plane, records its /metrics, and
checks:
- promtool accepts the metrics, the alert rules, their unit tests and each query of the dashboard;
- docs/metrics.md lists each metric of the server;
- each metric in a rule or in the dashboard is listed there, with the labels that select it, and the server has it;
- each runbook_url is a heading of docs/runbooks.md, and each heading belongs to an alert;
- the command of docs/runbooks.md makes each runbook_url a link.
HELP
}

case ${1-} in
-h | --help) help && exit ;;
-*) help >&2 && exit 2 ;;
esac
[[ $# -le 1 ]] || { help >&2 && exit 2; }
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
binary=${1-${CARGO_TARGET_DIR:-$root/target}/debug/statusgate}
[[ -x $binary ]] || { echo "monitoring-test: no executable file $binary; build it first" >&2 && exit 2; }
"$root/hack/packages.sh" prometheus jq curl
[[ -n ${CONTROL_PLANE-} ]] || exec "$root/hack/with-control-plane.sh" "${BASH_SOURCE[0]}" "$(realpath "$binary")"
readonly root binary monitoring=$root/deploy/monitoring runbooks=$root/docs/runbooks.md table=$root/docs/metrics.md

work=$(mktemp -d)
server=
clean() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap clean EXIT
failures=0
failed() {
    echo "monitoring-test: $*" >&2
    failures=$((failures + 1))
}

# --- the metrics of a server ---------------------------------------------------------------------------

"$binary" manifests crds | kubectl apply --filename - >&2
kubectl apply --filename "$root/deploy/crds/appcat-example.yaml" >&2
kubectl create namespace statusgate-system >&2
kubectl wait --for=condition=Established crd/statuspolicies.statusgate.dev crd/xvshnpostgresqls.vshn.appcat.vshn.io >&2
# xvshnredis for docs/review.json.
kubectl apply --filename - >&2 <<'YAML'
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: monitoring-test}
spec:
  convention: appcat
  resources:
    - {apiGroups: [vshn.appcat.vshn.io], apiVersions: [v1], resources: [xvshnpostgresqls, xvshnredis]}
YAML

# The registrations contain the port. Linux uses higher ones for outgoing connections.
port=$((20000 + RANDOM % 10000))
"$binary" serve --listen "127.0.0.1:$port" --probe-listen 127.0.0.1:0 --grace 0s --log-format json --kubeconfig "$KUBECONFIG" \
    --namespace statusgate-system --watch-policies --manage-certificates --certificate-secret statusgate-tls \
    --manage-webhooks --webhook-url "https://127.0.0.1:$port" 2>"$work/log" &
server=$!
address() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' "$work/log" | head -1; }
for ((tries = 0; tries < 200; tries++)); do
    [[ -z $(address probe_address) ]] || break
    sleep 0.05
done
[[ -n $(address probe_address) ]] || { cat "$work/log" >&2 && exit 1; }
for webhook in mutate validate; do
    curl --silent --show-error --insecure --output "$work/answer" --data "@$root/docs/review.json" "https://$(address address)/$webhook"
done
# A write that the webhook allows: a phase that ends, and an object that becomes current.
sed 's/2026-/2024-/' "$root/docs/review.json" | jq '.request.oldObject.metadata.creationTimestamp = "2024-11-20T10:00:00Z"
    | .request.oldObject.status.lastTransitionTime = "2024-11-20T11:00:00Z" | .request.object.status.lastTransitionTime = "2024-11-20T12:00:00Z"
    | .request.object.status.conditions[2].status = "True"' >"$work/allowed"
curl --silent --show-error --insecure --output "$work/answer" --data "@$work/allowed" "https://$(address address)/validate"
# A failed handshake: this client does not know the certificate.
curl --silent --output "$work/answer" "https://$(address address)/" 2>"$work/answer" && failed "a client accepted the managed certificate"
# The registrations and the Lease are written after the start.
wanted='^statusgate_registration_in_sync\{.* 1$|^statusgate_replicas 1$'
for ((tries = 0; tries < 300; tries++)); do
    curl --silent --show-error --fail --output "$work/metrics" "http://$(address probe_address)/metrics"
    [[ $(grep -cE "$wanted" "$work/metrics") != 4 ]] || break
    sleep 0.1
done
((tries < 300)) || { cat "$work/log" "$work/metrics" >&2 && exit 1; }

awk '
    $1 == "#" && $2 == "EOF" { next }
    $1 == "#" && $2 == "HELP" { help[$3] = $0; next }
    $1 == "#" && $2 == "TYPE" {
        suffix = $4 == "counter" ? "_total" : $4 == "info" ? "_info" : ""
        sub(" " $3 " ", " " $3 suffix " ", help[$3])
        print help[$3]
        print "# TYPE " $3 suffix " " ($4 == "info" ? "gauge" : $4)
        next
    }
    { print }' "$work/metrics" >"$work/text"
promtool check metrics <"$work/text" || failed "promtool rejects the metrics of the server"

# --- rules and dashboard ---------------------------------------------------------------------------------

promtool check rules "$monitoring/rules.yaml" || failed "promtool rejects the alert rules"
promtool test rules "$monitoring/rules-test.yaml" || failed "a test of the alert rules fails"

# promtool checks no dashboard, so each query becomes the expression of a rule.
jq -r '.. | objects | .expr // empty' "$monitoring/dashboard.json" |
    sed 's/\$__rate_interval/5m/g; s/\$[a-z]*/.*/g' >"$work/queries"
[[ -s $work/queries ]] || failed "the dashboard has no query"
{
    printf 'groups:\n- name: dashboard\n  rules:\n'
    jq -R -r '"  - record: query\n    labels: {number: \"\(input_line_number)\"}\n    expr: \(tojson)"' "$work/queries"
} >"$work/dashboard.yaml"
promtool check rules "$work/dashboard.yaml" >"$work/checked" || {
    cat "$work/checked" "$work/dashboard.yaml" >&2
    failed "promtool rejects a query of the dashboard"
}
jq -e '[.panels[].id] | length == (unique | length)' "$monitoring/dashboard.json" >/dev/null || failed "two panels have the same id"
jq -r '.templating.list[].query' "$monitoring/dashboard.json" >>"$work/queries"

# Metrics without a value before an event that this script does not cause, each with the reason.
declare -A absent=([statusgate_shed_total]="the server is not overloaded")

# --- every name exists -------------------------------------------------------------------------------------

# The rows of the table: the name and the labels.
sed -n 's/^| `\(statusgate_[a-z_]*\)` | [a-z]* | \([^|]*\) |.*/\1 \2/p' "$table" | tr -d '`,' >"$work/table"
row_of() { awk -v name="$1" '$1 == name || name ~ "^" $1 "_(bucket|sum|count)$"' "$work/table"; }

while read -r name; do
    [[ -n $(row_of "$name") ]] || failed "docs/metrics.md does not list $name: run \`make docs\`"
done < <(sed -n 's/^\(statusgate_[a-z_]*\).*/\1/p' "$work/text" | sort -u)

while read -r name; do
    [[ -n $(row_of "$name") ]] || failed "a query uses the unknown metric $name"
    [[ -n ${absent[$name]-} ]] || grep -q "^${name}[{ ]" "$work/text" || failed "a query uses $name, which the server does not have"
done < <(cat "$monitoring/rules.yaml" "$work/queries" | grep -oE 'statusgate_[a-z_]+' | sort -u)

while read -r name labels; do
    for label in $labels; do
        [[ " $(row_of "$name") job instance le " == *" $label "* ]] || failed "a query selects $name by the unknown label $label"
    done
done < <(cat "$monitoring/rules.yaml" "$work/queries" | grep -oE 'statusgate_[a-z_]+\{[^}]*\}' |
    sed -E 's/\{/ /; s/(=~|!=|=|!~)"[^"]*"//g; s/[,}]/ /g' | sort -u)

# --- runbooks ------------------------------------------------------------------------------------------------

sed -n 's/^ *runbook_url: //p' "$monitoring/rules.yaml" | sort -u >"$work/urls"
sed -n 's/^## \(Statusgate.*\)/docs\/runbooks.md#\L\1/p' "$runbooks" | sort -u >"$work/headings"
diff "$work/urls" "$work/headings" >&2 || failed "the alerts (<) and the headings of docs/runbooks.md (>) differ"
# The command of the page.
(cd "$root" && sed -n '/^sed .*rules\.yaml/s/ > rules\.yaml$//p' "$runbooks" | bash) >"$work/linked.yaml"
promtool check rules "$work/linked.yaml" >"$work/checked" || failed "promtool rejects the rules with links: $(<"$work/checked")"
links=$(grep -cE '^ *runbook_url: https://git.example.org/statusgate/docs/runbooks.md#statusgate[a-z]+$' "$work/linked.yaml" || true)
[[ $links == $(grep -c 'alert:' "$monitoring/rules.yaml") ]] || failed "the command of docs/runbooks.md makes only $links links"
[[ $(grep -c 'alert:' "$monitoring/rules.yaml") == $(grep -c 'runbook_url:' "$monitoring/rules.yaml") ]] || failed "an alert has no runbook_url"

[[ $failures == 0 ]] || exit 1
echo "monitoring-test: $(wc -l <"$work/table") metrics, $(grep -c 'alert:' "$monitoring/rules.yaml") alerts, $(wc -l <"$work/queries") queries" >&2
