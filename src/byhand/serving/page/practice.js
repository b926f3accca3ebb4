// Practice: one number is hidden, a person works it out, and the page says whether it follows and,
// where it does not, which mistake makes it.

import { app, go, render, sent } from "./app.js";
import { ask } from "./asking.js";
import { doing, make, parsed, region, say } from "./drawing.js";
import { refusal } from "./notices.js";
import { ticked } from "./rail.js";
import { spoken, t } from "./words.js";

let task = null; // {of, question | error}
let marked = null; // the last verdict, or a refusal
let typed = "", turns = 0, wrongs = 0; // wrong answers to this task
const score = { right: 0, tried: 0 };

const model = () => JSON.stringify({ ...sent(app.state), language: null });

export function practiceView() {
  if (task?.of !== model()) set();
  else if (task.question && task.language !== spoken()) set(task.question.address);
  return [
    make("h2", { class: "step-title", tabindex: "-1" }, t("practice.title")),
    make("p", { class: "lead" }, t("practice.about")),
    task?.error ? make("div", { class: "trouble" }, refusal(task.error)) : task?.question ? exercise(task.question) : make("p", { class: "quiet" }, "…"),
    make("p", { class: "score", role: "status" }, score.tried > 0 && t("practice.score", score)),
  ];
}

function exercise(question) {
  return make("div", { class: "exercise" },
    make("p", { class: "asked" }, ticked(question.meaning)),
    make("p", { class: "asked-for" }, ticked(question.question)),
    make("div", { class: "formula" }, make("div", { class: "law" }, parsed(question.html)),
      question.names.length > 0 && make("p", { class: "where-names" }, where(question.names))),
    question.given.length > 0 && make("div", { class: "table given-numbers" }, make("table", {}, make("caption", {}, t("practice.given")),
      make("tbody", {}, question.given.map((one) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, one.address)), make("td", {}, one.text)))))),
    make("form", { class: "answer", "data-do": "mark" },
      make("label", { for: "the-answer" }, t("practice.answer")),
      make("input", { type: "text", id: "the-answer", "data-key": question.address, value: typed, autocomplete: "off", spellcheck: "false", inputmode: "text", "aria-describedby": "the-verdict" }),
      make("button", { type: "submit", class: "main-button" }, t("practice.check")),
      make("button", { type: "button", class: "small-button", "data-do": "reveal" }, t("practice.reveal")),
      make("button", { type: "button", class: "small-button", "data-do": "another" }, t("practice.another")),
      make("button", { type: "button", class: "small-button", "data-do": "go-to", "data-passage": question.passage }, t("practice.see"))),
    make("div", { id: "the-verdict", "aria-live": "polite" }, marked && verdict(marked)));
}

function where(names) {
  const [front, back] = t("where").split("{names}");
  return [front, names.map((name, at) => [at ? ", " : "", make("code", {}, name.short), " = ", make("code", {}, name.address)]), back];
}

function verdict(found) {
  if (found.message) return make("div", { class: "trouble" }, refusal(found));
  return make("div", { class: `verdict-of ${found.verdict}` },
    make("p", { class: "word" }, make("span", { class: "sign" }, found.sign), " ", found.word),
    told(found).map((sentence) => make("p", {}, ticked(sentence))),
    found.change && make("p", {}, ticked(String(found.change))),
    found.expected !== undefined && make("p", { class: "expected" }, `${t("practice.expected")} `, make("b", {}, found.expected)));
}

/** What is said of an answer: the mistake where it is certain, else one more hint for each attempt. */
const told = (found) => (found.verdict === "wrong" && !found.suspect ? found.hints.slice(0, Math.max(1, wrongs)) : found.sentences ?? []);

/** Sets a task: a number by its address, or any. */
async function set(address) {
  const of = model(), turn = ++turns;
  task = { of };
  marked = null;
  typed = "";
  wrongs = 0;
  try {
    const asked = address ? { address } : { seed: Math.floor(Math.random() * 1e6) };
    const question = await ask("practice", { state: sent(app.state), ...asked });
    if (turn === turns) task = { of, question, language: spoken() };
  } catch (error) { if (turn === turns) task = { of, error }; }
  if (app.here.view !== "practice" || turn !== turns) return;
  if (task.question && task.question.passage !== app.here.passage) await go({ passage: task.question.passage });
  else render();
}

async function mark(reveal) {
  const field = region("the-answer");
  typed = field.value;
  if (!typed.trim() && !reveal) return field.focus();
  try {
    marked = await ask("practice", { state: sent(app.state), address: task.question.address, answer: typed.trim() || "?", ...(reveal ? { reveal: true } : {}) });
    const counts = ["right", "rounding", "wrong"].includes(marked.verdict); // words in place of a number do not
    if (!reveal && typed.trim() && counts) {
      score.tried += 1;
      score.right += marked.verdict !== "wrong";
      wrongs += marked.verdict === "wrong";
    }
    say(marked.word);
  } catch (error) { marked = error; }
  render();
  field.focus();
  region("the-verdict").scrollIntoView({ block: "nearest" });
  return undefined;
}

doing("mark", () => mark(false));
doing("reveal", () => mark(true));
doing("another", async () => { await set(); region("the-answer")?.focus(); });
doing("practise", async (one) => {
  task = { of: model() }; // not just any number
  await go({ view: "practice" });
  await set(one.dataset.address);
});
