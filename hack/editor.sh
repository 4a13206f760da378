#!/usr/bin/env bash
# Bundles CodeMirror for the page of `statusgate ui`. The result is checked in, so that no build needs npm.
#
#     hack/editor.sh            writes src/ui/page/editor.js.gz
#     hack/editor.sh --check    fails if that file has another content
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

bundle=src/ui/page/editor.js.gz
folder=${CARGO_TARGET_DIR:-target}/editor
type -P npm > /dev/null || hack/packages.sh npm
mkdir -p "$folder"
cp hack/editor/{package.json,package-lock.json,editor.js} "$folder"
(cd "$folder" && npm ci --silent --no-audit --no-fund --ignore-scripts)
"$folder/node_modules/.bin/esbuild" "$folder/editor.js" --bundle --minify --format=esm --target=es2022 \
    --legal-comments=none --log-level=warning --outfile="$folder/bundle.js" \
    --banner:js='/* CodeMirror and Lezer, MIT license, Copyright (C) 2018 by Marijn Haverbeke and others */'

if [[ ${1-} != --check ]]; then
    gzip --best --no-name --stdout "$folder/bundle.js" > "$bundle"
elif ! gzip --decompress --stdout "$bundle" | cmp --silent - "$folder/bundle.js"; then
    echo "editor.sh: $bundle is not the bundle of hack/editor; run \`make ui-editor\`" >&2
    exit 1
else
    echo "editor.sh: ok, $bundle is the bundle of hack/editor, $(stat -c %s "$bundle") bytes" >&2
fi
