// The greeting and the experiments: one press changes the model, and what came of it is told in its
// place, in sentences that the server makes of the two passes.

import { app, attempt, go, render, report } from "./app.js";
import { doing, fill, make, region, say } from "./drawing.js";
import { icon } from "./icons.js";
import { recalled, remember } from "./memory.js";
import { ticked } from "./rail.js";
import { localised, t } from "./words.js";

// The three that a newcomer is offered: [model, experiment].
const FIRST = [["tiny", "exact"], ["journey", "mask"], ["journey", "flip"]];
const GREETING = "greeting", EXPERIMENTS = "experiments";
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const SEEN = 1200, TURN = 450; // milliseconds that what was before is seen, and each value of a weight

let mode = null; // GREETING, EXPERIMENTS, or null: closed
let trial = null; // {model, one, state} that was made last
let running = null; // {one, value} while a weight is turned

/** Greets a person who comes without an address of their own, until they close the greeting. */
export function greet(newcomer) {
  mode = newcomer && recalled("greeting") !== "closed" ? GREETING : null;
}

const bare = (state) => JSON.stringify({ ...state, language: null });
const found = ([model, name]) => {
  const one = app.models.find((each) => each.name === model)?.experiments.find((each) => each.name === name);
  return one && { model, one };
};

/** The experiments that are offered: of the model that is looked at, or those of the greeting. */
function offered() {
  const own = app.look.model.experiments.map((one) => ({ model: app.look.model.name, one }));
  return mode === EXPERIMENTS && own.length ? own : FIRST.map(found).filter(Boolean);
}

/** The change that an experiment made, while it is what is looked at. */
export function tried() {
  const told = app.look?.changed?.told;
  return trial && !running && told && trial.state === bare(app.state) ? { ...trial, told } : null;
}

export function drawTrials() {
  const place = region("trials"), done = running ? null : tried();
  place.hidden = !(mode || done || running) || ["prove", "practice"].includes(app.here.view);
  place.setAttribute("aria-label", t("trials"));
  if (place.hidden) { fill(place); return; }
  fill(place, make("div", { class: "trials-inside", "data-key": running ? "running" : done ? "done" : mode },
    running ? turning() : done ? outcome(done) : offers()));
}

const close = () => make("button", { type: "button", class: "tool closes", "data-do": "trials-close", title: t("close"), "aria-label": t("trials.close") }, icon("close"));

function offers() {
  const first = mode === GREETING, own = app.look.model.experiments.length > 0;
  return [
    make("div", { class: "greets" },
      make("h2", { id: "greeting-title", tabindex: "-1" }, first ? t("greeting") : t("experiments", { model: own ? app.look.model.title : "byhand" })),
      first && make("p", { class: "quiet" }, t("greeting.how")),
      first && make("p", {}, make("button", { type: "button", class: "small-button", "data-do": "tour" }, icon("tour"), " ", t(recalled("tour") ? "tour.again" : "tour.take")))),
    make("ul", { class: "offers" }, offered().map(({ model, one }) => make("li", {}, make("button", { type: "button", class: "offer", "data-do": "try", "data-model": model, "data-name": one.name },
      make("span", { class: "kicker" }, t("try")), make("strong", {}, ticked(one.title)), make("span", { class: "quiet" }, ticked(one.look_for)))))),
    close(),
  ];
}

function turning() {
  return make("div", { class: "greets", role: "status" }, make("h2", {}, ticked(running.one.title)),
    running.value !== null && make("p", { class: "turning" }, make("code", {}, running.one.weight), " = ", make("b", {}, localised(running.value))));
}

function outcome({ model, one, told }) {
  const { star, sentences } = told;
  const others = offered().filter((each) => each.one !== one && !(each.model === model && each.one.name === one.name)).slice(0, 3);
  return [
    make("div", { class: "came" },
      make("p", { class: "kicker" }, ticked(one.title)),
      make("h2", { id: "greeting-title", tabindex: "-1" }, ticked(sentences[0] ?? "")),
      sentences.slice(1).map((sentence) => make("p", {}, ticked(sentence))),
      make("p", { class: "quiet" }, make("span", { class: "small-word" }, t("look-for")), " ", ticked(one.look_for))),
    star && make("p", { class: "star-of" }, make("s", {}, star.before), make("span", { "aria-label": t("becomes") }, " → "),
      make("button", { type: "button", class: "plain", "data-do": "show-star", "data-look": star.address }, star.after)),
    make("p", { class: "doings" },
      make("button", { type: "button", class: "small-button", "data-do": "undo" }, icon("undo"), " ", t("trials.back")),
      others.map((each) => make("button", { type: "button", class: "small-button", "data-do": "try", "data-model": each.model, "data-name": each.one.name }, t("trials.next"), " ", ticked(each.one.title)))),
    close(),
  ];
}

// ------------------------------------------------------------------ one press

const pause = (time) => new Promise((done) => { setTimeout(done, STILL.matches ? 0 : time); });

/** Makes an experiment: what was before is seen, then what is changed.  It is one edit. */
async function undertake({ model, one }) {
  const base = { model: { name: model }, language: app.state.language }, start = { ...base, ...one.start };
  const here = { view: "steps", passage: one.passage, position: null };
  const began = app.past.length, mine = () => running?.one === one;
  const show = (next, before) => attempt(next, { keep: app.past.length > began ? "amend" : "push", before, here });
  running = { one, value: null };
  try {
    if (!(await show(start, null))) return;
    say(one.title);
    await pause(SEEN);
    const turns = one.turns.length ? one.turns.map((value) => [value, { ...start, weights: { [one.weight]: value } }]) : [[null, { ...base, ...one.change }]];
    for (const [value, next] of turns) {
      if (!mine() || bare(app.state) !== expected(start, one)) return;
      running.value = value;
      if (!(await show(next, start))) return;
      trial = { model, one, state: bare(next) };
      const turned = app.look.changed?.next;
      if (value !== null && turned && turned.before !== turned.after) break;
      if (value !== null) await pause(TURN);
    }
  } catch (error) { report(error); } finally { if (mine()) running = null; }
  const star = app.look.changed?.told.star;
  if (star?.passage && star.passage !== app.look.passage.id) await go({ passage: star.passage });
  else render();
  settle();
}

/** The State that is expected while a trial runs: whatever else is there, a person has put there. */
const expected = (start, one) => bare(running.value === null ? start : { ...start, weights: { [one.weight]: running.value } });

function settle() {
  region("greeting-title")?.focus({ preventScroll: true });
  region("trials").scrollIntoView({ block: "nearest" });
}

doing("try", (button) => {
  const chosen = found([button.dataset.model, button.dataset.name]);
  if (chosen && !running) undertake(chosen);
});
// The number itself, in the step.
doing("show-star", () => document.querySelector("#main .star")?.scrollIntoView({ block: "center", behavior: STILL.matches ? "instant" : "smooth" }));
doing("trials", () => {
  mode = mode === EXPERIMENTS ? null : EXPERIMENTS;
  if (tried()) trial = null;
  render();
  if (mode) region("greeting-title")?.focus();
});
doing("trials-close", () => {
  if (mode === GREETING) remember("greeting", "closed");
  mode = trial = null;
  render();
  region("main").focus({ preventScroll: true });
});
/** Shows the greeting again. */
export function greetAgain() {
  remember("greeting", null);
  mode = GREETING;
  trial = null;
  render();
  region("greeting-title")?.focus();
}
export const trialsOpen = () => mode !== null;
