#!/usr/bin/env bash
# Builds the released binary twice, in different folders and with different registries and tools, and compares the results. Each build
# takes 4 to 5 minutes on two cores, so this is no part of `make test`.
#
#     hack/reproducible.sh [TARGET]
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
root=$PWD
work=$root/target/reproducible
rm -rf "$work"
hack/tool.sh cargo-auditable >/dev/null
cargo fetch --locked

build() {
    local folder=$1
    mkdir -p "$folder/source/target" "$folder/cargo"
    git ls-files -z | xargs -0 cp --parents --target-directory "$folder/source"
    cp -r target/tools "$folder/source/target/tools"
    # A copy, so that the second build needs no download.
    cp -r "${CARGO_HOME:-$HOME/.cargo}/registry" "$folder/cargo/registry"
    env -u CARGO_TARGET_DIR CARGO_HOME="$folder/cargo" "$folder/source/hack/release-build.sh" "${@:2}"
}

one=$(build "$work/one" "$@")
two=$(build "$work/a-longer-path/two" "$@")
sha256sum "$one" "$two"
cmp "$one" "$two"
echo "reproducible: ok, the two binaries are the same ($(stat --format %s "$one") bytes)"
