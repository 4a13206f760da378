// Editors for YAML: marks of the engine at their places, and completion from a JSON Schema.

import { el } from "./dom.js";
import {
  EditorState, EditorView, HighlightStyle, autocompletion, bracketMatching, completionKeymap, defaultKeymap,
  drawSelection, history, historyKeymap, indentOnInput, keymap, lineNumbers, lintKeymap, setDiagnostics,
  syntaxHighlighting, tags, yaml,
} from "./editor.js";

// The colors are those of the style sheet, so that they follow the theme.
const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--key)" },
  { tag: [tags.string, tags.content], color: "var(--text)" },
  { tag: [tags.comment, tags.meta, tags.separator, tags.punctuation], color: "var(--quiet)" },
]);

const theme = EditorView.theme({
  "&": { border: "1px solid var(--line)", borderRadius: ".5rem", background: "var(--panel)", fontSize: "13px" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--code)", maxHeight: "26rem", minHeight: "5rem" },
  ".cm-gutters": { background: "none", color: "var(--quiet)", border: "0" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--selected)" },
  ".cm-tooltip": { background: "var(--back)", color: "var(--text)", border: "1px solid var(--line)", maxWidth: "min(36rem, 90vw)" },
});

/**
 * An editor. Tab leaves it, as everywhere on the page. `schema`: a function that returns the schema of a kind.
 *
 * It is in a shadow tree: only there CodeMirror adds its styles as objects, not as <style>, which the policy forbids.
 */
export function editor({ id, label, value, onchange, schema }) {
  const element = el("div", { id });
  const root = element.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: value,
      extensions: [
        lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), yaml(), syntaxHighlighting(colors), theme,
        schema ? autocompletion({ override: [(context) => complete(context, schema)] }) : [],
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, ...lintKeymap]),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => update.docChanged && onchange()),
      ],
    }),
  });
  return {
    element,
    value: () => view.state.doc.toString(),
    set(text) {
      if (text !== view.state.doc.toString()) {
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
      }
    },
    /** Marks `{line, column, endColumn, message, severity}`. */
    mark(list) {
      const marks = list.map(({ line, column, endColumn, message, severity }) => {
        const of = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
        const at = (place) => of.from + [...of.text].slice(0, place - 1).join("").length;
        return { from: at(column), to: at(endColumn), message, severity };
      });
      view.dispatch(setDiagnostics(view.state, marks));
    },
    go(line, column) {
      const of = view.state.doc.line(Math.min(line, view.state.doc.lines));
      view.dispatch({ selection: { anchor: Math.min(of.from + column - 1, of.to) }, scrollIntoView: true });
      view.focus();
    },
  };
}

async function complete(context, schemaOf) {
  const { number, from, text } = context.state.doc.lineAt(context.pos);
  const before = text.slice(0, context.pos - from);
  const typed = /[\w.]*$/.exec(before)[0];
  if (!typed && !context.explicit) return null;
  const lines = context.state.doc.toString().split("\n");
  let start = number - 1;
  while (start > 0 && !lines[start].startsWith("---")) start -= 1;
  const kind = lines.slice(start).join("\n").match(/^kind: *(\w+)/m)?.[1];
  const schema = await schemaOf(kind);
  if (!schema) return null;
  const ofValue = /^[\s-]*([\w.]+): +[\w.]*$/.exec(before);
  const path = parents(lines, start, number - 1, /^[\s-]*/.exec(before)[0].length);
  if (!/^[\s-]*[\w.]*$/.test(before) && !ofValue) return null;
  const nodes = (ofValue ? [...path, ofValue[1]] : path).reduce(
    (nodes, key) => nodes.flatMap((node) => member(schema, node, key)), variants(schema, schema));
  const options = ofValue
    ? nodes.flatMap((node) => [node.const, ...(node.enum ?? [])].filter((value) => value !== undefined)
      .map((value) => ({ label: String(value), info: node.description, type: "constant" })))
    : nodes.flatMap((node) => Object.entries(node.properties ?? {})
      .map(([key, of]) => ({ label: key, apply: `${key}: `, info: of.description, type: "property" })));
  const known = new Map(options.map((option) => [option.label, option]));
  return { from: context.pos - typed.length, options: [...known.values()], validFor: /^[\w.]*$/ };
}

/** The keys above a line that are indented less. */
function parents(lines, start, at, indent) {
  const path = [];
  for (let line = at - 1; line >= start && indent > 0; line -= 1) {
    const found = /^([\s-]*)([\w./-]+):/.exec(lines[line]);
    const dash = /^\s*- /.test(lines[line]);
    if (found && found[1].length < indent && !(dash && found[1].replace(/- /g, "").length >= indent)) {
      path.unshift(found[2]);
      indent = /^\s*/.exec(lines[line])[0].length;
      // A key behind a dash belongs to the list of a key that may have the same indentation.
      if (dash) indent += 1;
    }
  }
  return path;
}

/** The alternatives of a node, without references. */
function variants(schema, node) {
  if (!node || typeof node !== "object") return [];
  const target = node.$ref ? schema.$defs[node.$ref.replace("#/$defs/", "")] : null;
  const others = [target, ...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])].filter(Boolean);
  return [node, ...others.flatMap((other) => variants(schema, other)), ...variants(schema, node.items)];
}

function member(schema, node, key) {
  return variants(schema, node.properties?.[key] ?? node.additionalProperties);
}
