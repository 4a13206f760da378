#!/usr/bin/env bash
# Installs the named Debian packages that are missing; says nothing and needs no rights when none is.
#
#     hack/packages.sh wrk buildah
#
# Everything goes to stderr: callers use the stdout of what they are about to run.
set -euo pipefail

missing=()
for package in "$@"; do
    # `dpkg -s` also succeeds for a package that was removed but left its configuration behind; the status word does not lie.
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
    if ! type -P sudo >/dev/null; then
        echo "packages.sh: neither root nor sudo: ask for \`apt-get install ${missing[*]}\`" >&2
        exit 1
    fi
    as_root=(sudo)
fi

apt_get() {
    # sudo drops the environment, so `env` stands behind it. The lock is waited for: machines update themselves at odd times,
    # and two checks of one repository may well want the same package at once.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@" >&2 </dev/null
}

# A third-party source that is down fails the update but not the install: whether the lists are good enough is for the
# install to say. Recommended packages stay out; who needs one, as buildah's `RUN` needs a crun or runc, names it.
apt_get update --quiet || echo "packages.sh: apt-get update failed; going on with the lists at hand" >&2
apt_get install --quiet --yes --no-install-recommends "${missing[@]}"
