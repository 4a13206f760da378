#!/usr/bin/env bash
# Writes the list of the crates in the binary as CycloneDX JSON, and prints the path of the file.
#
#     hack/sbom.sh [TARGET]
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

target=${1-$(rustc --print host-tuple)}
cyclonedx=$(hack/tool.sh cargo-cyclonedx)
hack/packages.sh jq

name=statusgate-$target.cdx
folder=${CARGO_TARGET_DIR:-target}/sbom
mkdir -p "$folder"
# The tool writes next to each Cargo.toml; the list of the root package has our other packages and their crates. SOURCE_DATE_EPOCH leaves out the random serial number.
SOURCE_DATE_EPOCH=0 "$cyclonedx" cyclonedx --quiet --format json --spec-version 1.5 --target "$target" --override-filename "$name"
# The same sources give the same bytes: no time, and the folder that the Dockerfile uses.
jq --arg root "$PWD" 'del(.metadata.timestamp) | walk(strings |= (split($root) | join("/src")))' "$name.json" >"$folder/$name.json"
rm "$name.json" {crates/*,fuzz}/"$name.json"
echo "$folder/$name.json"
