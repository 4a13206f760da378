#!/usr/bin/env bash
# Installs a program from the package registry, once, and prints the path of its program.
#
#     hack/tool.sh cargo-deny
#
# All other output goes to stderr. Each version has its own folder in target/tools, so a new version is a new build.
set -euo pipefail

features=()
case ${1-} in
cargo-auditable) version=0.7.7 ;;
cargo-cyclonedx) version=0.5.9 ;;
cargo-deny) version=0.20.2 ;;
mdbook) version=0.5.2 features=(--no-default-features --features search) ;; # without its web server
*) echo "tool.sh: no version for '${1-}' in this script" >&2 && exit 2 ;;
esac
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=${CARGO_TARGET_DIR:-$root/target}/tools/$1-$version

if [[ ! -x $folder/bin/$1 ]]; then
    # The tools run for seconds, so building them fast matters more than running them fast. The flags of this repository are not for tools.
    env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_TARGET -u RUSTC_WORKSPACE_WRAPPER CARGO_PROFILE_DEV_DEBUG=false \
        "${CARGO:-cargo}" install --quiet --locked --debug "${features[@]}" --version "=$version" --root "$folder" "$1" >&2
fi
echo "$folder/bin/$1"
