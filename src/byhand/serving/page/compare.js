// Two States side by side: the one that is looked at and another one, and where along the pass their
// numbers part.

import { app, change, compareWith, edits, noted, render, sent, waiting } from "./app.js";
import { Newest } from "./asking.js";
import { bar, doing, make } from "./drawing.js";
import { modelChoice, numbersChoice } from "./controls.js";
import { refusal, stops } from "./notices.js";
import { ticked } from "./rail.js";
import { decimal, localised, short, t } from "./words.js";

const compared = new Newest();
let told = null; // {of, answer | error}
stops(() => compared.cancel());

const question = () => JSON.stringify([sent(app.state), sent(theOther()), app.here.position]);

/** What is compared with: at first the same in float32, or, of floats, what is proven. */
function theOther() {
  app.other ??= presets()[0][1];
  return { ...app.other, language: app.state.language };
}

export function compareView() {
  compare();
  const of = told?.of === question() ? told : null;
  return [
    make("h2", { class: "step-title", tabindex: "-1" }, t("compare.title")),
    make("div", { class: "presets" }, make("span", { class: "small-word" }, t("compare.presets")), presets().map(([name]) => make("button", { type: "button", class: "small-button", "data-do": "preset", "data-name": name }, t(`preset.${name}`)))),
    make("div", { class: "sides" }, side("a", app.state, of?.answer?.a), side("b", theOther(), of?.answer?.b)),
    of?.error ? make("div", { class: "trouble", role: "alert" }, refusal(of.error)) : of?.answer ? outcome(of.answer) : make("p", { class: "quiet" }, "…"),
  ];
}

/** The map of the comparison, where it is known. */
export const comparedMap = () => (told?.of === question() ? told.answer?.map : undefined);

async function compare() {
  const of = question();
  if (told?.of === of) return;
  told = { of };
  try {
    const answer = await compared.ask("compare", { a: sent(app.state), b: sent(theOther()) }, waiting(true));
    if (answer) told = { of, answer };
  } catch (error) { told = { of, error }; }
  waiting(false)();
  noted();
  if (app.here.view === "compare") render();
}

// ------------------------------------------------------------------ the two sides

function side(name, state, found) {
  const id = (what) => `${name}-${what}`;
  const taught = (state.lessons ?? []).map(({ optimizer, rate, steps }) => [t("learn.lesson", { steps, optimizer }), rate]);
  const made = [...Object.entries(state.architecture ?? {}), ...taught, ...Object.entries(state.weights ?? {})];
  return make("fieldset", { class: `side ${name}` }, make("legend", {}, make("b", {}, name.toUpperCase()), " ", t(name === "a" ? "compare.a" : "compare.b")),
    make("label", { for: id("model") }, t("model")), modelChoice(id("model"), state.model, `side-model-${name}`, state.model.title),
    make("label", { for: id("text") }, t("text")), make("input", { type: "text", id: id("text"), "data-do": `side-text-${name}`, value: state.text ?? found?.text ?? "", spellcheck: "false", autocomplete: "off" }),
    make("label", { for: id("numbers") }, t("numbers")), numbersChoice(id("numbers"), state.numbers ?? found?.numbers, `side-numbers-${name}`),
    made.length > 0 && make("p", { class: "edits" }, made.slice(0, 6).map(([key, value]) => make("code", {}, `${key} = ${localised(String(value))}`)), made.length > 6 && `+ ${made.length - 6}`));
}

const sides = { a: () => app.state, b: theOther };
const set = {
  a: (next) => change(next, { before: null }),
  b: (next) => compareWith(next),
};
for (const name of ["a", "b"]) {
  doing(`side-model-${name}`, (field) => field.value && set[name]({ model: { name: field.value }, language: app.state.language }));
  doing(`side-text-${name}`, (field) => set[name]({ ...sides[name](), text: field.value }));
  doing(`side-numbers-${name}`, (field) => set[name]({ ...sides[name](), numbers: field.value }));
}

/** Comparisons worth a click: [name, the other State]. */
function presets() {
  const { state, look } = app, place = look.model.edit.architecture.find((one) => one.key === "norm.place")?.value;
  const rounded = look.numbers.includes("float") || look.numbers.startsWith("decimals");
  return [
    rounded ? ["proven", { ...state, numbers: look.model.exact ? "exact" : "digits 12" }] : ["float32", { ...state, numbers: "float32" }],
    look.numbers !== "bfloat16" && ["bfloat16", { ...state, numbers: "bfloat16" }],
    place && [place === "pre" ? "post" : "pre", { ...state, architecture: { ...state.architecture, "norm.place": place === "pre" ? "post" : "pre" } }],
    edits(state) && ["original", { ...state, weights: {}, architecture: {}, lessons: [] }],
    app.before && ["before", app.before],
  ].filter(Boolean);
}
doing("preset", (button) => compareWith(presets().find(([name]) => name === button.dataset.name)?.[1] ?? app.other));

// ------------------------------------------------------------------ what comes of it

function outcome(found) {
  return make("div", { class: "outcome" },
    make("div", { class: "verdicts" }, found.sentences.map((sentence) => make("p", {}, ticked(sentence)))),
    found.words && both(found),
    along(found));
}

function both(found) {
  const most = Math.max(...found.words.map((word) => Math.max(word.a ?? 0, word.b ?? 0)), 1e-9);
  return make("section", { class: "card" }, make("h3", {}, t("next")), make("div", { class: "table likely" }, make("table", {},
    make("caption", { class: "sr" }, t("next")),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, t("word")), make("th", { scope: "col" }, "A"), make("th", { scope: "col" }, "B"), make("td", {}))),
    make("tbody", {}, found.words.slice(0, 8).map((word) => make("tr", {}, make("th", { scope: "row" }, make("span", { class: "token" }, word.token)),
      make("td", {}, decimal(word.a)), make("td", {}, decimal(word.b)),
      make("td", { class: "bar" }, bar((word.a ?? 0) / most, "one"), bar((word.b ?? 0) / most, "two"))))))));
}

/** How long the bar of a difference is: by its digits, from the smallest one to the largest. */
function lengths(steps) {
  const found = steps.map((step) => step.largest).filter((one) => one > 0), low = Math.log10(Math.min(...found)) - 1, high = Math.log10(Math.max(...found));
  return (difference) => (difference > 0 ? (Math.log10(difference) - low) / (high - low) : 0);
}

function along(found) {
  const titles = new Map(app.look.passages.flatMap((passage) => passage.steps.map((step) => [step, passage.id]))), size = lengths(found.steps);
  return make("section", { class: "card" }, make("h3", {}, t("along")), make("p", { class: "quiet small" }, t("along.about")),
    make("div", { class: "table along" }, make("table", {},
      make("caption", { class: "sr" }, t("along")),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, t("step")), make("th", { scope: "col", colspan: "2" }, t("difference")), make("th", { scope: "col" }, "A"), make("th", { scope: "col" }, "B"))),
      make("tbody", {}, found.steps.map((step) => make("tr", { class: [step.address === found.first && "first", step.same === false && "parted", step.same && "alike"].filter(Boolean).join(" ") || null },
        make("th", { scope: "row" }, make("a", { href: `#${titles.get(step.address) ?? step.address}`, "data-do": "step-to" }, step.name && [make("span", { class: "name" }, step.name), " "], make("code", {}, step.address)), step.address === found.first && make("span", { class: "aim" }, t("along.first"))),
        make("td", { class: "bar" }, step.same === false && bar(size(step.largest), "apart")),
        make("td", {}, step.in !== "both" ? t(`only.${step.in}`) : step.same ? "=" : step.largest === null ? "≠" : short(step.largest)),
        make("td", {}, step.same === false && step.a !== null ? decimal(step.a) : ""), make("td", {}, step.same === false && step.b !== null ? decimal(step.b) : "")))))));
}
