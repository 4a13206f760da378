#!/usr/bin/env bash
# Builds the documentation site in target/site: the pages of docs/, a page of all commands from their help, a page of the keys of documents from
# their schemas, and in play/ the page of `statusgate ui` with the engine as WebAssembly. A browser shows play/ only over HTTP.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
hack/packages.sh jq
target=${CARGO_TARGET_DIR:-$PWD/target}
statusgate=$target/debug/statusgate source=$target/site-source
mdbook=$(hack/tool.sh mdbook)
rm -rf "$source" "$target/site"
cp -r docs "$source"
"$statusgate" export dictionary >"$source/dictionary.json"
# mdBook writes README.md as index.html, but does not change the links to it.
find "$source" -name '*.md' ! -name SUMMARY.md -exec sed -i 's|README\.md)|index.md)|g' {} +

# describe COMMAND…: its help, and that of its subcommands.
describe() {
    local help subcommand
    help=$("$statusgate" "$@" --help)
    printf '\n## statusgate %s\n\n```text\n%s\n```\n' "$*" "$help"
    while read -r subcommand _; do
        [[ $subcommand == help ]] || describe "$@" "$subcommand"
    done < <(sed -n '/^Commands:/,/^$/s/^  \([a-z]\)/\1/p' <<<"$help")
}
{
    printf '# Commands\n\nWhat `statusgate COMMAND --help` prints.\n'
    while read -r command _; do
        [[ $command == help ]] || describe "$command"
    done < <("$statusgate" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\)/\1/p')
} >"$source/commands.md"

{
    printf '# Keys of the documents\n\nFrom the JSON Schemas. [StatusPolicy](policies.md) and [StatusConvention](conventions.md) explain them.\n'
    for kind in statuspolicy statusconvention; do
        jq --raw-output '
            def name: .["$ref"] | split("/") | last;
            def type($prefix):
                if .["$ref"] then "[\(name)](#\($prefix)\(name | ascii_downcase))"
                elif .enum then .enum | map("`\(tojson)`") | join(", ")
                elif .const then "`\(.const | tojson)`"
                elif .type == "array" and .items then "list of " + (.items | type($prefix))
                elif .type == "object" and (.additionalProperties | type == "object") then "map to " + (.additionalProperties | type($prefix))
                elif .anyOf or .oneOf or .allOf then (.anyOf // .oneOf // .allOf) | map(type($prefix)) | join(" or ")
                elif .type | type == "array" then .type | join(" or ")
                else .type // "any value" end;
            def line: gsub("\\s+"; " ") | gsub("\\|"; "\\|");
            def keys($prefix; $required):
                if .properties then "\n| key | value | |\n|---|---|---|",
                    (.properties | to_entries[] | "| `\(.key)`\(if .key | IN($required[]) then " (required)" else "" end) | \(.value | type($prefix)) | \(.value.description // "" | line) |")
                else "\n\(type($prefix))" end;
            (.title | ascii_downcase + "-") as $prefix
            | "\n## \(.title)\n\n\(.description // "")", keys($prefix; .required // []),
            (.["$defs"] | to_entries[] | "\n### \(.key) {#\($prefix)\(.key | ascii_downcase)}\n\n\(.value.description // "")", (.value | keys($prefix; .required // [])))
        ' "docs/schemas/$kind.json"
    done
} >"$source/documents.md"

# Each convention can be played with in its page.
for page in "$source"/conventions/*.md; do
    name=$(basename "$page" .md)
    [[ $name == README ]] || printf '\n## Play\n\n<iframe class="play" title="%s: its states" loading="lazy" src="../play/index.html?embedded#/conventions/%s"></iframe>\n' "$name" "$name" >>"$page"
done
cat >>"$source/ui.md" <<<$'\n**[Open the page](play/index.html)**, with the engine in your browser.'

"$mdbook" build --dest-dir "$target/site" "$source"
mkdir "$target/site/play"
cp src/ui/page/*.{html,css,js} "$target/site/play"
cp src/ui/wasm/*.js "$target/site/play"
gzip --decompress --stdout src/ui/page/editor.js.gz >"$target/site/play/editor.js"
cp "$(hack/wasm.sh)" "$target/site/play/engine.wasm"
policy="default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
sed -i "s|<meta charset=\"utf-8\">|&\n<meta http-equiv=\"content-security-policy\" content=\"$policy\">|" "$target/site/play/index.html"
dead=$(cd "$target/site" && find . -name '*.html' ! -name 404.html | while read -r page; do
    grep --only-matching --extended-regexp 'href="[^":?#]+["#]' "$page" | sed 's/^href="//; s/.$//' | sort --unique | while read -r link; do
        [[ -e $(dirname "$page")/$link ]] || echo "$page: $link"
    done
done)
[[ -z $dead ]] || { printf 'site: dead links\n%s\n' "$dead" >&2 && exit 1; }
echo "site: $(find "$target/site" -name '*.html' | wc -l) pages in $target/site" >&2
