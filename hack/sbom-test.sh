#!/usr/bin/env bash
# Tests hack/sbom.sh, and the list of crates inside a binary that `cargo auditable` built. See --help.
set -euo pipefail

help() {
    cat <<'HELP'
usage: hack/sbom-test.sh BINARY

Checks that the output of hack/sbom.sh and the section .dep-v0 of BINARY both list every crate that `cargo tree` names for this machine, with
its version, and no crate that is not in Cargo.lock (both may name optional crates that are not compiled); and that hack/sbom.sh writes the
same bytes in another folder.
HELP
}

case ${1-} in
-h | --help) help && exit ;;
esac
[[ $# -eq 1 ]] || { help >&2 && exit 2; }
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
binary=$(realpath -- "$1")
target=$(rustc --print host-tuple)
readonly root binary target
cd "$root"
hack/packages.sh binutils jq pigz

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

"${CARGO:-cargo}" tree --locked --package statusgate --edges normal,build --target "$target" --prefix none --format '{p}' |
    awk '{ sub(/^v/, "", $2); print $1, $2 }' | sort -u >"$work/expected"
awk -F'"' '$1 == "name = " { name = $2 } $1 == "version = " && name { print name, $2; name = "" }' Cargo.lock | sort -u >"$work/locked"
[[ $(wc -l <"$work/expected") -gt 100 ]] || { echo "sbom-test: cargo tree names too few crates" >&2 && exit 1; }

# compare WHAT FILE: FILE has a line `NAME VERSION` per crate.
compare() {
    sort -u "$2" -o "$2"
    if comm -23 "$work/expected" "$2" | grep . >&2; then echo "sbom-test: $1 lacks these crates" >&2 && exit 1; fi
    if comm -13 "$work/locked" "$2" | grep . >&2; then echo "sbom-test: $1 has these crates, Cargo.lock has not" >&2 && exit 1; fi
}

sbom=$(hack/sbom.sh "$target")
jq --raw-output '.metadata.component, .components[] | "\(.name) \(.version)"' "$sbom" >"$work/sbom"
compare "$sbom" "$work/sbom"
# Our packages are not from a registry: they have no hash and, like statusgate, no license.
jq --exit-status '.bomFormat == "CycloneDX" and all(.components[] | select(.name | startswith("statusgate-") | not); .purl and .licenses and .hashes)' "$sbom" >/dev/null ||
    { echo "sbom-test: a component of $sbom has no purl, license or hash" >&2 && exit 1; }

mkdir -p "$work/other/target"
git ls-files --cached --others --exclude-standard -z | xargs -0 cp --parents --target-directory "$work/other"
ln -s "${CARGO_TARGET_DIR:-$root/target}/tools" "$work/other/target/tools"
other=$(cd "$work/other" && env -u CARGO_TARGET_DIR hack/sbom.sh "$target")
cmp "$sbom" "$work/other/$other"

# https://github.com/rust-secure-code/cargo-auditable/blob/master/PARSING.md: JSON, compressed by zlib.
objcopy --dump-section ".dep-v0=$work/dep-v0" "$binary" /dev/null 2>"$work/objcopy" || true
[[ -s $work/dep-v0 ]] || { cat "$work/objcopy" >&2 && echo "sbom-test: $binary has no section .dep-v0" >&2 && exit 1; }
pigz --decompress --zlib --stdout <"$work/dep-v0" >"$work/dep-v0.json"
jq --raw-output '.packages[] | "\(.name) \(.version)"' "$work/dep-v0.json" >"$work/embedded"
compare "$binary" "$work/embedded"

echo "sbom-test: ok, $(wc -l <"$work/sbom") crates in $sbom, $(wc -l <"$work/embedded") in $binary"
