// A write, and what comes of it: the webhooks' verdict, kubectl's output, and what readers see.

import { keep, pack, unpack } from "./address.js";
import { call } from "./calls.js";
import { badge, el, show, table } from "./dom.js";
import { editor } from "./yaml.js";

const DELAY = 150;

/** A write that the policy of AppCat rejects. */
const EXAMPLE = {
  object: `apiVersion: vshn.appcat.vshn.io/v1
kind: VSHNRedis
metadata:
  name: cache
  namespace: shop
  generation: 2
status:
  phase: Ready
  conditions:
    - type: Ready
      status: "False"
      reason: Creating
      message: waiting for the release
      lastTransitionTime: "2026-01-01T00:00:00Z"
`,
};

const FIELDS = ["object", "old", "documents", "convention", "user", "groups", "plural", "now"];

/** Shows the place. Returns the title. */
export async function visit(element, _path, query) {
  const state = query.has("s") ? await unpack(query.get("s")) : EXAMPLE;
  const { conventions } = await call("conventions");
  const schemas = {};
  const schema = (kind) => kind && (schemas[kind] ??= call("schema", { kind }).catch(() => null));
  const editors = {
    object: editor({ id: "object", label: "Object", value: state.object ?? "", onchange: changed }),
    old: editor({ id: "old", label: "Stored object", value: state.old ?? "", onchange: changed }),
    documents: editor({ id: "documents", label: "Policies and conventions", value: state.documents ?? "", onchange: changed, schema }),
  };
  const input = (name, placeholder) =>
    el("input", { id: name, value: state[name] ?? "", placeholder, spellcheck: "false", autocomplete: "off", oninput: changed });
  const inputs = {
    user: input("user", "system:serviceaccount:NAMESPACE:NAME"),
    groups: input("groups", "separated by spaces"),
    plural: input("plural", "as the kind suggests"),
    now: input("now", "now"),
  };
  const convention = el("select", { id: "convention", onchange: changed },
    el("option", { value: "" }, "the documents below, or the example policies"),
    conventions.map(({ name }) => el("option", { value: name, selected: state.convention === name }, `convention ${name}`)));
  const samples = el("select", { id: "samples", onchange: sample },
    el("option", { value: "" }, "choose …"),
    conventions.map(({ name, rules }) => el("optgroup", { label: name }, rules.flatMap((rule) => [
      el("option", { value: rule }, `violates ${rule}`),
    ]))));
  const result = el("div", { class: "result" });
  // Readers of the screen announce this line, not all of the result.
  const said = el("p", { class: "hidden", role: "status" });
  const more = el("div", { class: "more" });

  function values() {
    const values = { convention: convention.value };
    for (const [name, of] of Object.entries(editors)) values[name] = of.value();
    for (const [name, of] of Object.entries(inputs)) values[name] = of.value.trim();
    return values;
  }
  function request() {
    const { convention, groups, now, ...texts } = values();
    return {
      ...texts,
      convention: convention || null,
      groups: groups.split(/[\s,]+/).filter(Boolean),
      now: now || new Date().toISOString(),
    };
  }
  function set(state) {
    for (const [name, of] of Object.entries(editors)) of.set(state[name] ?? "");
    for (const [name, of] of Object.entries(inputs)) of.value = state[name] ?? "";
    convention.value = state.convention ?? "";
  }

  let timer;
  let running = new AbortController();
  function changed() {
    clearTimeout(timer);
    timer = setTimeout(judge, DELAY);
  }
  async function judge() {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const filled = Object.entries(values()).filter(([name, value]) => FIELDS.includes(name) && value);
    if (element.isConnected) keep("playground", { s: await pack(Object.fromEntries(filled)) });
    try {
      const answer = await call("judge", request(), signal);
      if (signal.aborted) return;
      mark(answer);
      show(result, answer.judged ? verdict(answer.judged, editors.object) : mistakes(answer.mistakes));
      said.textContent = result.firstChild.textContent;
    } catch (error) {
      if (!signal.aborted) show(result, el("p", { class: "error" }, error.message));
    }
  }
  function mark({ mistakes, warnings = [], judged }) {
    const found = judged?.findings ?? [];
    const marks = [
      ...mistakes.map((mistake) => ({ ...mistake, severity: "error" })),
      ...warnings.map((warning) => ({ ...warning, severity: "warning" })),
      ...found.map(({ text, place, finding }) => ({ ...place, file: "object", message: text, severity: severity(finding.action) })),
    ];
    for (const [name, of] of Object.entries(editors)) {
      of.mark(marks.filter(({ file }) => file === name).map((one) =>
        ({ ...one, message: one.help ? `${one.message}\nhelp: ${one.help}` : one.message })));
    }
  }
  async function sample() {
    const rule = samples.value;
    if (!rule) return;
    const { violating, satisfying } = await call("rule", { rule });
    const example = violating ?? satisfying;
    if (!example) return show(result, el("p", {}, "No example was found for this rule."));
    set({ ...example, convention: rule.split("/")[0] });
    judge();
  }
  async function testCase() {
    await action(async () => {
      const { case: text, mistakes: found } = await call("case", request());
      return text ? code("A case for `statusgate test`", text) : mistakes(found);
    });
  }
  async function lint() {
    await action(async () => {
      const { convention, documents } = request();
      if (!documents.trim()) return el("p", {}, "There is no document to check.");
      const answer = await call("lint", { documents, convention });
      const reports = [...answer.conventions ?? [], ...answer.policies ?? []];
      return answer.mistakes.length ? mistakes(answer.mistakes) : reports.map(report);
    });
  }
  async function action(of) {
    show(more, el("p", { class: "quiet" }, "…"));
    show(more, await of().catch((error) => el("p", { class: "error" }, error.message)));
    more.scrollIntoView({ block: "nearest" });
  }

  const field = (name, label, of) => el("div", { class: "field" }, el("label", { for: name }, label), of);
  const folded = (title, isOpen, ...children) => el("details", { open: isOpen }, el("summary", {}, title), children);
  show(element,
    el("h1", {}, "Playground"),
    el("div", { class: "columns wide" },
      el("div", { class: "inputs" },
        el("div", { class: "row" }, field("convention", "Judge by", convention), field("samples", "Sample", samples)),
        el("h2", {}, "Object"),
        el("p", { class: "quiet" }, "As it is written: YAML or JSON. Also an AdmissionReview, or an event of an audit log."),
        editors.object.element,
        folded("Stored object", Boolean(state.old), editors.old.element),
        folded("Writer and request", Boolean(state.user || state.plural || state.now),
          el("div", { class: "row" },
            field("user", "User", inputs.user), field("groups", "Groups", inputs.groups),
            field("plural", "Resource (plural)", inputs.plural), field("now", "Time", inputs.now))),
        folded("Policies and conventions", Boolean(state.documents), editors.documents.element,
          el("p", {}, el("button", { type: "button", onclick: lint }, "Check the documents")))),
      el("div", { class: "outcome" }, said, result,
        el("p", {}, el("button", { type: "button", id: "case", onclick: testCase }, "Make a test case")), more)));
  await judge();
  return "Playground";
}

function severity(action) {
  return { deny: "error", repair: "warning", warn: "warning" }[action] ?? "info";
}

function mistakes(list) {
  return [
    el("p", {}, badge("not judged", "unknown")),
    el("ul", {}, list.map(({ file, line, column, message, help }) =>
      el("li", {}, `${file}:${line}:${column}: ${message}`, help && el("div", { class: "quiet" }, `help: ${help}`)))),
  ];
}

function verdict(judged, object) {
  const { identity, resource, subresource, operation, policies, unjudged, kubectl, findings, patch, before, after, readers } = judged;
  const isDenied = judged.mutate.allowed === false || judged.validate.allowed === false;
  const [word, meaning] = isDenied ? ["denied", "failed"] : unjudged ? ["not judged", "unknown"] : ["allowed", "current"];
  const health = readers.retried ? `${readers.health} (retried)` : readers.health;
  const go = ({ place }) => () => object.go(place.line, place.column);
  return [
    el("p", { class: "verdict" }, badge(word, meaning), ` ${identity} `,
      el("small", { class: "quiet" }, `${operation} ${resource}${subresource && `/${subresource}`} · `,
        unjudged ?? `judged by ${policies.join(", ")}`)),
    el("h2", {}, "kubectl prints"),
    el("pre", { class: "terminal", tabindex: "0" }, kubectl),
    el("h2", {}, `Findings (${findings.length})`),
    findings.length === 0 ? el("p", { class: "quiet" }, "None.")
      : el("ul", { class: "findings" }, findings.map((found) => el("li", {},
        badge(found.finding.action, severity(found.finding.action)), " ",
        el("button", { type: "button", class: "link", onclick: go(found) }, found.finding.field), ` ${found.finding.message} `,
        ruleLink(found.finding.rule)))),
    el("h2", {}, "The mutating webhook"),
    patch.length === 0 ? el("p", { class: "quiet" }, "Changes nothing.") : difference(before, after) ?? el("pre", { tabindex: "0" }, patch.join("\n")),
    el("h2", {}, isDenied ? "Readers would see" : "Readers see"),
    isDenied && el("p", { class: "quiet" }, "The write is rejected, so they still see the stored object."),
    table(["", "", "why"], [
      ["health", badge(health, readers.health), readers.healthReason],
      ["kstatus", readers.error ? "error" : readers.status, readers.message],
      readers.admissiblePhases && ["phase", readers.phase ?? "none", readers.contradiction ?? `admissible: ${readers.admissiblePhases.join(", ")}`],
      ["Argo CD", readers.argocd, "with a health script of this convention"],
      ["Flux", readers.flux, "with health expressions of this convention"],
    ].filter(Boolean), (content) => content),
    el("details", {}, el("summary", {}, "The responses of both webhooks"),
      el("h3", {}, "/mutate"), el("pre", { tabindex: "0" }, JSON.stringify(judged.mutate, null, 2)),
      el("h3", {}, "/validate"), el("pre", { tabindex: "0" }, JSON.stringify(judged.validate, null, 2))),
  ];
}

/** Only built-in conventions have pages. A policy for everything names its rules by the convention. */
function ruleLink(rule) {
  return el("a", { href: `#/conventions/${rule.replace("/", "/rules/")}` }, rule);
}

function report({ name, faults, notes }) {
  const remarks = [...faults.map((fault) => ["fault", fault]), ...notes.map((note) => ["note", note])];
  return el("section", {}, el("h2", {}, name),
    remarks.length === 0 ? el("p", { class: "quiet" }, "No faults, no notes.")
      : el("ul", { class: "findings" }, remarks.map(([level, { kind, message, help, witness }]) =>
        el("li", {}, badge(`${level} ${kind}`, level === "fault" ? "error" : "info"), ` ${message}`,
          el("div", { class: "quiet" }, help), witness && el("pre", { tabindex: "0" }, witness)))));
}

function code(title, text) {
  const copy = async (event) => {
    await navigator.clipboard.writeText(text);
    event.target.textContent = "Copied";
  };
  return [el("h2", {}, title), el("pre", { tabindex: "0" }, text),
    navigator.clipboard && el("button", { type: "button", onclick: copy }, "Copy")];
}

/** Two texts as lines: those of both, removed ones and added ones; null if they are too long to compare. */
function difference(before, after) {
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
