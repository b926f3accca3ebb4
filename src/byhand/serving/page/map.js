// The map: the whole pass on the side, where one is in it, what changed, what a number comes from.

import { app, go } from "./app.js";
import { all, doing, fill, make, parsed, region } from "./drawing.js";
import { t } from "./words.js";

const NARROW = matchMedia("(max-width: 86rem)");

const stations = () => all("#map a[data-station]");
const at = (station, nodes) => station.dataset.station.split(" ").some((node) => nodes.has(node));

/** The width of the drawing without the numbers beside it. */
function drawing(picture) {
  const numbers = all("text.head, text.v", picture).map((text) => Number(text.getAttribute("x")) - 8);
  return Math.min(...numbers, Number(picture.getAttribute("viewBox").split(" ")[2]));
}

/** Draws the map of the last look, or another one. */
export function drawMap(svg = app.look.map, { bare = false } = {}) {
  const place = region("map"), content = parsed(svg), picture = content.querySelector("svg");
  place.setAttribute("aria-label", t("map"));
  const high = picture.viewBox.baseVal.height || Number(picture.getAttribute("viewBox").split(" ")[3]);
  if (bare || NARROW.matches) {
    picture.setAttribute("viewBox", `0 0 ${drawing(picture)} ${high}`);
    picture.classList.add("bare");
  }
  const wide = Number(picture.getAttribute("viewBox").split(" ")[2]);
  picture.setAttribute("style", `--wide:${wide}`);
  const changed = new Set(app.look.changed?.nodes ?? []);
  for (const station of all("a[data-station]", content)) {
    if (at(station, changed) && app.here.view !== "compare") station.classList.add("moved");
    station.dataset.do = "station";
  }
  fill(place, make("div", { class: "drawing" }, content), strip(), legend(changed));
}

function legend(changed) {
  return make("p", { class: "legend-of-map" },
    make("span", { class: "key here" }, t(app.here.view === "compare" ? "map.differs" : "map.here")),
    changed.size > 0 && app.here.view !== "compare" && make("span", { class: "key moved" }, t("map.changed")));
}

/** The pass as a line of dots, for narrow screens; one dot a passage. */
function strip() {
  const changed = new Set(app.look.changed?.nodes ?? []);
  return make("ol", { class: "beads", "aria-label": t("map") }, app.look.passages.map((passage) => make("li", {}, make("a", {
    href: `#${passage.id}`, "data-do": "station", "data-page": passage.page, title: passage.title, "aria-label": passage.title,
    class: passage.nodes.some((node) => changed.has(node)) ? "moved" : null,
    "aria-current": passage.id === app.here.passage ? "step" : null,
  }))));
}

doing("station", (link) => go({ passage: link.getAttribute("href").slice(1), view: ["compare", "practice"].includes(app.here.view) ? "steps" : app.here.view === "steps" ? "steps" : app.here.view }));

/** Lights the stations that a number comes from. */
export function light(nodes) {
  const wanted = new Set(nodes);
  region("map").classList.toggle("tracing", wanted.size > 0);
  for (const station of stations()) station.classList.toggle("from", at(station, wanted));
}

NARROW.addEventListener("change", () => { if (app.look) drawMap(); });
