#!/usr/bin/env bash
# Builds the binary of a release and prints its path. The Dockerfile and hack/reproducible.sh use it.
#
#     hack/release-build.sh                            for this machine
#     hack/release-build.sh aarch64-unknown-linux-gnu  needs this target of Rust, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross
#     hack/release-build.sh --example null_server      a program of examples/, built in the same way
#
# The binary is static, has the list of its crates in the section .dep-v0 (for `cargo audit bin` and image scanners), and does not depend on
# the folders of the build.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

example=
[[ ${1-} != --example ]] || { example=$2 && shift 2; }
host=$(rustc --print host-tuple)
target=${1-$host}
build=$(realpath --canonicalize-missing -- "${CARGO_TARGET_DIR:-target}")
program=(--bin statusgate) source=src/main.rs binary=$build/$target/release/statusgate
if [[ -n $example ]]; then
    program=(--example "$example") source=examples/$example.rs binary=$build/$target/release/examples/$example
fi
auditable=$(hack/tool.sh cargo-auditable)

# Messages of panics contain paths of source files. The separator is the one of CARGO_ENCODED_RUSTFLAGS, so paths may contain spaces.
flags=(
    -C target-feature=+crt-static
    --remap-path-prefix="$PWD=/src"
    --remap-path-prefix="$build=/src/target"
    --remap-path-prefix="${CARGO_HOME:-$HOME/.cargo}=/cargo"
)
if [[ $target == x86_64-* ]]; then
    # 37,000 relative relocations need 0.9 MB, which the start of the program makes resident; packed, they need 10 KB. The static glibc
    # must be 2.36 or newer. Debian 12's linker cannot do this for arm64.
    flags+=(-C link-arg=-Wl,-z,pack-relative-relocs)
    # The functions that a server executes lie next to one another. The kernel makes at least 64 KB of code resident at once, so a server
    # whose functions lie anywhere has two thirds of the program in memory, and executes a fifth (docs/speed.md). The path is relative,
    # because the flags become a part of the names of symbols.
    mkdir -p target
    {
        echo 'SECTIONS { .text.hot : {'
        sed '/^#/d; s/.*/*(.text.& .text.unlikely.&)/' hack/hot-functions.txt
        echo '} } INSERT BEFORE .text;'
    } >target/hot-functions.ld
    flags+=(-C link-arg=-Wl,--script=target/hot-functions.ld)
    # Cargo does not know that the program depends on the list.
    [[ hack/hot-functions.txt -ot $binary ]] || touch "$source"
fi
CARGO_ENCODED_RUSTFLAGS=$(printf '%s\x1f' "${flags[@]}")
export CARGO_ENCODED_RUSTFLAGS=${CARGO_ENCODED_RUSTFLAGS%$'\x1f'}

if [[ $target != "$host" ]]; then
    linker=CARGO_TARGET_${target^^}_LINKER
    export "${linker//-/_}=${target%%-*}-linux-gnu-gcc"
fi

# Cargo makes the path of a wrapper a part of every symbol's name, and `cargo auditable build` would set its own absolute path. So these two
# variables do what it does, with a name that cargo finds in PATH. hack/sbom-test.sh checks that the section exists.
export PATH="${auditable%/*}:$PATH"
export RUSTC_WORKSPACE_WRAPPER=${auditable##*/}
export CARGO_AUDITABLE_ORIG_ARGS='{"offline":false,"locked":true,"frozen":false,"config":[]}'

# Without --target, the flags would also apply to procedural macros. These are shared libraries, which crt-static does not allow.
"${CARGO:-cargo}" build --release --locked "${program[@]}" --target "$target" >&2

# A binary that needs a shared library does not start in an empty image.
if readelf --dynamic --program-headers "$binary" | grep -E 'NEEDED|INTERP' >&2; then
    echo "release-build: $binary is not static" >&2
    exit 1
fi
# The list has the functions of statusgate.
if [[ $target == x86_64-* && -z $example ]]; then
    hot=$(size --format=sysv "$binary" | awk '$1 == ".text.hot" { print int($2 / 1024) }')
    echo "release-build: ${hot:-0} KB of functions are next to one another" >&2
    # The names in the list are those of one compiler and of versions of crates.
    ((${hot:-0} >= 4000)) || echo 'release-build: warning: hack/hot-functions.txt hardly matches; run `make hot-functions`' >&2
fi
# A program with packed relocations and an older glibc crashes at its start.
[[ $target != "$host" || -n $example ]] || "$binary" --version >&2
echo "$binary"
