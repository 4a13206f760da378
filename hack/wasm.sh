#!/usr/bin/env bash
# Checks that crates/statusgate-core compiles for wasm32-unknown-unknown, without its tests.
#
# After `rustup target add wasm32-unknown-unknown`, the toolchain has the standard library of this target. Otherwise Debian's rustc-web
# compiles it from source, which is unstable in cargo, hence RUSTC_BOOTSTRAP.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

target=wasm32-unknown-unknown
options=(--locked --package statusgate-core --target "$target" --target-dir target/wasm)
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]]; then
    hack/packages.sh rustc-web rust-web-src
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
    options+=(-Zbuild-std=std,panic_abort)
fi
"${CARGO:-cargo}" check "${options[@]}"
echo "wasm: ok, statusgate-core compiles for $target with $("${RUSTC:-rustc}" --version)"
