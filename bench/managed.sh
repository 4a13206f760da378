#!/usr/bin/env bash
# What an idle server costs that manages everything, and how soon it follows the cluster, on a real API server:
# bench/managed.sh [--policies N]   (500)
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
count=500
while (($#)); do
    case $1 in
        --policies) count=$2 && shift 2 ;;
        *) sed -n '2,3s/^# //p' "$0" >&2 && exit 2 ;;
    esac
done
cd "$here/.."
cargo build --release --bin statusgate
export STATUSGATE=$PWD/target/release/statusgate COUNT=$count
exec hack/with-control-plane.sh bench/managed-run.sh
