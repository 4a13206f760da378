// The places of the page. The fragment of the address names the place and its state: #/PLACE/PATH?STATE.

import { el, show, words } from "./dom.js";

const PLACES = {
  conventions: () => import("./conventions.js"),
  playground: () => import("./playground.js"),
  cluster: () => import("./cluster.js"),
};

/** Until a place is asked for again whose program did not answer, in milliseconds. */
const RETRY = 3000;

const main = document.getElementById("main");
let visits = 0;

async function visit() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [place, ...rest] = (path || "conventions").split("/").map(decodeURIComponent);
  const visited = ++visits;
  for (const link of document.querySelectorAll("nav a")) {
    const isHere = link.hash === `#/${place}`;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const load = PLACES[place];
  const element = el("div", { class: `place ${load ? place : ""}` });
  try {
    if (!load) throw new Error(`There is no place "${place}".`);
    const { visit } = await load().catch(() => {
      throw Object.assign(new Error("This place cannot be loaded."), { isGone: true });
    });
    const title = await visit(element, rest.join("/"), new URLSearchParams(query));
    document.title = `${title} · statusgate`;
  } catch (error) {
    show(element, el("p", { class: "error", role: "alert" }, words(error.message), error.isGone && " This page tries again."));
    if (error.isGone) setTimeout(() => visited === visits && visit(), RETRY);
  }
  if (visited !== visits) return;
  show(main, element);
  if (visited > 1) {
    const { top = 0, link } = history.state ?? {};
    const followed = [...main.querySelectorAll("a")].find((one) => one.getAttribute("href") === link);
    (followed ?? main).focus({ preventScroll: true });
    scrollTo(0, top);
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
// An entry of the history keeps where the page was, and which link was followed from there.
addEventListener("click", ({ target }) => {
  const link = target.closest("main a[href^='#']");
  if (link) history.replaceState({ top: scrollY, link: link.getAttribute("href") }, "");
}, true);
addEventListener("hashchange", visit);
await visit();
// A browser may remember that a module could not be loaded, so none is left for a time when the program is gone.
for (const load of Object.values(PLACES)) load().catch(() => {});
