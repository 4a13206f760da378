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
  element.append(...shown(children));
  return element;
}

/** Invisible letters, those that change the order of the text, and what is no character, as escapes: they can make one name look like another. */
export function visible(text) {
  return text.replace(/[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function shown(children) {
  return children.flat(Infinity).filter((child) => child != null && child !== false)
    .map((child) => (typeof child === "string" ? visible(child) : child));
}

/** Replaces the content of an element. */
export function show(element, ...children) {
  element.replaceChildren(...shown(children));
}

/** A text of the engine: parts in backticks are code. */
export function words(text) {
  return text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

/** A word in the color of its meaning. */
export function badge(word, meaning = word) {
  return el("span", { class: `badge is-${meaning}` }, word);
}

/** A text with its beginning, if it is long. */
export function folded(text) {
  return text?.length > 400 ? el("details", { class: "long" }, el("summary", {}, `${text.slice(0, 200)}…`), text) : text;
}

/** A table that scrolls on a narrow screen. Columns without any content are left out. */
export function table(head, rows, cell = words) {
  const used = head.map((_, at) => at).filter((at) => rows.some((row) => row[at] !== "" && row[at] != null));
  // With a link in each row, the keys reach every part of it.
  const isReached = rows.some((row) => row.some((content) => content instanceof HTMLAnchorElement));
  return el("div", { class: "scroll", tabindex: !isReached && "0", role: "region", "aria-label": head.filter(Boolean).join(", ") },
    el("table", {},
      el("thead", {}, el("tr", {}, used.map((at) => el("th", { scope: "col" }, head[at])))),
      el("tbody", {}, rows.map((row) =>
        el("tr", {}, used.map((at) => el("td", {}, cell(row[at] ?? "", head[at]))))))));
}
