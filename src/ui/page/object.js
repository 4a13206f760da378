// One object of a cluster: its conditions on a time line, why it is judged so, and what backfill would write.

import { pack } from "./address.js";
import { call } from "./calls.js";
import { age, pages } from "./cluster.js";
import { badge, el, folded, show, svg, table, visible } from "./dom.js";
import { difference, mistakes, verdict } from "./outcome.js";

/** Shows an object as it is now. Returns the title. */
export async function visit(element, [resource, namespace, name]) {
  const { line, object, yaml, plural, documents } = await call("object", { resource, namespace, name });
  const write = { object: yaml, documents, plural, now: new Date().toISOString() };
  // As audit and backfill judge it: a first write, and a write that changes nothing.
  const [first, again] = await Promise.all([call("judge", write), call("judge", { ...write, old: yaml })]);
  const { generation, uid, creationTimestamp } = object.metadata;
  const text = yamlView(visible(yaml));
  const path = namespace ? `${namespace}/${name}` : name;
  show(element,
    el("p", { class: "path" }, el("a", { href: "#/cluster" }, "Cluster"), ` / ${resource}`),
    el("h1", {}, path),
    pages(),
    line.unjudged && el("p", { class: "error" }, line.unjudged),
    el("p", {}, line.health && badge(line.retried ? `${line.health} (retried)` : line.health, line.health), " ", folded(line.healthReason ?? "")),
    table(["kind", "phase", "since", "policies", "generation", "created", "uid"], [[
      `${line.kind} ${line.apiVersion}`, line.phase, line.since && `${line.since} (${age(line.since)})`, line.policies.join(", "),
      generation && String(generation), creationTimestamp && `${creationTimestamp} (${age(creationTimestamp)})`, uid,
    ]], (content) => content),
    el("h2", {}, "Time line"),
    timeLine(object),
    el("h2", {}, "Why it is judged so"),
    el("p", { class: "quiet" }, "As audit judges it: as if an unnamed user wrote this status for the first time."),
    el("div", { class: "outcome" }, first.judged ? verdict(first.judged, text, true) : mistakes(first.mistakes)),
    el("p", {}, el("a", { class: "button", href: `#/playground?s=${await pack({ object: yaml, documents, plural })}` }, "Open in the playground")),
    el("h2", {}, "What backfill would write"),
    backfill(again),
    el("h2", {}, "The object"),
    text.element);
  return path;
}

function backfill({ judged, mistakes: found }) {
  if (!judged) return mistakes(found);
  if (judged.patch.length === 0) return el("p", { class: "quiet" }, "Nothing.");
  return [difference(judged.before, judged.after), el("pre", { tabindex: "0" }, judged.patch.join("\n"))];
}

/** A text in which a line can be shown, as in an editor. */
function yamlView(text) {
  const element = el("pre", { tabindex: "0", "aria-label": "The object as YAML" }, text);
  const go = (line) => {
    const lines = text.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "center" });
    getSelection().setBaseAndExtent(element.firstChild, start, element.firstChild, start + lines[line - 1].length);
    const place = getSelection().getRangeAt(0).getBoundingClientRect();
    element.scrollTop += place.top - element.getBoundingClientRect().top - element.clientHeight / 2;
  };
  return { element, go };
}

/** The conditions of all lists in a status. */
function conditionsIn(value, path = "") {
  if (Array.isArray(value)) {
    return value.filter((item) => typeof item?.type === "string" && "status" in item).map((item) => ({ ...item, path }));
  }
  if (!value || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, member]) => conditionsIn(member, path ? `${path}.${key}` : key));
}

const ROW = 34;

/** A bar from the last transition of each condition to now. The axis is logarithmic: minutes and months are both visible. */
function timeLine({ metadata, status }) {
  const now = Date.now();
  const conditions = conditionsIn(status).map(({ type, status, path, ...rest }) =>
    ({ ...rest, name: path === "conditions" ? type : `${path}: ${type}`, status: String(status), start: Date.parse(rest.lastTransitionTime) }));
  const events = [["created", metadata.creationTimestamp], ["deleted", metadata.deletionTimestamp]].filter(([, time]) => Date.parse(time));
  if (conditions.length === 0) return el("p", { class: "quiet" }, "There is no condition.");
  const times = [...conditions.map(({ start }) => start), ...events.map(([, time]) => Date.parse(time))];
  const seconds = (time) => Math.max(0, now - time) / 1000;
  const longest = Math.max(60, ...times.filter(Number.isFinite).map(seconds));
  const place = (time) => 98 - (94 * Math.log1p(seconds(time))) / Math.log1p(longest);
  const height = conditions.length * ROW + 42;
  const mark = (time, label, kind, y) => [
    svg("line", { class: kind, x1: `${place(time)}%`, x2: `${place(time)}%`, y1: 16, y2: height - 22 }),
    svg("text", { class: kind, x: `${place(time)}%`, y, "text-anchor": place(time) < 8 ? "start" : "middle" }, label),
  ];
  const ticks = [["1 min", 60], ["1 h", 3600], ["1 d", 86400], ["1 month", 2629800], ["1 y", 31557600], ["10 y", 315576000]];
  const bars = conditions.map(({ name, status, start }, at) => {
    const y = at * ROW + 20;
    const since = Number.isFinite(start) ? age(start, now) : "without a time";
    return [
      Number.isFinite(start) && svg("rect", { class: `is-${{ True: "current", False: "warning" }[status] ?? "unknown"}`,
        x: `${place(start)}%`, width: `${98 - place(start)}%`, y: y + 17, height: 8, rx: 2 }),
      svg("text", { x: 0, y: y + 13 }, `${name} = ${status}, ${since}`),
    ];
  });
  return [
    svg("svg", { class: "timeline", width: "100%", height, role: "img", "aria-label": "When each condition changed last. The table below has the same as text." },
      ticks.filter(([, age]) => age < longest * 0.7).map(([label, age]) => mark(now - age * 1000, label, "tick", height - 6)),
      svg("text", { class: "tick", x: "98%", y: height - 6, "text-anchor": "end" }, "now"),
      events.map(([label, time]) => mark(Date.parse(time), label, label, 12)),
      bars),
    el("details", {}, el("summary", {}, "The conditions as text"),
      table(["condition", "status", "since", "age", "reason", "message"], conditions.map(({ name, status, start, lastTransitionTime, reason, message }) =>
        [name, status, lastTransitionTime, Number.isFinite(start) && age(start, now), reason, message].map((text) => folded(String(text || "")))), (text) => text)),
  ];
}
