#!/usr/bin/env bash
# Runs a command with its own control plane: hack/with-control-plane.sh COMMAND [ARG...]
# Sets KUBECONFIG, APISERVER_URL, APISERVER_CA and CONTROL_PLANE (the folder of hack/control-plane.sh
# run), adds kubectl to PATH, and exits with the exit code of the command.
set -euo pipefail
[[ $# -gt 0 && $1 != -* ]] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }

hack=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
assets=$("$hack/control-plane.sh" assets)
work=$(mktemp -d)

# The control plane ends when its stdin closes: a pipe that closes when this process ends.
coproc plane { exec "$hack/control-plane.sh" run "$work/plane" 2> "$work/log"; }
plane_pid=$plane_PID
clean() {
    kill "$plane_pid" 2> /dev/null || true
    wait "$plane_pid" 2> /dev/null || true
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if ! read -r -t 120 -u "${plane[0]}" _ready; then
    cat "$work/log" >&2
    exit 1
fi
set -a
# shellcheck source=/dev/null
. "$work/plane/env"
set +a
type -P kubectl > /dev/null || PATH=$assets:$PATH
CONTROL_PLANE=$work/plane PATH=$PATH "$@"
