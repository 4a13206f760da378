#!/usr/bin/env bash
# Measures how long `make run` needs in a fresh clone until the server listens, with all crates downloaded before. Then tries the deepest
# rule in CEL (20 levels: a comparison has two) with this program, because it has no optimization and needs the largest stack.
#
#     bench/first-minutes.sh
#
# The port 8443 must be free. The clone has the last commit, and needs 2 GB.
set -euo pipefail
# shellcheck source=bench/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

git clone --quiet "$root" "$work/clone"
cd "$work/clone"
unset CARGO_TARGET_DIR
cargo fetch --locked --quiet

begin=$SECONDS
start make make run >"$work/make.log" 2>&1
until grep -q '"listening"' "$work/make.log"; do
    alive make
    pause 0.2
done
wall=$((SECONDS - begin))
# make only waits for the server. A second signal ends its time for open connections.
server=$(pgrep --parent "${children[make]}")
kill -TERM "$server" && pause 0.2
kill -TERM "$server" || true
stop make
times >"$work/times" # not in a subshell, which has other children
cpu=$(awk -F'[ms ]' 'NR == 2 { printf "%d", $1 * 60 + $2 + $4 * 60 + $5 }' "$work/times")

cat >"$work/deep.yaml" <<YAML
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: deep}
spec:
  convention: metav1
  resources: [{apiGroups: [example.com], apiVersions: [v1], resources: [things]}]
  rules: [{name: deep, message: m, expression: '$(printf '(%.0s' {1..18})self.status.x == 1$(printf ')%.0s' {1..18})'}]
YAML
run lint target/debug/statusgate lint "$work/deep.yaml" >&2
start serve target/debug/statusgate serve --policies "$work/deep.yaml" --tls-cert certs/tls.crt --tls-key certs/tls.key \
    --listen 127.0.0.1:0 --probe-listen 127.0.0.1:0 >"$work/serve.log" 2>&1
until grep -q '"listening"' "$work/serve.log"; do
    alive serve
    pause 0.1
done

echo "make run: listens after $wall s, $cpu s of CPU; $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg). Target: 180 s."
