#!/usr/bin/env bash
# Installs a pinned version of a cargo subcommand from the package registry, once, and prints the path of its program.
#
#     hack/tool.sh cargo-deny 0.20.2
#
# All other output goes to stderr. Each version has its own folder in target/tools, so a new version is a new build.
set -euo pipefail

[[ $# -eq 2 ]] || { echo "usage: hack/tool.sh NAME VERSION" >&2 && exit 2; }
name=$1
version=$2
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=${CARGO_TARGET_DIR:-$root/target}/tools/$name-$version

if [[ ! -x $folder/bin/$name ]]; then
    # The tools run for seconds, so building them fast matters more than running them fast. Static linking and a target, which
    # the build of the image sets, would also apply to the tool.
    env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_TARGET CARGO_PROFILE_DEV_DEBUG=false \
        "${CARGO:-cargo}" install --quiet --locked --debug --version "=$version" --root "$folder" "$name" >&2
fi
echo "$folder/bin/$name"
