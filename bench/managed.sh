#!/usr/bin/env bash
# What an idle server costs that manages everything, and how soon it follows the cluster, on a real API server:
# bench/managed.sh [--policies N] [--seconds N]   (500 policies; 20 seconds to measure a server)
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
count=500 seconds=20
while (($#)); do
    case $1 in
        --policies) count=$2 && shift 2 ;;
        --seconds) seconds=$2 && shift 2 ;;
        *) sed -n '2,3s/^# //p' "$0" >&2 && exit 2 ;;
    esac
done
cd "$here/.."
if [[ -n ${BUILT-} ]]; then STATUSGATE=$BUILT/statusgate; else STATUSGATE=$(hack/release-build.sh); fi
export STATUSGATE COUNT=$count SECONDS_IDLE=$seconds
exec hack/with-control-plane.sh bench/managed-run.sh
