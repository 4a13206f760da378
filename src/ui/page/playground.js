// A write, and what comes of it: the webhooks' verdict, kubectl's output, and what readers see.

import { keep, pack, unpack } from "./address.js";
import { call } from "./calls.js";
import { badge, el, show } from "./dom.js";
import { mistakes, severity, verdict } from "./outcome.js";
import { editor } from "./yaml.js";

const DELAY = 150;
/** The longest address that mail and chat programs keep as one link, in characters. */
const LONGEST = 8000;

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
  const recorded = el("textarea", { id: "recorded", rows: "6", spellcheck: "false", "aria-label": "Recorded writes" });
  const result = el("div", { class: "result" });
  // Readers of the screen announce this line, not all of the result.
  const said = el("p", { class: "hidden", role: "status" });
  const more = el("div", { class: "more" });
  const long = el("p", { class: "quiet", id: "long" });

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
    const packed = await pack(Object.fromEntries(filled));
    if (element.isConnected) keep("playground", { s: packed });
    show(long, packed.length > LONGEST && `The address of this write has ${packed.length.toLocaleString("en")} characters. Many programs cut such a link: send the object as a file.`);
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
  async function draft() {
    await action(async () => {
      const { drafts, mistakes: found } = await call("draft", { writes: recorded.value });
      if (!drafts) return mistakes(found);
      return drafts.map(({ resource, base, document, object, old }) => el("section", {},
        el("h2", {}, `Draft for ${resource}, which extends ${base}`),
        el("p", {}, el("button", { type: "button", onclick: () => play({ documents: document, object, old }) }, "Judge the last write by it")),
        el("pre", { tabindex: "0" }, document)));
    });
  }
  function play(state) {
    set(state);
    judge();
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
          el("p", {}, el("button", { type: "button", onclick: lint }, "Check the documents"))),
        folded("Draft from recorded writes", false,
          el("p", { class: "quiet" }, "Paste lines of `statusgate record`, an audit log, a watch or a list. What was recorded becomes a rule, also if it is a bug."),
          recorded,
          el("p", {}, el("button", { type: "button", id: "draft", onclick: draft }, "Draft a convention")))),
      el("div", { class: "outcome" }, said, result, long,
        el("p", {}, el("button", { type: "button", id: "case", onclick: testCase }, "Make a test case")), more)));
  await judge();
  return "Playground";
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
