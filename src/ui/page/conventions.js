// The list of conventions, the page of one, and the page of a rule.

import { keep, pack } from "./address.js";
import { call } from "./calls.js";
import { badge, el, show, table, words } from "./dom.js";
import { graph } from "./graph.js";

/** Shows `NAME`, `NAME/rules/RULE` or the list. Returns the title. */
export async function visit(element, path, state) {
  const [name, , rule] = path.split("/");
  if (!name) return list(element);
  if (rule) return rulePage(element, name, rule);
  return page(element, name, state);
}

async function list(element) {
  const { conventions } = await call("conventions");
  show(element, el("h1", {}, "Conventions"),
    el("p", { class: "lead" }, "A convention says what the status of an object may contain, and what it means for its readers."),
    el("ul", { class: "cards" }, conventions.map(({ name, title, phases, rules, conditions }) =>
      el("li", {}, el("a", { class: "card", href: `#/conventions/${name}` },
        el("strong", {}, name), el("span", {}, title),
        el("small", {}, [
          phases ? `${phases} phases` : "no phase",
          `${rules.length} rules`,
          ...conditions,
        ].join(" · ")))))));
  return "Conventions";
}

async function page(element, name, state) {
  // The documentation has a page with the rest.
  if (new URLSearchParams(location.search).has("embedded")) {
    document.body.classList.add("embedded");
    show(element, await play(name, state));
    // The frame is as high as what it shows.
    new ResizeObserver(() => {
      if (frameElement) frameElement.style.height = `${document.documentElement.offsetHeight}px`;
    }).observe(document.documentElement);
    return name;
  }
  // The tables of a large convention take a second.
  const rest = el("div", {}, el("p", { class: "quiet" }, "Loading …"));
  const explained = call("explain", { convention: name })
    .then((about) => show(rest, sections(name, about)))
    .catch((error) => show(rest, el("p", { class: "error" }, error.message)));
  const played = await play(name, state);
  show(element,
    el("p", { class: "path" }, el("a", { href: "#/conventions" }, "Conventions"), " / "),
    el("h1", {}, name),
    played,
    rest);
  await Promise.race([explained, new Promise((resolve) => setTimeout(resolve, 100))]);
  return name;
}

/** Everything that the engine says of a convention. */
function sections(name, { page, graph: moves, rules, document }) {
  const cell = (text, column) => withLinks(name, rules, text, column);
  const [lead, sections] = split(page);
  const anchors = sections.map(({ title }) => title);
  const jump = (title) => el("button", { type: "button", class: "jump", onclick: (event) =>
    event.target.closest("div").querySelector(`#${anchor(title)}`).scrollIntoView() }, title);
  return [
    lead.map((block) => render(block, cell)),
    el("nav", { class: "contents", "aria-label": "Sections" }, [...anchors, "Document"].map(jump)),
    sections.map(({ title, blocks }) => el("section", {},
      el("h2", { id: anchor(title) }, title),
      title.startsWith("Phase") && moves && graph(moves),
      blocks.map((block) => render(block, cell)))),
    el("section", {}, el("h2", { id: anchor("Document") }, "Document"), el("pre", { tabindex: "0" }, document)),
  ];
}

async function rulePage(element, name, rule) {
  const id = `${name}/${rule}`;
  const { page, violating, satisfying } = await call("rule", { rule: id });
  const open = [["Open the write that violates it", violating], ["Open the write that satisfies it", satisfying]]
    .filter(([, example]) => example)
    .map(([label, { object, old, plural }]) => playgroundLink(label, { convention: name, object, old: old ?? "", plural }));
  show(element,
    el("p", { class: "path" }, el("a", { href: "#/conventions" }, "Conventions"), " / ",
      el("a", { href: `#/conventions/${name}` }, name), " / "),
    el("h1", {}, id),
    page.map((block) => render(block)),
    el("p", { class: "buttons" }, await Promise.all(open)));
  return id;
}

/** The blocks before the first heading, and the sections. */
function split(blocks) {
  const [lead, sections] = [[], []];
  for (const block of blocks) {
    if (block.heading) sections.push({ title: block.heading, blocks: [] });
    else (sections.at(-1)?.blocks ?? lead).push(block);
  }
  return [lead, sections];
}

function render({ heading, text, list, code, table: rows }, cell) {
  if (heading) return el("h2", {}, heading);
  if (list) return el("ul", {}, list.map((point) => el("li", {}, words(point))));
  if (code) return el("pre", { tabindex: "0" }, code);
  if (rows) return table(rows.head, rows.rows, cell);
  return el("p", {}, words(text));
}

/** The ids of rules in a cell as links to their examples. */
function withLinks(name, rules, text, column) {
  if (!text || !column.startsWith("rule") || !rules.includes(text)) return words(text);
  return el("a", { href: `#/conventions/${name}/rules/${text.slice(name.length + 1)}` }, text);
}

function anchor(title) {
  return `s-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
}

async function playgroundLink(label, state) {
  return el("a", { class: "button", href: `#/playground?s=${await pack(state)}` }, label);
}

/** The answers that an address names, and the names that the convention does not have. */
function read(state, { facts, answers }) {
  const unknown = [];
  const given = [...answers];
  for (const [label, answer] of state) {
    const at = facts.findIndex((fact) => fact.label === label);
    const chosen = facts[at]?.answers.indexOf(answer) ?? -1;
    if (chosen < 0) unknown.push(`${label} = ${answer}`);
    else given[at] = chosen;
  }
  return { given, unknown };
}

/** The truth table as choices: each fact has an answer, and the engine judges the state. */
async function play(name, state) {
  const usual = await call("state", { convention: name, answers: null });
  const { given, unknown } = read(state, usual);
  const first = state.size > 0 ? await call("state", { convention: name, answers: given }) : usual;
  const { facts } = first;
  const answers = [...first.answers];
  const result = el("div", { class: "result" }, await outcome(name, first));
  // Readers of the screen announce this line, not all of the result.
  const said = el("p", { class: "hidden", role: "status" });
  let asked = 0;
  async function choose(at, answer) {
    answers[at] = answer;
    const chosen = facts.map((fact, at) => [fact.label, fact.answers[answers[at]]]);
    keep(`conventions/${name}`, chosen.filter((_, at) => answers[at] !== usual.answers[at]));
    const asking = ++asked;
    const outcomes = await call("state", { convention: name, answers })
      .then((answer) => outcome(name, answer), (error) => el("p", { class: "error" }, error.message));
    if (asking !== asked) return;
    show(result, outcomes);
    said.textContent = result.firstChild.textContent;
  }
  return el("section", { class: "play" },
    el("h2", {}, "Try a state"),
    el("p", { class: "quiet" }, "Choose what a status says. The engine answers as in a review."),
    unknown.length > 0 && el("p", { class: "error" }, `This convention does not have what the link names: ${unknown.join(", ")}.`),
    el("div", { class: "columns" },
      el("div", { class: "facts" }, facts.map((fact, at) => choice(fact, answers[at], at, (answer) => choose(at, answer)))),
      el("div", {}, said, result)));
}

function choice({ label, answers }, chosen, at, choose) {
  const id = `fact-${at}`;
  if (answers.length > 5) {
    return el("div", { class: "fact" }, el("label", { for: id }, label),
      el("select", { id, onchange: (event) => choose(event.target.selectedIndex) },
        answers.map((answer, index) => el("option", { selected: index === chosen }, answer))));
  }
  return el("fieldset", { class: "fact" }, el("legend", {}, label),
    el("div", { class: "segments" }, answers.map((answer, index) =>
      el("label", {},
        el("input", { type: "radio", name: id, checked: index === chosen, onchange: () => choose(index) }),
        el("span", {}, answer)))));
}

async function outcome(name, { state }) {
  if (!state) return el("p", {}, "These facts exclude each other: no object can have them all.");
  const { phases, imposed, health, retried, healthReason, healthRule, object, old, plural } = state;
  const rows = phases.map(({ phase, contradiction, rule, repair }) =>
    [phase, contradiction ? "no" : "yes", contradiction ?? "", contradiction ? repair ?? "nothing" : "", contradiction ? rule : ""]);
  const cell = (text, column) => {
    if (column === "admissible") return badge(text, text === "yes" ? "current" : "failed");
    return withLinks(name, [text], text, column);
  };
  return [
    health && el("p", {}, "Health ", badge(retried ? `${health} (retried)` : health, health), ` ${healthReason} `,
      el("small", { class: "quiet" }, healthRule ? `decided by the rule ${healthRule}` : "")),
    imposed && el("p", {}, `The mutating webhook sets the phase ${imposed}, independent of the writer.`),
    rows.length > 0 && table(["phase", "admissible", "why not", "Repair chooses", "rule"], rows, cell),
    el("p", {}, await playgroundLink("Open this state in the playground", { convention: name, object, old: old ?? "", plural })),
  ];
}
