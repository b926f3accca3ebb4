// One step of the pass in the middle: its sentences, formula and numbers, what it reads and what
// reads it, and the player that goes from step to step.

import { app, drawn, go, render } from "./app.js";
import { all, doing, make, parsed, say } from "./drawing.js";
import { icon } from "./icons.js";
import { t } from "./words.js";

const PACE = 2600; // milliseconds a step when playing

const place = () => app.look.passages.findIndex((passage) => passage.id === app.look.passage.id);

/** The page's own marks on the HTML of a passage: what changed, and which numbers the tab key stops at. */
export function prepared(html, changed = app.look.changed) {
  const content = parsed(html), moved = new Set(changed?.addresses ?? []);
  for (const cell of all("[data-a]", content)) {
    if (moved.has(cell.dataset.a) || edited(cell.dataset.a)) cell.classList.add("moved");
    cell.removeAttribute("title");
  }
  for (const table of all("table, .vector", content)) {
    all("button[data-a]", table).forEach((button, at) => button.setAttribute("tabindex", at ? "-1" : "0"));
  }
  for (const cell of all("button[data-a^='weight.']", content)) cell.classList.add("weight-number");
  return content;
}

const edited = (address) => address.startsWith("weight.") && address.slice(7) in (app.state.weights ?? {});

/** The step that is looked at. */
export function passageView() {
  const { passage, passages } = app.look, at = place(), here = passages[at];
  const where = [t(`page.${here.page}`), here.layer !== null && app.look.model.layers > 1 ? t("block", { layer: here.layer }) : null];
  return [
    make("div", { class: "player" },
      make("p", { class: "kicker" }, where.filter(Boolean).join(" · ")),
      make("div", { class: "buttons", role: "group", "aria-label": t("player") },
        press("first", at === 0), press("previous", at === 0),
        make("button", { type: "button", class: "tool play", "data-do": "play", "aria-pressed": String(app.playing), title: t(app.playing ? "pause" : "play"), "aria-label": t(app.playing ? "pause" : "play") },
          icon(app.playing ? "pause" : "play")),
        press("following", at === passages.length - 1), press("last", at === passages.length - 1)),
      make("span", { class: "count-of" }, `${at + 1} / ${passages.length}`)),
    make("h2", { class: "step-title", tabindex: "-1" }, here.title.split(" · ")[0]),
    make("div", { class: "kin" }, kin("reads", passage.reads), kin("read-by", passage.read_by)),
    make("div", { class: "text", "data-key": passage.id }, prepared(passage.html)),
  ];
}

const press = (what, off) => make("button", { type: "button", class: "tool", "data-do": what, disabled: off, title: t(what), "aria-label": t(what) }, icon(what));

function kin(what, ids) {
  if (!ids.length) return null;
  const titles = new Map(app.look.passages.map((passage) => [passage.id, passage.title]));
  return make("p", { class: what }, make("span", { class: "small-word" }, t(what)), ids.map((id) => make("a", { href: `#${id}`, "data-do": "step-to" }, titles.get(id) ?? id)));
}

// ------------------------------------------------------------------ going from step to step

/** Goes so many steps on; nothing where the pass ends. */
export async function step(by) {
  const { passages } = app.look, wanted = Math.max(0, Math.min(passages.length - 1, place() + by));
  if (wanted === place()) return;
  await go({ passage: passages[wanted].id, view: "steps" });
  say(`${wanted + 1} / ${passages.length}: ${passages[wanted].title}`);
}

let clock = 0;

/** Plays from here to the end, or stops. */
export function play(on = !app.playing) {
  clearInterval(clock);
  app.playing = on;
  if (on) {
    if (place() === app.look.passages.length - 1) go({ passage: app.look.passages[0].id, view: "steps" });
    clock = setInterval(async () => {
      await step(1);
      if (place() === app.look.passages.length - 1) play(false);
    }, PACE);
  }
  render();
}

doing("first", () => step(-Infinity));
doing("previous", () => step(-1));
doing("following", () => step(1));
doing("last", () => step(Infinity));
doing("play", () => play());
doing("step-to", (link) => go({ passage: link.getAttribute("href").slice(1), view: "steps" }));

let last = "";
drawn(() => {
  if (app.here.view !== "steps") return;
  const now = app.here.passage;
  if (last && last !== now && document.documentElement.scrollTop > 240) document.getElementById("main").scrollIntoView({ block: "start" });
  last = now;
});

// What does not scroll need not be a stop of the tab key.
const seen = new ResizeObserver((changes) => {
  for (const { target } of changes) {
    if (target.scrollWidth > target.clientWidth + 1) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
export const watchWidths = () => { for (const stop of all("#main .table, #main .formula, #main .letter")) seen.observe(stop); };
