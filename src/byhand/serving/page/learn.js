// Learning: one step, ten steps, the loss as it falls, and every weight coloured by its gradient.  A
// lesson is an edit like any other: it is part of the State, and undo takes it back.

import { app, attempt, render, report, sent } from "./app.js";
import { Newest } from "./asking.js";
import { bar, doing, draw, make, painted } from "./drawing.js";
import { refusal } from "./notices.js";
import { ticked } from "./rail.js";
import { weight } from "./weights.js";
import { decimal, editable, short, t } from "./words.js";

const RATES = ["0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10"];
const OPTIMIZERS = ["sgd", "momentum", "adam", "adamw"];
const TEN = 10;
const EDGES = [0.04, 0.2, 0.4, 0.65]; // shares of the largest gradient at which deeper colours begin, as in the book
const chosen = {}; // optimizer and rate of the next step, where a person has chosen them
let running = null; // the State that a run of steps has reached
const foreseen = new Newest();
let foretold = null; // {of, loss} after one more step

const lessons = () => app.state.lessons ?? [];
const setting = (key, usual) => chosen[key] ?? lessons().at(-1)?.[key] ?? usual;

/** Learning, in one view. */
export function learnView() {
  const { learning, model } = app.look;
  const title = make("h2", { class: "step-title", tabindex: "-1" }, t("learn.title", { model: model.title }));
  if (learning.refused) return [title, make("div", { class: "trouble" }, refusal(learning.refused))];
  foresee();
  const goal = learning.target === null ? t("learn.every", { count: learning.counted }) : t("learn.target", { target: learning.target, text: learning.text });
  return [
    title,
    make("p", { class: "lead" }, t("learn.about"), " ", ticked(goal)),
    controls(),
    buttons(),
    make("section", { class: "picture" }, make("h3", {}, t("learn.loss")), curve(learning)),
    make("section", { class: "weights" }, make("h3", {}, t("learn.gradients")),
      learning.weights[0]?.gradients ? [make("p", { class: "quiet small" }, t("learn.colours"), " ", scale(learning)),
        make("div", { class: "weight-tables heated" }, learning.weights.map((one) => weight(one, heat(one, learning.largest))))] : sizes(learning)),
    make("p", { class: "quiet small" }, learning.numbers === "exact" && [t("learn.exact"), " "], t("learn.numbers")),
  ];
}

// ------------------------------------------------------------------ the next step

function controls() {
  const rate = setting("rate", "0.1"), place = RATES.findIndex((one) => Number(one) >= Number(rate)), optimizer = setting("optimizer", "sgd");
  return make("div", { class: "teaching" },
    make("div", { class: "setting" }, make("label", { for: "the-optimizer" }, t("learn.optimizer")),
      make("select", { id: "the-optimizer", "data-do": "learn-optimizer" }, OPTIMIZERS.map((one) => make("option", { value: one, selected: one === optimizer }, t(`optimizer.${one}`))))),
    make("div", { class: "setting rate" }, make("label", { for: "the-rate" }, t("learn.rate"), " ", make("output", { for: "the-rate" }, editable(rate))),
      make("input", { type: "range", id: "the-rate", "data-do": "learn-rate", "data-live": true, min: 0, max: RATES.length - 1, step: 1, value: place < 0 ? RATES.length - 1 : place, "aria-valuetext": editable(rate) })));
}

const buttons = () => make("div", { class: "teaching", role: "group", "aria-label": t("learn.steps") },
  make("button", { type: "button", class: "main-button", "data-do": "learn-one", title: t("keys.learn") }, t("learn.one")),
  make("button", { type: "button", class: "main-button second", "data-do": "learn-ten", "aria-pressed": String(running !== null) }, t(running ? "learn.stop" : "learn.ten")));

/** The State after one more step: the last lesson goes on, or a new one begins. */
function taught(state) {
  const { text, target } = app.look.learning, known = state.lessons ?? [], last = known.at(-1);
  const lesson = { text, target, optimizer: setting("optimizer", "sgd"), rate: setting("rate", "0.1") };
  const edited = Object.keys(state.weights ?? {}).length > 0;
  const on = last && !edited && Object.keys(lesson).every((key) => last[key] === lesson[key]);
  const next = on ? [...known.slice(0, -1), { ...last, steps: last.steps + 1 }]
    : [...known, { ...lesson, steps: 1, ...(edited ? { weights: state.weights } : {}) }];
  return { ...state, lessons: next, weights: {} };
}

/** So many steps, each shown; together they are one edit.  Nothing goes on after something else was done. */
export async function learn(count) {
  if (app.look.learning?.refused) return;
  if (running) { running = null; return; }
  const before = running = app.state;
  try {
    for (let at = 0; at < count && running === app.state; at += 1) {
      const started = performance.now(), next = running = taught(app.state);
      if (!(await attempt(next, { keep: at ? "amend" : "push", before }))) break;
      painted("learn", started);
      await new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
    }
  } catch (error) { report(error); }
  running = null;
  render();
}

doing("learn-one", () => learn(1));
doing("learn-ten", () => learn(TEN));
doing("learn-optimizer", (field) => { chosen.optimizer = field.value; render(); });
doing("learn-rate", (field) => { chosen.rate = RATES[Number(field.value)]; render(); });

/** Asks what the loss would be after one more step. */
async function foresee() {
  const next = taught(app.state), of = JSON.stringify(sent(next));
  if (running || foretold?.of === of) return;
  foretold = { of, loss: foretold?.loss };
  try {
    const answer = await foreseen.ask("learn", { state: sent(next) });
    if (answer) foretold = { of, loss: answer.losses.at(-1) };
  } catch { foretold = { of }; } // the step itself will say why
  if (app.here.view === "learn" && !running) render();
}

// ------------------------------------------------------------------ the loss

const NARROW = matchMedia("(max-width: 52rem)");
const HIGH = 210, LEFT = 44, RIGHT = 74, TOP = 12, BOTTOM = 26;
const MARKED = 60; // steps that have a dot each

const said = (loss) => (loss === null ? "∞" : decimal(loss));

/** Round numbers from 0 to at least the largest: four to six of them. */
function ticks(most) {
  const size = 10 ** Math.floor(Math.log10(most / 4)), step = [1, 2, 5, 10].map((by) => by * size).find((by) => most / by <= 5);
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, at) => at * step);
}

/** The loss before each step and now; dashed, what one more step would make of it. */
function curve(learning) {
  const losses = lessons().length ? learning.losses : [learning.loss], next = running ? undefined : foretold?.loss;
  const known = [...losses, next ?? null].filter((one) => one !== null);
  const lines = ticks(Math.max(...known, 1e-9)), most = lines.at(-1), wide = NARROW.matches ? 350 : 680, last = losses.length - 1;
  const x = (at) => LEFT + (wide - LEFT - RIGHT) * at / Math.max(last + 1, TEN), y = (loss) => (loss === null ? TOP : TOP + (HIGH - TOP - BOTTOM) * (1 - loss / most)); // null: infinite
  const path = losses.map((loss, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(loss).toFixed(1)}`).join("");
  const told = last ? t(last === 1 ? "learn.curve.one" : "learn.curve", { first: said(losses[0]), last: said(losses[last]), steps: last }) : t("learn.now", { loss: said(losses[0]) });
  return [
    draw("svg", { class: "falling", viewBox: `0 0 ${wide} ${HIGH}`, role: "img", "aria-label": told },
      lines.map((loss) => [draw("line", { class: "rule", x1: LEFT, x2: wide - RIGHT, y1: y(loss), y2: y(loss) }), draw("text", { x: LEFT - 8, y: y(loss) + 4, class: "side" }, short(loss))]),
      draw("text", { x: x(0), y: HIGH - 6, class: "below" }, "0"), draw("text", { x: x(Math.max(last + 1, TEN)), y: HIGH - 6, class: "below" }, Math.max(last + 1, TEN)),
      draw("text", { x: (x(0) + x(Math.max(last + 1, TEN))) / 2, y: HIGH - 6, class: "below" }, t("learn.steps")),
      next !== undefined && [draw("path", { class: "next", d: `M${x(last)} ${y(losses[last])}L${x(last + 1)} ${y(next)}` }), draw("circle", { class: "next", cx: x(last + 1), cy: y(next), r: 4 })],
      draw("path", { class: "line", d: path }),
      losses.slice(0, -1).length < MARKED && losses.slice(0, -1).map((loss, at) => draw("circle", { cx: x(at), cy: y(loss), r: 2.5 })),
      draw("circle", { class: "now", cx: x(last), cy: y(losses[last]), r: 4.5 }),
      draw("text", { x: Math.min(x(last) + 10, wide - RIGHT + 12), y: Math.max(y(losses[last]) - 8, 12), class: "now" }, said(losses[last]))),
    make("p", { class: "sentence told" }, told, " ", next !== undefined && make("span", { class: "quiet" }, t("learn.next", { loss: said(next) }))),
  ];
}

// ------------------------------------------------------------------ gradients

const depth = (value, most) => EDGES.filter((edge) => Math.abs(value) >= edge * most).length;
const level = (value, most) => (most && depth(value, most) ? `${value < 0 ? "n" : "p"}${depth(value, most)}` : "z");

const SHORT = 5; // signs of an exact gradient that stands for itself
const NOISE = 1e-9; // of the largest gradient: what rounding leaves of a zero
const signed = (value, most) => (value !== 0 && Math.abs(value) < NOISE * most ? "≈ 0" : value > 0 ? `+${short(value)}` : short(value));

/** The colour of each entry of a weight by its gradient, which stands below it. */
function heat(one, most) {
  return (index) => {
    const value = index.reduce((part, at) => part[at], one.gradients);
    const form = one.forms && index.reduce((part, at) => part[at], one.forms);
    return [level(value, most), make("small", { class: "slope", title: form }, make("span", { class: "sr" }, t("learn.gradient")), " ", form && form.length <= SHORT ? form.replace("-", "−") : signed(value, most))];
  };
}

const scale = ({ largest }) => make("span", { class: "scale" }, make("span", {}, short(-largest)),
  make("span", { class: "colours", "aria-hidden": "true" }, ["n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4"].map((one) => make("i", { class: one }))), make("span", {}, `+${short(largest)}`));

/** Of a large model, how long the gradient of each weight is. */
function sizes({ weights, norm }) {
  const most = Math.max(...weights.map((one) => one.norm), 1e-300);
  return make("div", { class: "table along" }, make("table", {},
    make("caption", { class: "sr" }, t("learn.gradients")),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, t("weights")), make("th", { scope: "col", colspan: "2" }, t("learn.norm")))),
    make("tbody", {}, [...weights.map((one) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, one.name)), make("td", { class: "bar" }, bar(one.norm / most)), make("td", {}, short(one.norm)))),
      make("tr", {}, make("th", { scope: "row" }, t("learn.all")), make("td", {}), make("td", {}, short(norm)))])));
}

NARROW.addEventListener("change", () => { if (app.look && app.here.view === "learn") render(); });
