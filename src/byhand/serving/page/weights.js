// The model laid open: its architecture as choices, every weight a number that can be changed.

import { app, attempt, render, sent } from "./app.js";
import { ask } from "./asking.js";
import { doing, make } from "./drawing.js";
import { refusal } from "./notices.js";
import { decimal, editable, known, localised, pointed, t } from "./words.js";

const WINDOW = 10; // rows and columns of a large matrix that are shown at once
const LONGEST = 9; // signs of a number in a table; the editor has all of it
const OPEN = 600; // parameters up to which every table stands open
let trouble = null; // {key, error} of a setting that was refused
const windows = new Map(); // name → [row, column] where its window begins
const fetched = new Map(); // question → {window | error} of a weight that is too large to be sent whole
const MANY = 60; // windows that are remembered

/** The architecture and the weights. */
export function weightsView() {
  const { model } = app.look;
  return [
    make("h2", { class: "step-title", tabindex: "-1" }, t("weights.title", { model: model.title })),
    make("p", { class: "lead" }, model.about),
    make("section", { class: "settings", "aria-label": t("architecture") }, make("h3", {}, t("architecture")),
      make("div", { class: "settings-grid" }, model.edit.architecture.filter((one) => !ticked(one)).map(setting)),
      make("div", { class: "settings-grid ticks" }, model.edit.architecture.filter(ticked).map(setting)),
      trouble && make("div", { class: "trouble", role: "alert" }, refusal(trouble.error))),
    make("section", { class: "weights", "aria-label": t("weights") },
      make("h3", {}, t("weights"), " ", make("span", { class: "quiet" }, t("weights.count", { count: model.parameters.toLocaleString(document.documentElement.lang) }))),
      make("p", { class: "quiet small" }, t(model.edit.weights ? "weights.how" : "weights.fixed")),
      make("div", { class: "weight-tables" }, (app.weights?.list ?? []).map((one) => weight(one)))),
  ];
}

// ------------------------------------------------------------------ settings

const ticked = ({ choices }) => choices?.join() === "true,false";

function setting({ key, value, choices }) {
  const id = `setting-${key.replace(".", "-")}`, changed = key in (app.state.architecture ?? {});
  const label = known(`setting.${key}`) ? t(`setting.${key}`) : key;
  const field = ticked({ choices })
    ? make("input", { type: "checkbox", id, "data-do": "setting", "data-setting": key, checked: value === "true" })
    : choices
      ? make("select", { id, "data-do": "setting", "data-setting": key }, choices.map((choice) => make("option", { value: choice, selected: choice === value }, known(`choice.${choice}`) ? t(`choice.${choice}`) : choice)))
      : make("input", { type: "text", id, "data-do": "setting", "data-setting": key, value: known(`choice.${value}`) ? t(`choice.${value}`) : editable(value), autocomplete: "off", spellcheck: "false", "aria-invalid": trouble?.key === key ? "true" : null });
  return make("div", { class: `setting${changed ? " moved" : ""}` }, make("label", { for: id }, label), field);
}

doing("setting", async (field) => {
  const key = field.dataset.setting, value = field.type === "checkbox" ? String(field.checked) : meant(field.value);
  const architecture = { ...app.state.architecture, [key]: value };
  const origin = app.models.find((model) => model.name === app.state.model.name)?.edit.architecture.find((one) => one.key === key)?.value;
  if (value === origin) delete architecture[key];
  try {
    trouble = null;
    await attempt({ ...app.state, architecture });
  } catch (error) {
    trouble = { key, error };
    render();
  }
});

// What is typed in a field of words and numbers, as a model file writes it.
const meant = (text) => (text.trim() === t("choice.none") ? "none" : pointed(text));

// ------------------------------------------------------------------ weights

/** One weight as a table; a heat colours its cells: `heat(index)` gives [class, what stands below]. */
export function weight(one, heat = null) {
  const few = app.look.model.parameters <= OPEN;
  const shape = one.shape.length ? one.shape.map((size, at) => `${one.axes[at]} ${size}`).join(" × ") : "";
  const touched = Object.keys(app.state.weights ?? {}).some((key) => key.startsWith(`${one.name}[`));
  return make("details", { class: "weight-of", open: few, "data-key": one.name },
    make("summary", {}, one.title && [make("span", { class: "name" }, one.title), " "], make("code", {}, one.name), " ", make("span", { class: "quiet" }, shape), touched && make("span", { class: "aim edited-mark" }, t("edited"))),
    one.same_as ? make("p", { class: "quiet small" }, t("weights.same", { name: one.same_as })) : table(one, heat));
}

// The rows of a tensor are those of all its axes but the last.
const size = (one) => ({ rows: one.shape.slice(0, -1).reduce((all, each) => all * each, 1), columns: one.shape.at(-1) ?? 1 });

/** The index of a row among the axes before the last. */
function leading(one, row) {
  const index = [];
  for (const each of one.shape.slice(0, -1).reverse()) {
    index.unshift(row % each);
    row = Math.floor(row / each);
  }
  return index;
}

function table(one, heat) {
  const { rows, columns } = size(one), [top, left] = windows.get(one.name) ?? [0, 0];
  const high = Math.min(WINDOW, rows - top), wide = Math.min(WINDOW, columns - left);
  const found = one.entries === null ? part(one, top, left) : { entries: cutOut(one, top, left) };
  const labels = one.shape.length === 2 && one.axes[0] === "vocab" && app.look.model.vocabulary.length >= rows ? app.look.model.vocabulary : null;
  const across = Array.from({ length: wide }, (_, at) => at + left), headed = one.shape.length > 1;
  return make("div", {},
    (rows > WINDOW || columns > WINDOW) && make("p", { class: "window" },
      pan(one, top - WINDOW, left, "↑", top > 0), pan(one, top + WINDOW, left, "↓", top + high < rows),
      pan(one, top, left - WINDOW, "←", left > 0), pan(one, top, left + WINDOW, "→", left + wide < columns),
      make("input", { type: "text", class: "pan-to", "data-do": "pan-to", "data-name": one.name, "aria-label": t("pan.to", { name: one.name }), title: t("pan.to", { name: one.name }), value: [...leading(one, top), left].join(","), autocomplete: "off", spellcheck: "false" }),
      make("span", { class: "quiet" }, `… ${[...leading(one, top + high - 1), left + wide - 1].join(",")}`)),
    found.error ? make("div", { class: "trouble" }, refusal(found.error))
      : make("div", { class: "table weight", role: "group", "aria-label": one.name }, make("table", {},
        make("caption", { class: "sr" }, one.name),
        make("thead", {}, make("tr", {}, headed && make("td", {}), across.map((at) => make("th", { scope: "col" }, at)))),
        make("tbody", {}, Array.from({ length: high }, (_, at) => make("tr", {},
          headed && make("th", { scope: "row" }, labels ? labels[top + at] : leading(one, top + at).join(",")),
          across.map((column) => cell(one, [...leading(one, top + at), ...(one.shape.length ? [column] : [])], found.entries?.[at]?.[column - left], at + column - left === 0, heat))))))));
}

/** The window of a weight that was sent whole. */
function cutOut(one, top, left) {
  const rows = one.shape.length < 2 ? [one.shape.length ? one.entries : [one.entries]] : one.entries.flat(one.shape.length - 2);
  return rows.slice(top, top + WINDOW).map((row) => row.slice(left, left + WINDOW));
}

/** The window of a weight that was not: asked for, and drawn when it is there.  Edits are laid over it. */
function part(one, row, column) {
  const asked = { state: sent({ ...app.state, weights: {}, text: undefined, target: undefined, numbers: undefined }), name: one.name, row, column };
  const key = JSON.stringify(asked);
  if (!fetched.has(key) && document.querySelector(`details.weight-of[open][data-key="${CSS.escape(one.name)}"]`)) { // somebody sees it
    if (fetched.size >= MANY) fetched.delete(fetched.keys().next().value);
    fetched.set(key, {});
    ask("weight", asked).then((found) => fetched.set(key, found), (error) => fetched.set(key, { error })).then(() => app.here.view === "weights" && render());
  }
  return fetched.get(key) ?? {};
}

// A table that is opened is drawn with its numbers.
document.addEventListener("toggle", (event) => { if (event.target.matches?.("details.weight-of[open]")) render(); }, true);

const cut = (text) => localised(text.length > LONGEST ? `${text.slice(0, LONGEST - 2)}…` : text);

/** A float in few signs, for a narrow table; what rounding leaves of a zero is said to be near it. */
function brief(text) {
  if (!/^-?[0-9]*\.[0-9]{5,}$/.test(text)) return cut(text);
  return Math.abs(Number(text)) < 5e-5 ? "≈ 0" : decimal(Number(text));
}

function cell(one, index, text, stop, heat) {
  if (text === undefined) return make("td", { class: "n" }, "…"); // on its way
  const key = `${one.name}[${index.join(",")}]`, edited = app.state.weights?.[key];
  const [level, below] = heat?.(index) ?? [];
  return make("td", { class: ["n", edited !== undefined && "moved", level].filter(Boolean).join(" "), "data-a": `weight.${key}` },
    make("button", { type: "button", "data-a": `weight.${key}`, "data-text": edited ?? text, tabindex: stop ? "0" : "-1", class: "weight-number", title: (edited ?? text).length > LONGEST ? localised(edited ?? text) : null }, make("span", { class: "face" }, (heat ? brief : cut)(edited ?? text)), below));
}

const pan = (one, row, column, sign, on) => make("button", { type: "button", class: "tool", "data-do": "pan", "data-name": one.name, "data-row": row, "data-column": column, disabled: !on, "aria-label": t(`pan.${sign}`) }, sign);

doing("pan", (button) => {
  windows.set(button.dataset.name, [Math.max(0, Number(button.dataset.row)), Math.max(0, Number(button.dataset.column))]);
  render();
});

// "12,200" shows the window that begins there, or the last one that there is.
doing("pan-to", (field) => {
  const one = app.weights.list.find(({ name }) => name === field.dataset.name), said = field.value.match(/\d+/g)?.map(Number) ?? [];
  const index = one.shape.map((each, at) => Math.min(said[at] ?? 0, each - 1));
  windows.set(one.name, [one.shape.slice(0, -1).reduce((row, each, at) => row * each + index[at], 0), index.at(-1) ?? 0]);
  field.blur();
  render();
});
