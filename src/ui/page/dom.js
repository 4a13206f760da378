// Elements. Texts of users become text nodes only, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `on…` members are handlers, the others attributes. `false` and `null` leave something out. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for a picture. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

/** Replaces the content of an element. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
}

/** A text of the engine: parts in backticks are code. */
export function words(text) {
  return text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

/** A word in the color of its meaning. */
export function badge(word, meaning = word) {
  return el("span", { class: `badge is-${meaning}` }, word);
}

/** A table that scrolls on a narrow screen. Columns without any content are left out. */
export function table(head, rows, cell = words) {
  const used = head.map((_, at) => at).filter((at) => rows.some((row) => row[at] !== "" && row[at] != null));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": head.filter(Boolean).join(", ") },
    el("table", {},
      el("thead", {}, el("tr", {}, used.map((at) => el("th", { scope: "col" }, head[at])))),
      el("tbody", {}, rows.map((row) =>
        el("tr", {}, used.map((at) => el("td", {}, cell(row[at] ?? "", head[at]))))))));
}
