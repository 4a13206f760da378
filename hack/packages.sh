#!/usr/bin/env bash
# Installs the named Debian packages that are missing. If none is missing, it prints nothing and
# needs no rights.
#
#     hack/packages.sh wrk buildah
#
# All output goes to stderr: callers use stdout for their own results.
set -euo pipefail

missing=()
for package in "$@"; do
    # `dpkg -s` also succeeds for a removed package with remaining configuration, so check the status word.
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
    if ! type -P sudo >/dev/null; then
        echo "packages.sh: root or sudo is required; run \`apt-get install ${missing[*]}\` as root" >&2
        exit 1
    fi
    as_root=(sudo)
fi

apt_get() {
    # sudo drops the environment, so `env` sets it. Wait for the lock: unattended upgrades and other checks may hold it.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@" >&2 </dev/null 9>&-
}

# Two at once: `apt-get update` does not wait for the lock of the lists.
exec 9>"${TMPDIR:-/tmp}/statusgate-packages.lock"
flock 9
# An unreachable third-party source fails the update, but the install may still succeed. Recommended packages are omitted;
# callers name those they need, such as crun for buildah's `RUN`.
apt_get update --quiet || echo "packages.sh: apt-get update failed; continuing with the existing lists" >&2
apt_get install --quiet --yes --no-install-recommends "${missing[@]}"
