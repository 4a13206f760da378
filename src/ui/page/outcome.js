// The outcome of a write: the verdict of both webhooks, their findings and patch, and what readers see.

import { badge, el, folded, table } from "./dom.js";

export function severity(action) {
  return { deny: "error", repair: "warning", warn: "warning" }[action] ?? "info";
}

/** Only what failed is red. */
export function findingColor(action) {
  return severity(action) === "info" ? "info" : "warning";
}

export function mistakes(list) {
  return [
    el("p", {}, badge("not judged", "unknown")),
    el("ul", {}, list.map(({ file, line, column, message, help }) =>
      el("li", {}, `${file}:${line}:${column}: ${message}`, help && el("div", { class: "quiet" }, `help: ${help}`)))),
  ];
}

/** A write, or with `isStored` an object that is judged as it is. */
export function verdict(judged, object, isStored = false) {
  const { identity, resource, subresource, operation, policies, unjudged, kubectl, findings, patch, before, after, readers } = judged;
  const isDenied = judged.mutate.allowed === false || judged.validate.allowed === false;
  const [word, meaning] = isDenied ? ["denied", isStored ? "warning" : "failed"] : unjudged ? ["not judged", "unknown"] : ["allowed", "current"];
  const health = readers.retried ? `${readers.health} (retried)` : readers.health;
  const go = ({ place }) => () => object.go(place.line, place.column);
  return [
    el("p", { class: "verdict" }, badge(word, meaning), ` ${identity} `,
      el("small", { class: "quiet" }, `${operation} ${resource}${subresource && `/${subresource}`} · `,
        unjudged ?? `judged by ${policies.join(", ")}`)),
    !isStored && [el("h2", {}, "kubectl prints"), el("pre", { class: "terminal", tabindex: "0" }, kubectl)],
    el("h2", {}, `Findings (${findings.length})`),
    findings.length === 0 ? el("p", { class: "quiet" }, "None.")
      : el("ul", { class: "findings" }, findings.map((found) => el("li", {},
        badge(found.finding.action, findingColor(found.finding.action)), " ",
        el("button", { type: "button", class: "link", onclick: go(found) }, found.finding.field), " ", folded(found.finding.message), " ",
        found.builtIn ? ruleLink(found.finding.rule) : found.finding.rule))),
    el("h2", {}, "The mutating webhook"),
    patch.length === 0 ? el("p", { class: "quiet" }, "Changes nothing.") : difference(before, after) ?? el("pre", { tabindex: "0" }, patch.join("\n")),
    el("h2", {}, isDenied && !isStored ? "Readers would see" : "Readers see"),
    isDenied && !isStored && el("p", { class: "quiet" }, "The write is rejected, so they still see the stored object."),
    table(["", "", "why"], [
      ["health", badge(health, readers.health), folded(readers.healthReason)],
      ["kstatus of kubernetes-sigs", readers.error ? "error" : readers.status, folded(readers.message)],
      readers.admissiblePhases && ["phase", readers.phase ?? "none", readers.contradiction ?? `admissible: ${readers.admissiblePhases.join(", ")}`],
      readers.exported ? ["Argo CD", readers.argocd, "with a health script of this convention"]
        : ["Argo CD", "unknown", "There is no convention to make a health script of. It may have its own."],
      ["Flux", readers.flux, readers.exported ? "with health expressions of this convention" : "with its kstatus, of fluxcd"],
    ].filter(Boolean), (content) => content),
    el("details", {}, el("summary", {}, "The responses of both webhooks"),
      el("h3", {}, "/mutate"), el("pre", { tabindex: "0" }, JSON.stringify(judged.mutate, null, 2)),
      el("h3", {}, "/validate"), el("pre", { tabindex: "0" }, JSON.stringify(judged.validate, null, 2))),
  ];
}

function ruleLink(rule) {
  return el("a", { href: `#/conventions/${rule.replace("/", "/rules/")}` }, rule);
}

/** Two texts as lines: those of both, removed ones and added ones; null if they are too long to compare. */
export function difference(before, after) {
  const [a, b] = [before, after].map((text) => text.replace(/\n$/, "").split("\n"));
  if (a.length * b.length > 4e6) return null;
  // The lengths of the longest common rests.
  const rests = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      rests[i][j] = a[i] === b[j] ? rests[i + 1][j + 1] + 1 : Math.max(rests[i + 1][j], rests[i][j + 1]);
    }
  }
  const lines = [];
  const add = (sign, kind, text) => lines.push(el("span", { class: kind }, `${sign} ${text}\n`));
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) add(" ", "same", a[(j += 1, i++)]);
    else if (j === b.length || (i < a.length && rests[i + 1][j] >= rests[i][j + 1])) add("-", "removed", a[i++]);
    else add("+", "added", b[j++]);
  }
  return el("pre", { class: "difference", tabindex: "0" }, lines);
}
