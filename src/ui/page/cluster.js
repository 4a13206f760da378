// The audit of a cluster: its objects, those that failed first, and what is in it as bars.

import { keep, step } from "./address.js";
import { call } from "./calls.js";
import { visit as visitChecks } from "./checks.js";
import { badge, el, show, svg, table, words } from "./dom.js";
import { visit as visitObject } from "./object.js";
import { findingColor } from "./outcome.js";

/** The worst first. */
const HEALTHS = ["failed", "unknown", "suspended", "inProgress", "terminating", "current"];
const FINDINGS = ["not judged", "deny", "repair", "warn", "audit", "none"];
/** How many objects and phases are shown at first. A table of all objects would need seconds. */
const [ROWS, PHASES] = [100, 8];
const POLL = 300;
/** Until the next pass while the page is visible, in seconds: at least this, and so many times as long as a pass lasts. */
const [LEAST, TIMES] = [30, 20];
/** Until the next attempt after one that failed, in seconds. */
const RETRY = 5;

/** What a filter of the address selects. */
const FILTERS = {
  kind: (object, value) => object.resource === value,
  policy: (object, value) => object.policies.includes(value),
  health: (object, value) => (object.health ?? "unknown") === value,
  phase: (object, value) => object.phase === value,
  rule: (object, value) => object.findings.some((found) => found.rule === value),
  finding: (object, value) => object.worst === value,
  backfill: (object) => object.toBackfill,
  text: (object, value) => object.path.toLowerCase().includes(value.toLowerCase()),
};

// Both survive a visit to an object.
let pass = { number: 0 };
let rows = ROWS;

/** Shows the audit, `object/RESOURCE/NAMESPACE/NAME`, `doctor` or `policies`. Returns the title. */
export async function visit(element, path, query) {
  const [place, ...rest] = path.split("/");
  if (!place) return audit(element, Object.fromEntries(query));
  return place === "object" ? visitObject(element, rest) : visitChecks(element, place);
}

/** The links between the pages of a cluster. */
export function pages(here) {
  const all = [["", "Audit"], ["/doctor", "Doctor"], ["/policies", "Policies"]];
  return el("nav", { class: "contents", "aria-label": "Cluster" }, all.map(([path, title]) =>
    el("a", { href: `#/cluster${path}`, "aria-current": title === here && "page" }, title)));
}

/** How long ago a time is, in its largest unit. */
export function age(time, now = Date.now()) {
  const seconds = Math.max(0, (now - new Date(time)) / 1000);
  const units = [["y", 31557600], ["d", 86400], ["h", 3600], ["min", 60], ["s", 0]];
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? ["", 0];
  return unit && `${Math.floor(seconds / (size || 1))} ${unit}`;
}

async function ask(request = {}) {
  const answer = await call("audit", { have: pass.number, ...request });
  if (answer.result) pass = { number: answer.number, ...prepared(answer.result) };
  return answer;
}

/** The objects in the order of the list. */
function prepared({ summary, objects, ...rest }) {
  const resources = new Map(summary.kinds.map(({ apiVersion, kind, resource }) => [`${apiVersion} ${kind}`, resource]));
  for (const object of objects) {
    object.resource = resources.get(`${object.apiVersion} ${object.kind}`);
    object.path = object.namespace ? `${object.namespace}/${object.name}` : object.name;
    object.phase ??= "(none)";
    object.worst = object.unjudged ? "not judged" : object.worst?.toLowerCase() ?? "none";
    object.rank = HEALTHS.indexOf(object.health ?? "unknown") * FINDINGS.length + FINDINGS.indexOf(object.worst);
    object.time = Date.parse(object.since) || Infinity;
  }
  objects.sort((a, b) => a.rank - b.rank || a.time - b.time || (a.path < b.path ? -1 : 1));
  return { summary, objects, ...rest };
}

async function audit(element, filter) {
  const said = el("div", { role: "status" });
  // Readers of the screen need not hear it each second.
  const judged = el("p", { class: "quiet" });
  const [top, overview] = [el("div"), el("div")];
  const list = el("section");
  const body = el("div");
  const refresh = el("button", { type: "button", id: "refresh", onclick: () => follow({ refresh: true }) }, "Refresh");
  const form = filters(filter, set);
  let isFollowing = false;
  let next = Infinity;

  function set(changes, put = step) {
    for (const [name, value] of Object.entries(changes)) {
      if (value) filter[name] = value;
      else delete filter[name];
    }
    put("cluster", filter);
    rows = ROWS;
    form.show();
    const health = document.getElementById(`health-${filter.health ?? ""}`);
    if (health) health.checked = true;
    showList();
  }
  /** A link to the objects with other filters. */
  function link(to, ...content) {
    const only = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      set({ ...Object.fromEntries(Object.keys(filter).map((name) => [name, null])), ...to });
      form.element.scrollIntoView();
    };
    return el("a", { class: "chip", href: `#/cluster?${new URLSearchParams(to)}`, onclick: only }, content);
  }
  function showList() {
    const tests = Object.entries(filter).filter(([name]) => FILTERS[name]);
    const found = pass.objects.filter((object) => tests.every(([name, value]) => FILTERS[name](object, value)));
    const more = () => {
      const first = rows;
      rows += ROWS;
      showList();
      list.querySelectorAll("tbody a")[first]?.focus({ preventScroll: true });
    };
    show(list,
      el("h2", {}, `Objects (${count(found.length)}${found.length < pass.objects.length ? ` of ${count(pass.objects.length)}` : ""})`),
      pass.leftOut > 0 && el("p", { class: "error" }, words(`${count(pass.leftOut)} more objects are counted above but not listed. Start \`statusgate ui\` with \`--namespace\`, \`--selector\`, \`--resource\` or \`--kind\`.`)),
      table(["health", "object", "kind", "finding", "phase", "since", "rules", "backfill"], found.slice(0, rows).map(line), (content) => content),
      el("p", { class: "buttons" },
        found.length > rows && el("button", { type: "button", id: "more", onclick: more }, `Show more (${count(found.length - rows)})`),
        refresh));
  }
  function showPass() {
    const active = element.contains(document.activeElement) && document.activeElement;
    const { summary, unreached, gaps, server, seconds, objects } = pass;
    const healths = Map.groupBy(objects, ({ health }) => health ?? "unknown");
    const unequal = gaps.filter(({ level }) => level !== "ok");
    const [filled, empty] = [true, false].map((is) => summary.kinds.filter((row) => row.objects > 0 === is));
    show(top,
      unreached.map((reason) => el("p", { class: "error" }, `incomplete: ${reason}`)),
      totals(objects.length, healths, filter.health, (health) => set({ health })));
    show(overview,
      el("h2", {}, "Kinds"),
      el("p", { class: "quiet" }, `${count(summary.objects)} objects of ${server}, judged in ${seconds.toFixed(1)} s. `,
        FINDINGS.filter((action) => summary.worst[action]).map((action) => link({ finding: action }, chip(action, summary.worst[action]))),
        summary.toBackfill > 0 && link({ backfill: "yes" }, `to backfill ${count(summary.toBackfill)}`),
        summary.unjudged > 0 && link({ finding: "not judged" }, chip("not judged", summary.unjudged))),
      unequal.length > 0 && el("details", {}, el("summary", {}, `Resources that policies name but that are not judged (${unequal.length})`),
        el("ul", {}, unequal.map(({ of, found, help }) => el("li", {}, `${of}: ${found}`, help && el("div", { class: "quiet" }, help))))),
      el("ul", { class: "cards kinds" }, filled.map((row) => card(row, link))),
      empty.length > 0 && el("p", { class: "quiet" }, `Without objects: ${empty.map(({ kind, policy }) => `${kind} (${policy})`).join(", ")}`));
    showAge();
    form.show();
    showList();
    if (!body.firstChild) body.append(top, form.element, list, overview);
    if (active && document.activeElement !== active) {
      const [href, id] = [active.getAttribute("href"), active.id];
      const same = (one) => (href ? one.getAttribute("href") === href : id && one.id === id);
      [...element.querySelectorAll("a, input, button")].find(same)?.focus({ preventScroll: true });
    }
  }
  /** Asks until no pass is under way. */
  async function follow(request) {
    if (isFollowing) return;
    isFollowing = true;
    try {
      for (let answer = await ask(request); ; answer = await ask()) {
        if (answer.result) showPass();
        show(said, answer.running ? progress(answer.running)
          : answer.error ? el("p", { class: "error" }, `The last pass failed. ${answer.error}`, pass.number > 0 && " Below is an earlier result.")
            : "");
        next = Date.now() + 1000 * (answer.error ? RETRY : Math.max(LEAST, TIMES * pass.seconds));
        if (!answer.running) break;
        await new Promise((resolve) => setTimeout(resolve, POLL));
        if (!element.isConnected) return;
      }
    } catch (error) {
      show(said, el("p", { class: "error" }, words(error.message), " This page tries again."));
      next = Date.now() + 1000 * RETRY;
    }
    isFollowing = false;
  }
  function showAge() {
    show(judged, `Judged at ${new Date(pass.number).toLocaleTimeString()}, ${age(pass.number)} ago.`);
  }
  /** Shows how old the result is, and starts the next pass. */
  function tick() {
    if (!element.isConnected) return clearInterval(clock);
    if (pass.number > 0) showAge();
    if (document.visibilityState === "visible" && Date.now() >= next) follow({ refresh: true });
  }

  // Without a cluster, this is an error.
  await ask();
  show(element, el("h1", {}, "Cluster"), pages("Audit"),
    el("div", { class: "age" }, judged, said), body);
  if (pass.number > 0) showPass();
  else show(said, el("p", { class: "quiet" }, "…"));
  const clock = setInterval(tick, 1000);
  const isOld = pass.number > 0 && Date.now() - pass.number > 1000 * LEAST;
  setTimeout(() => follow({ refresh: isOld }));
  return "Cluster";
}

function count(number) {
  return number.toLocaleString("en");
}

/** All objects by their health, as a choice: one stop for the Tab key. */
function totals(all, healths, chosen, choose) {
  const option = (value, word, number, dot) => el("label", {},
    el("input", { type: "radio", name: "health", id: `health-${value}`, checked: value === (chosen ?? ""), onchange: () => choose(value) }),
    el("span", {}, dot, `${word} ${count(number)}`));
  return el("fieldset", { class: "totals segments" }, el("legend", { class: "hidden" }, "Objects by health"),
    HEALTHS.filter((word) => healths.has(word)).map((word) =>
      option(word, word, healths.get(word).length, el("i", { class: `dot is-${word}` }))),
    option("", "all", all));
}

/** Red means failed, and nothing else. */
function chip(word, number, meaning = word === "not judged" ? "unknown" : findingColor(word)) {
  return [el("span", { class: `dot is-${meaning}` }), `${word} ${count(number)}`];
}

function progress({ done, total, kind }) {
  return el("p", {}, el("progress", { max: total, value: total && done, "aria-label": "Audit" }),
    ` ${count(done)}${total ? ` of ${count(total)}` : ""} objects ${kind}`);
}

/** One policy and kind. */
function card({ policy, resource, kind, complete, objects, health, phases, worst, toBackfill }, link) {
  const of = (filter) => ({ kind: resource, policy, ...filter });
  const healths = HEALTHS.filter((word) => health[word]);
  // Few of many are still visible.
  const widths = healths.map((word) => Math.max(health[word] / objects, 0.02));
  const starts = widths.map((_, at) => widths.slice(0, at).reduce((sum, width) => sum + width, 0));
  const parts = healths.map((word, at) => svg("rect", { class: `is-${word}`, x: starts[at], width: widths[at], height: 1,
    onclick: ({ target }) => target.closest("li").querySelectorAll(".healths a")[at].click() },
  svg("title", {}, `${word}: ${count(health[word])} of ${count(objects)}`)));
  const most = Object.entries(phases).sort(([, a], [, b]) => b - a);
  return el("li", { class: "card" },
    el("div", {}, link(of({}), el("strong", {}, kind)), el("small", {}, ` ${policy} · ${count(objects)}${complete ? "" : "+"}`)),
    svg("svg", { class: "bar", viewBox: `0 0 ${starts.at(-1) + widths.at(-1)} 1`, preserveAspectRatio: "none", "aria-hidden": "true" }, parts),
    el("div", { class: "healths" }, healths.map((word) => link(of({ health: word }), chip(word, health[word], word)))),
    el("div", {}, el("small", {}, "phases "), most.slice(0, PHASES).map(([phase, number]) => link(of({ phase }), `${phase} ${count(number)}`)),
      most.length > PHASES && el("small", {}, `and ${most.length - PHASES} more`)),
    el("div", {}, FINDINGS.filter((action) => worst[action]).map((action) => link(of({ finding: action }), chip(action, worst[action]))),
      toBackfill > 0 && link(of({ backfill: "yes" }), `to backfill ${count(toBackfill)}`)));
}

/** One object as a row. */
function line({ worst, error, resource, namespace = "", name, path, kind, health, retried, healthReason, phase, since, findings, toBackfill }) {
  const href = `#/cluster/object/${[resource, namespace, name].map(encodeURIComponent).join("/")}`;
  return [
    health ? [badge(retried ? `${health} (retried)` : health, health), el("small", { class: "reason" }, healthReason)] : el("small", {}, error),
    el("a", { href }, path),
    kind,
    worst === "none" ? "" : badge(worst, worst === "not judged" ? "unknown" : findingColor(worst)),
    phase === "(none)" ? "" : el("span", { class: "reason" }, phase),
    since ? el("time", { datetime: since, title: since }, age(since)) : "",
    findings.length === 0 ? "" : el("span", { class: "reason" }, [...new Set(findings.map((found) => found.rule))].join(", ")),
    toBackfill ? "yes" : "",
  ];
}

/** The filters as a form. */
function filters(filter, set) {
  const fields = { kind: "Kind", policy: "Policy", phase: "Phase", finding: "Finding", rule: "Rule" };
  const selects = Object.keys(fields).map((name) =>
    [name, el("select", { id: `filter-${name}`, onchange: ({ target }) => set({ [name]: target.value }) })]);
  const text = el("input", { id: "filter-text", type: "search", spellcheck: "false", autocomplete: "off",
    oninput: () => set({ text: text.value.trim() }, keep) });
  const backfill = el("input", { id: "filter-backfill", type: "checkbox", onchange: () => set({ backfill: backfill.checked && "yes" }) });
  const field = (id, label, input) => el("div", { class: "field" }, el("label", { for: id }, label), input);
  return {
    element: el("details", { open: Object.keys(filter).some((name) => name !== "health") },
      el("summary", {}, "Filter"),
      el("form", { class: "row filters", role: "search", onsubmit: (event) => event.preventDefault() },
        field("filter-text", "Name", text),
        selects.map(([name, select]) => field(select.id, fields[name], select)),
        field("filter-backfill", "To backfill", backfill))),
    /** Shows the filters of the address and what the last pass found. */
    show() {
      const { kinds } = pass.summary;
      const all = (of) => [...new Set(kinds.filter((row) => row.objects > 0).flatMap(of))];
      const options = {
        kind: all((row) => row.resource),
        policy: all((row) => row.policy),
        phase: all((row) => Object.keys(row.phases)).filter((phase) => phase !== "(other)"),
        finding: FINDINGS,
        rule: all((row) => row.rules.map(({ rule }) => rule)).sort(),
      };
      for (const [name, select] of selects) {
        const chosen = filter[name] ?? "";
        show(select, [...new Set(["", ...options[name], chosen])].map((value) =>
          el("option", { value, selected: value === chosen }, value || "all")));
      }
      if (text.value.trim() !== (filter.text ?? "")) text.value = filter.text ?? "";
      backfill.checked = Boolean(filter.backfill);
    },
  };
}
