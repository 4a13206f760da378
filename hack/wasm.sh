#!/usr/bin/env bash
# Builds crates/statusgate-wasm for wasm32-unknown-unknown, and prints the path of the module.
#
# After `rustup target add wasm32-unknown-unknown`, the toolchain has the standard library of this target. Otherwise Debian's rustc-web
# compiles it from source, which is unstable in cargo, hence RUSTC_BOOTSTRAP.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

target=wasm32-unknown-unknown
options=(--quiet --locked --package statusgate-wasm --profile wasm --target "$target" --target-dir target/wasm)
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]]; then
    hack/packages.sh rustc-web rust-web-src lld
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=/usr/bin/wasm-ld
    options+=(-Zbuild-std=std,panic_abort)
fi
# A wrapper such as clippy-driver belongs to the other compiler.
env -u RUSTC_WORKSPACE_WRAPPER "${CARGO:-cargo}" build "${options[@]}"
module=target/wasm/$target/wasm/statusgate_wasm.wasm
echo "wasm: $(stat -c %s "$module") bytes, $(gzip -9 -c "$module" | wc -c) compressed, with $("${RUSTC:-rustc}" --version)" >&2
echo "$module"
