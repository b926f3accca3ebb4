// All texts: a claim about every text of some length, proven or refuted by one of them.  Each text
// that is shown opens in the page.

import { app, change, render, sent, waiting } from "./app.js";
import { Newest } from "./asking.js";
import { all, doing, make, parsed, say } from "./drawing.js";
import { refusal, stops } from "./notices.js";
import { ticked } from "./rail.js";
import { t } from "./words.js";

const CLAIMS = ["table", "next", "function", "constant"];
const chosen = { texts: null, claim: "table", token: null, expression: "" };
const asking = new Newest();
const answersOf = ({ outputs, vocabulary }) => outputs ?? vocabulary;
let told = null; // {of, answer | error}
let known = null; // {of, choices}: the texts that the model's have
stops(() => asking.cancel());

const model = () => JSON.stringify({ ...sent(app.state), text: null, target: null, numbers: null });

/** What is asked: only what the claim needs. */
function request() {
  const { texts, claim, token, expression } = chosen, asked = { state: sent(app.state), claim };
  if (texts) asked.texts = texts;
  if (claim === "next") asked.token = token ?? answersOf(app.look.model)[0];
  if (claim === "function") asked.expression = expression;
  return asked;
}

export function proveView() {
  if (known?.of !== model()) { Object.assign(chosen, { texts: null, claim: "table", token: null, expression: "" }); known = { of: model() }; told = null; prove(); }
  const { answer, error } = told ?? {};
  return [
    make("h2", { class: "step-title", tabindex: "-1" }, t("prove.title")),
    make("p", { class: "lead" }, t("prove.about")),
    known.choices && form(),
    make("div", { id: "the-proof", "aria-live": "polite" },
      error ? make("div", { class: "trouble" }, refusal(error)) : answer ? shown(answer) : make("p", { class: "quiet" }, "…")),
  ];
}

const option = (value, now, text) => make("option", { value, selected: value === now }, text);
const field = (id, label, inside) => make("div", { class: "setting" }, make("label", { for: id }, label), inside);

function form() {
  const answers = answersOf(app.look.model), { claim } = chosen;
  return make("form", { class: "teaching claiming", "data-do": "prove" },
    field("the-texts", t("prove.texts"), make("select", { id: "the-texts", "data-do": "prove-texts" }, known.choices.map(({ value, count }) => option(value, known.texts, t(value.startsWith("up to ") ? "prove.up-to" : value === "1" ? "prove.one" : "prove.length", { length: value.replace("up to ", ""), count }))))),
    field("the-claim", t("prove.claim"), make("select", { id: "the-claim", "data-do": "prove-claim" }, CLAIMS.map((one) => option(one, claim, t(`prove.claim.${one}`))))),
    claim === "next" && field("the-next", t("prove.token"), make("select", { id: "the-next", "data-do": "prove-token" }, answers.map((one) => option(one, chosen.token ?? answers[0], one)))),
    claim === "function" && field("the-function", t("prove.expression"), make("input", { type: "text", id: "the-function", "data-do": "prove-expression", value: chosen.expression, placeholder: known.names?.length > 1 ? `(${known.names[0]} + ${known.names[1]}) % ${app.look.model.vocab}` : "text[-1]", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": "function-how" })),
    claim !== "table" && make("button", { type: "submit", class: "main-button" }, t("prove.do")),
    claim === "function" && make("p", { id: "function-how", class: "quiet small" }, ticked(known.names?.length ? t("prove.names", { names: known.names.join(", ") }) : t("prove.text"))));
}

/** The answer and its picture; every square or line opens its text. */
function shown({ html, example, opens }) {
  const drawn = make("div", { class: "proof" }, parsed(html));
  const places = all(".cases td", drawn).length ? all(".cases td:not(.by-none)", drawn) : all("tbody th", drawn);
  if (places.length === opens.length) places.forEach((place, at) => {
    const label = place.textContent;
    place.replaceChildren(make("button", { type: "button", class: "plain", "data-do": "open-text", "data-text": opens[at], title: opens[at], "aria-label": place.localName === "td" ? t("prove.opens", { text: opens[at], next: label }) : null }, label));
  });
  if (example !== null) drawn.querySelector(".conclusion")?.append(make("p", {}, make("button", { type: "button", class: "main-button", "data-do": "open-text", "data-text": example }, t("prove.open", { text: example }))));
  return drawn;
}

async function prove() {
  const asked = request(), of = known.of;
  try {
    const answer = await asking.ask("prove", asked, waiting(true));
    if (answer === undefined) return;
    Object.assign(known, { choices: answer.choices, texts: answer.texts, names: answer.names });
    told = { answer };
    if (answer.answer) say(document.createRange().createContextualFragment(answer.html).querySelector(".conclusion .said")?.textContent ?? "");
  } catch (error) { told = { error }; } finally { waiting(false)(); }
  if (app.here.view === "prove" && known.of === of) render();
}

/** Another choice: what was found for the one before is gone. */
function choose(what) {
  Object.assign(chosen, what);
  told = null;
  if (chosen.claim === "table" || chosen.claim === "constant") prove();
  else told = { answer: { html: "", example: null, opens: [] } };
  render();
}

doing("prove", () => { told = null; render(); prove(); });
doing("prove-texts", (select) => { known.texts = select.value; choose({ texts: select.value }); });
doing("prove-claim", (select) => choose({ claim: select.value }));
doing("prove-token", (select) => choose({ token: select.value }));
doing("prove-expression", (input) => { chosen.expression = input.value; });
doing("open-text", (button) => change({ ...app.state, text: button.dataset.text }, { here: { view: "steps", passage: null, position: null } }));
