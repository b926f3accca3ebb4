// The model laid open: its architecture as choices, every weight a number that can be changed.

import { app, attempt, render } from "./app.js";
import { doing, make } from "./drawing.js";
import { refusal } from "./notices.js";
import { known, t } from "./words.js";

const WINDOW = 10; // rows and columns of a large matrix that are shown at once
const LONGEST = 9; // signs of a number in a table; the editor has all of it
const OPEN = 600; // parameters up to which every table stands open
let trouble = null; // {key, error} of a setting that was refused
const windows = new Map(); // name → [row, column] where its window begins

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
      make("div", { class: "weight-tables" }, (app.weights?.list ?? []).map(weight))),
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
      ? make("select", { id, "data-do": "setting", "data-setting": key }, choices.map((choice) => make("option", { value: choice, selected: choice === value }, choice)))
      : make("input", { type: "text", id, "data-do": "setting", "data-setting": key, value, autocomplete: "off", spellcheck: "false", "aria-invalid": trouble?.key === key ? "true" : null });
  return make("div", { class: `setting${changed ? " moved" : ""}` }, make("label", { for: id }, label), field);
}

doing("setting", async (field) => {
  const key = field.dataset.setting, value = field.type === "checkbox" ? String(field.checked) : field.value;
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

// ------------------------------------------------------------------ weights

function weight(one) {
  const few = app.look.model.parameters <= OPEN;
  const shape = one.shape.length ? one.shape.map((size, at) => `${one.axes[at]} ${size}`).join(" × ") : "";
  const touched = Object.keys(app.state.weights ?? {}).some((key) => key.startsWith(`${one.name}[`));
  return make("details", { class: "weight-of", open: few, "data-key": one.name },
    make("summary", {}, make("code", {}, one.name), " ", make("span", { class: "quiet" }, shape), touched && make("span", { class: "aim edited-mark" }, t("edited"))),
    one.same_as ? make("p", { class: "quiet small" }, t("weights.same", { name: one.same_as }))
      : one.entries === null ? make("p", { class: "quiet small" }, t("weights.large")) : table(one));
}

function table(one) {
  const rows = one.shape.length === 2 ? one.entries : one.shape.length === 1 ? [one.entries] : null;
  if (!rows) return make("p", { class: "quiet small" }, t("weights.large"));
  const [top, left] = windows.get(one.name) ?? [0, 0];
  const high = Math.min(WINDOW, rows.length - top), wide = Math.min(WINDOW, rows[0].length - left);
  const cut = rows.length > WINDOW || rows[0].length > WINDOW;
  const labels = (axis, size) => (axis === "vocab" && app.look.model.vocabulary.length >= size ? app.look.model.vocabulary : null);
  const rowLabels = labels(one.axes[0], rows.length), columns = Array.from({ length: wide }, (_, at) => at + left);
  return make("div", {},
    cut && make("p", { class: "window" }, pan(one, top - WINDOW, left, "↑", top > 0), pan(one, top + WINDOW, left, "↓", top + high < rows.length),
      pan(one, top, left - WINDOW, "←", left > 0), pan(one, top, left + WINDOW, "→", left + wide < rows[0].length),
      make("span", { class: "quiet" }, `${one.name}[${one.shape.length === 2 ? `${top}:${top + high}, ` : ""}${left}:${left + wide}]`)),
    make("div", { class: "table weight", role: "group", "aria-label": one.name }, make("table", {},
      make("caption", { class: "sr" }, one.name),
      make("thead", {}, make("tr", {}, one.shape.length === 2 && make("td", {}), columns.map((at) => make("th", { scope: "col" }, at)))),
      make("tbody", {}, rows.slice(top, top + high).map((row, at) => make("tr", {},
        one.shape.length === 2 && make("th", { scope: "row" }, rowLabels ? rowLabels[top + at] : top + at),
        columns.map((column) => cell(one, one.shape.length === 2 ? [top + at, column] : [column], row[column], at + column - left === 0))))))));
}

const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 2)}…` : text).replace("-", "−");

function cell(one, index, text, stop) {
  const key = `${one.name}[${index.join(",")}]`, edited = app.state.weights?.[key];
  return make("td", { class: `n${edited !== undefined ? " moved" : ""}`, "data-a": `weight.${key}` },
    make("button", { type: "button", "data-a": `weight.${key}`, "data-text": edited ?? text, tabindex: stop ? "0" : "-1", class: "weight-number", title: cut(edited ?? text) === (edited ?? text) ? null : edited ?? text }, make("span", { class: "face" }, cut(edited ?? text))));
}

const pan = (one, row, column, sign, on) => make("button", { type: "button", class: "tool", "data-do": "pan", "data-name": one.name, "data-row": row, "data-column": column, disabled: !on, "aria-label": t(`pan.${sign}`) }, sign);

doing("pan", (button) => {
  windows.set(button.dataset.name, [Math.max(0, Number(button.dataset.row)), Math.max(0, Number(button.dataset.column))]);
  render();
});
