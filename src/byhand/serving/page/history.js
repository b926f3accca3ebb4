// The history: every edit in words, the newest first, and a press that goes back to before it.

import { app, travelBy } from "./app.js";
import { doing, make } from "./drawing.js";
import { icon } from "./icons.js";
import { known, localised, t } from "./words.js";

const MOST = 12; // edits in the list
const LONGEST = 40; // characters of a text in it

const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
const word = (value) => (known(`choice.${value}`) ? t(`choice.${value}`) : known(`numbers.${value}`) ? t(`numbers.${value}`) : localised(String(value)));
const differ = (one, other) => JSON.stringify(one ?? null) !== JSON.stringify(other ?? null);
const keysOf = (one = {}, other = {}) => [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((key) => differ(one[key], other[key]));

/** What leads from one State to the next, in words. */
export function described(from, to) {
  const { state: was } = from, { state: is } = to;
  if (differ(was.model, is.model)) return t("edit.model", { model: is.model.name ?? is.model.title ?? t("own.file") });
  const weights = keysOf(was.weights, is.weights), settings = keysOf(was.architecture, is.architecture);
  if (differ(was.lessons ?? [], is.lessons ?? [])) return lessons(was.lessons ?? [], is.lessons ?? []);
  if (weights.length + settings.length > 2) return t("edit.several", { count: weights.length + settings.length });
  const said = [
    ...weights.map((key) => (key in (is.weights ?? {}) ? `${key} = ${localised(is.weights[key])}` : t("edit.back", { what: key }))),
    ...settings.map((key) => (key in (is.architecture ?? {}) ? `${t(`setting.${key}`)}: ${word(is.architecture[key])}` : t("edit.back", { what: t(`setting.${key}`) }))),
    differ(was.text, is.text) && t("edit.text", { text: cut(is.text ?? "") }),
    differ(was.target, is.target) && t("edit.target", { target: is.target ?? t("target.none") }),
    differ(was.numbers, is.numbers) && `${t("numbers")}: ${word(is.numbers ?? "")}`,
  ].filter(Boolean);
  return said.join(" · ") || t("edit.compared");
}

function lessons(was, is) {
  const count = (all) => all.reduce((sum, lesson) => sum + lesson.steps, 0);
  return t("edit.lessons", { count: count(is) - count(was) });
}

/** The menu of the edits that can be taken back. */
export function historyMenu() {
  const places = [...app.past, { state: app.state, other: app.other }], list = [];
  for (let at = places.length - 1; at > 0 && list.length < MOST; at -= 1) list.push([places.length - at, described(places[at - 1], places[at])]);
  return make("details", { class: "history", "data-key": "history" },
    make("summary", { title: t("history"), "aria-label": t("history") }, icon("history")),
    make("div", { class: "sheet" },
      make("p", { class: "quiet" }, t(list.length ? "history.about" : "history.none")),
      make("ol", {}, list.map(([back, what]) => make("li", {}, make("button", { type: "button", "data-do": "back-to", "data-back": back }, make("strong", {}, what)))))));
}

doing("back-to", (button) => {
  button.closest("details").open = false;
  travelBy(Number(button.dataset.back));
});
