// What `statusgate doctor` finds in a cluster, and its policies.

import { call } from "./calls.js";
import { pages } from "./cluster.js";
import { badge, el, show, table } from "./dom.js";

const LEVELS = { problem: "failed", warning: "warning", ok: "current" };

/** Shows `doctor` or `policies`. Returns the title. */
export async function visit(element, place) {
  const of = { doctor: ["Doctor", doctor], policies: ["Policies", policies] }[place];
  if (!of) throw new Error(`There is no place "cluster/${place}".`);
  const [title, body] = of;
  const answer = await call(place);
  show(element, el("h1", {}, title), pages(title), body(answer));
  return title;
}

function doctor({ checks }) {
  const levels = Object.keys(LEVELS);
  const sorted = checks.toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
  const counts = levels.map((level) => `${level} ${checks.filter((check) => check.level === level).length}`);
  return [
    el("p", { class: "quiet" }, counts.join(" · ")),
    table(["", "check", "found"], sorted.map(({ level, check, of, found, help }) =>
      [badge(level, LEVELS[level]), check, el("div", { class: "found" }, el("strong", {}, of), el("div", {}, found), help && el("div", { class: "quiet" }, `→ ${help}`))]), cell),
  ];
}

function policies({ inUse, documents, unread }) {
  return [
    el("p", {}, `These policies judge: ${inUse.join(", ")}`),
    unread.map((reason) => el("p", { class: "error" }, reason)),
    documents.length === 0 && el("p", { class: "quiet" }, "The cluster has no policies and no conventions of its own."),
    table(["kind", "name", "convention", "enforcement", "conditions"], documents.map(({ kind, name, convention, enforcement, conditions }) =>
      [kind, name, convention ?? "", enforcement ?? "",
        (conditions ?? []).map(({ type, status, reason, message }) => el("div", {},
          badge(`${type}=${status}`, { True: "current", False: "failed" }[status] ?? "unknown"), ` ${reason ?? ""} `, el("small", {}, message ?? "")))]), cell),
  ];
}

function cell(content) {
  return content;
}
