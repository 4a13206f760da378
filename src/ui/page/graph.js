// The moves between phases as a picture: phases on an ellipse, so that no arrow crosses another phase.

import { el, svg } from "./dom.js";

const HEIGHT = 30;

/** The picture and the same as text; null if every phase may follow every other. */
export function graph({ phases, first, fromAll, moves }) {
  const count = phases.length;
  const isFree = fromAll.length === count;
  if (moves.length === 0 && isFree) return null;
  const widest = Math.max(...phases.map(width));
  const [rx, ry] = [Math.max(130, count * 26), Math.max(80, count * 22)];
  const [w, h] = [2 * rx + widest + 90, 2 * ry + HEIGHT + 90];
  const places = phases.map((name, at) => {
    const angle = (2 * Math.PI * at) / count - Math.PI / 2;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    return { name, x: w / 2 + rx * cos, y: h / 2 + ry * sin, half: width(name) / 2, cos, sin };
  });
  const arrows = moves.map(({ from, to, rules }) => {
    const [a, b] = [places[from], places[to]];
    const returns = moves.some((other) => other.from === to && other.to === from);
    const title = `${a.name} → ${b.name}${rules.length ? `: ${rules.join(", ")}` : ""}`;
    return arrow(a, b, returns ? 18 : 0, rules.length ? "move judged" : "move", title);
  });
  const stubs = places.flatMap((place, at) => [
    first.includes(at) && first.length < count && entry(place, -0.35, "start", `${place.name} can be the first phase`),
    !isFree && fromAll.includes(at) && entry(place, 0.35, "any", `any phase → ${place.name}`),
  ]);
  const nodes = places.map(({ name, x, y, half }) => [
    svg("rect", { class: "phase", x: x - half, y: y - HEIGHT / 2, width: 2 * half, height: HEIGHT, rx: 8 }),
    svg("text", { x, y: y + 5, "text-anchor": "middle" }, name),
  ]);
  const marker = svg("marker", { id: "tip", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0 10 5 0 10z" }));
  const label = "The moves between phases. The list below has the same as text.";
  return [
    el("div", { class: "scroll picture" },
      svg("svg", { class: "graph", viewBox: `0 0 ${w} ${h}`, width: w, role: "img", "aria-label": label },
        svg("defs", {}, marker), arrows, stubs.filter(Boolean), nodes)),
    el("p", { class: "quiet" }, [
      first.length < count && "● a first phase",
      isFree ? "every phase may follow every other" : "○ reached from any phase",
      moves.some((move) => move.rules.length) && "dashed: a rule judges the move",
    ].filter(Boolean).join(" · ")),
    el("details", {}, el("summary", {}, "The moves as text"), el("ul", {},
      first.length < count && first.map((at) => el("li", {}, `no phase → ${phases[at]}`)),
      isFree ? el("li", {}, "any phase → any phase") : fromAll.map((at) => el("li", {}, `any phase → ${phases[at]}`)),
      moves.map(({ from, to, rules }) =>
        el("li", {}, `${phases[from]} → ${phases[to]}`, rules.length > 0 && `: ${rules.join(", ")}`)))),
  ];
}

function width(name) {
  return name.length * 8 + 24;
}

/** Where the line from a phase to a point leaves its rectangle. */
function border({ x, y, half }, [px, py]) {
  const [dx, dy] = [px - x, py - y];
  const scale = Math.min((half + 3) / Math.abs(dx || 1e-9), (HEIGHT / 2 + 3) / Math.abs(dy || 1e-9));
  return [x + dx * scale, y + dy * scale];
}

function arrow(a, b, bend, kind, title) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = Math.hypot(dx, dy) || 1;
  const middle = [(a.x + b.x) / 2 - (dy / length) * bend, (a.y + b.y) / 2 + (dx / length) * bend];
  const [start, end] = [border(a, middle), border(b, middle)];
  return svg("path", { class: kind, d: `M${start} Q${middle} ${end}`, "marker-end": "url(#tip)" }, svg("title", {}, title));
}

/** A short arrow from outside the ellipse. */
function entry(place, turn, kind, title) {
  const angle = Math.atan2(place.sin, place.cos) + turn;
  const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
  const reach = Math.min(place.half / Math.abs(dx || 1e-9), HEIGHT / 2 / Math.abs(dy || 1e-9)) + 26;
  const from = [place.x + dx * reach, place.y + dy * reach];
  return svg("g", { class: kind }, svg("title", {}, title),
    svg("path", { class: "move", d: `M${from} L${border(place, from)}`, "marker-end": "url(#tip)" }),
    svg("circle", { cx: from[0], cy: from[1], r: 4 }));
}
