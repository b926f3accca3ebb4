// The tour: six stops, each beside what it is about.  Arrow keys and Enter go on, Escape leaves.

import { app, go } from "./app.js";
import { all, doing, fill, make, region, say } from "./drawing.js";
import { icon } from "./icons.js";
import { recalled, remember } from "./memory.js";
import { t } from "./words.js";

// [name, what it is about: the first of these that is seen]
const STOPS = [
  ["text", "#desk .tokens"],
  ["map", "#map .drawing, #map .beads"],
  ["step", "#main .player"],
  ["number", "#main .text td button[data-a], #main .text button[data-a]"],
  ["next", "#rail .likely"],
  ["weights", ".views a[data-view=weights]"],
];
const PAGE = "tokens-embed"; // a passage with numbers, where the model has it
let at = null; // the stop, or null: no tour
let from = null; // what had the focus before

const seen = (node) => node.checkVisibility() && node.getBoundingClientRect().width > 0;
const subject = () => all(STOPS[at][1]).find(seen) ?? region("main");

/** Begins the tour, at a step with numbers. */
export async function begin() {
  from = document.activeElement;
  const passage = app.look.passages.some((one) => one.id === PAGE) ? PAGE : app.here.passage;
  if (app.here.view !== "steps" || app.here.passage !== passage) await go({ view: "steps", passage });
  to(0);
}

function to(stop) {
  if (stop < 0) return;
  if (stop >= STOPS.length) { end(); return; }
  at = stop;
  const [name] = STOPS[at], box = region("tour"), last = at === STOPS.length - 1;
  fill(box,
    make("p", { class: "kicker" }, t("tour.count", { at: at + 1, count: STOPS.length })),
    make("h2", { id: "tour-title" }, t(`tour.${name}`)),
    make("p", { id: "tour-text" }, t(`tour.${name}.text`)),
    make("p", { class: "doings" },
      make("button", { type: "button", class: "small-button", "data-do": "tour-end" }, t("tour.leave")),
      make("button", { type: "button", class: "small-button", "data-do": "tour-back", disabled: at === 0 }, t("tour.back")),
      make("button", { type: "button", class: "main-button", "data-do": "tour-on" }, t(last ? "tour.done" : "tour.on"))));
  box.hidden = region("spot").hidden = false;
  subject().scrollIntoView({ block: "center", behavior: "instant" });
  put();
  box.querySelector("[data-do=tour-on]").focus({ preventScroll: true });
  say(`${t(`tour.${name}`)}. ${t(`tour.${name}.text`)}`);
}

/** Puts the ring around what the stop is about, and the box beside it. */
function put() {
  if (at === null) return;
  const box = region("tour"), ring = region("spot"), { left, top, width, height } = subject().getBoundingClientRect(), gap = 14;
  const high = Math.min(height, innerHeight - 40);
  Object.assign(ring.style, { left: `${left - 6}px`, top: `${top - 6}px`, width: `${width + 12}px`, height: `${high + 12}px` });
  const { offsetWidth: wide, offsetHeight: tall } = box;
  const edge = 12, below = top + high + gap + tall + edge < innerHeight, above = top - gap - tall > edge;
  const beside = left + width + gap + wide < innerWidth;
  const x = below || above ? left + width / 2 - wide / 2 : beside ? left + width + gap : left - gap - wide;
  const y = below ? top + high + gap : above ? top - gap - tall : top + high / 2 - tall / 2;
  box.style.left = `${Math.max(12, Math.min(x, innerWidth - wide - 12))}px`;
  box.style.top = `${Math.max(12, Math.min(y, innerHeight - tall - 12))}px`;
}

function end() {
  if (at === null) return;
  at = null;
  remember("tour", "seen");
  region("tour").hidden = region("spot").hidden = true;
  const back = from && document.contains(from) && seen(from) ? from : region("main");
  back.focus({ preventScroll: true });
}

doing("tour", begin);
doing("tour-on", () => to(at + 1));
doing("tour-back", () => to(at - 1));
doing("tour-end", end);

export const toured = () => recalled("tour") !== null;

export function listenToTour() {
  region("tour").addEventListener("keydown", (event) => {
    const turn = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") end();
    else if (turn) to(at + turn);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  addEventListener("resize", put);
  addEventListener("scroll", put, { passive: true });
}
export const touring = () => at !== null;
export const leave = end;
