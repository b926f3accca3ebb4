// The bar and the desk: views, undo, keeping, language; the model, the text and its tokens, the
// numbers, the word that is aimed at.

import { app, attempt, change, edits, go, render, sent, translate, travel, VIEWS } from "./app.js";
import { ask } from "./asking.js";
import { all, doing, fill, make, region } from "./drawing.js";
import { percent, spoken, t } from "./words.js";
import { play } from "./passage.js";
import { icon } from "./icons.js";
import { themes } from "./theme.js";
import { refusal } from "./notices.js";
import { historyMenu } from "./history.js";
import { trialsOpen } from "./trials.js";

export const NUMBERS = ["exact", "digits 12", "float32", "bfloat16", "decimals 2"];
let trouble = null; // {error, text, look}: what is wrong with the text as it stands in the box
let typing = false; // whether the way back has the text from before the typing

// ------------------------------------------------------------------ the bar

const button = (what, label, sign, more = {}) =>
  make("button", { type: "button", "data-do": what, title: label, "aria-label": label, class: "tool", ...more }, icon(sign));

function drawBar() {
  const tabs = VIEWS.map((view) => make("li", {}, make("a", {
    href: `#view=${view}`, "data-do": "view", "data-view": view, "aria-current": app.here.view === view && "page",
  }, t(`view.${view}`))));
  fill(region("bar"),
    make("h1", { class: "brand" }, "byhand"),
    make("nav", { "aria-label": t("views"), class: "views" }, make("ol", {}, tabs)),
    make("div", { class: "tools" },
      make("span", { class: "group" },
        button("undo", t("undo"), "undo", { disabled: !app.past.length }),
        button("redo", t("redo"), "redo", { disabled: !app.future.length }),
        button("reset", t("reset"), "reset", { disabled: !edits(app.state) }),
        historyMenu()),
      make("button", { type: "button", class: "tool try", "data-do": "trials", title: t("trials"), "aria-expanded": String(trialsOpen()), "aria-controls": "trials" }, icon("try"), make("span", {}, t("try"))),
      make("details", { class: "menu" },
        make("summary", {}, t("keep")),
        make("div", { class: "sheet" },
          make("button", { type: "button", "data-do": "keep-file" }, make("strong", {}, t("keep.file")), make("span", {}, t("keep.file.about"))),
          make("button", { type: "button", "data-do": "keep-page" }, make("strong", {}, t("keep.page")), make("span", {}, t("keep.page.about"))),
          make("button", { type: "button", "data-do": "keep-link" }, make("strong", {}, t("keep.link")), make("span", {}, t("keep.link.about"))))),
      make("span", { class: "group" },
        make("button", { type: "button", class: "tool word", "data-do": "language", lang: spoken() === "es" ? "en" : "es", title: spoken() === "es" ? "English" : "Español" }, spoken() === "es" ? "EN" : "ES"),
        button("theme", t("theme"), themes.chosen()),
        button("help", t("help"), "help"))));
}

doing("view", (link) => {
  if (app.playing) play(false);
  go({ view: link.dataset.view });
});
doing("undo", () => travel("past", "future"));
doing("redo", () => travel("future", "past"));
doing("reset", () => change({ ...app.state, weights: {}, architecture: {}, lessons: [] }));
doing("language", () => translate(spoken() === "es" ? "en" : "es"));
doing("theme", () => { themes.next(); render(); });

// ------------------------------------------------------------------ keeping

async function keep(question, type) {
  close();
  try {
    const found = await ask(question, { state: sent(app.state) });
    const link = make("a", { href: URL.createObjectURL(new Blob([found.text ?? found.html], { type })), download: found.name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  } catch (error) {
    app.error = error;
    render();
  }
}
const close = () => { for (const menu of all("details.menu[open]")) menu.open = false; };

doing("keep-file", () => keep("file", "application/yaml"));
doing("keep-page", () => keep("share", "text/html"));
doing("keep-link", async (one) => {
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  one.classList.add("copied");
  setTimeout(close, 600);
});
document.addEventListener("click", (event) => {
  for (const menu of all("details:is(.menu, .history)[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// ------------------------------------------------------------------ the desk

const field = (label, name, ...inside) => make("div", { class: `field for-${name}` }, make("label", { for: `the-${name}` }, label), ...inside);

function options(values, chosen, word = (value) => value) {
  return values.map((value) => make("option", { value, selected: value === chosen }, word(value)));
}

/** A choice of models, those of the server and a file of one's own. */
export function modelChoice(id, chosen, action, title) {
  const names = app.models.map((model) => model.name);
  const own = chosen.file !== undefined && make("option", { value: "", selected: true }, title ?? chosen.title ?? t("own.file"));
  return make("select", { id, "data-do": action }, own, options(names, chosen.name));
}

/** A choice of number systems. */
export function numbersChoice(id, chosen, action) {
  const values = !chosen || NUMBERS.includes(chosen) ? NUMBERS : [...NUMBERS, chosen];
  return make("select", { id, "data-do": action }, options(values, chosen, (value) => t(`numbers.${value}`)));
}

function drawDesk() {
  const { look, state } = app;
  if (trouble?.look !== look) trouble = null;
  fill(region("desk"),
    make("div", { class: "fields" },
      field(t("model"), "model",
        make("span", { class: "pair" }, modelChoice("the-model", state.model, "model"),
          make("label", { class: "tool file", title: t("open") }, icon("open"), make("span", { class: "sr" }, t("open")),
            make("input", { type: "file", id: "the-file", accept: ".yaml,.yml,.toml,.json,text/*", class: "sr" })))),
      field(t("text"), "text", make("input", {
        type: "text", id: "the-text", value: trouble?.text ?? state.text ?? look.text, "data-do": "text", "data-live": true, spellcheck: "false", autocomplete: "off", autocapitalize: "off",
        "aria-describedby": trouble ? "text-trouble" : null, "aria-invalid": trouble ? "true" : null,
      })),
      field(t("numbers"), "numbers", numbersChoice("the-numbers", look.numbers, "numbers"))),
    trouble && make("div", { id: "text-trouble", class: "trouble" }, refusal(trouble.error)),
    make("div", { class: "row" }, tokens(look), aim(look)));
}

/** The text as the model sees it, and what it expects next. */
function tokens(look) {
  const chips = look.tokens.map((token) => make("li", {}, make("button", {
    type: "button", class: "chip", "data-do": "position", "data-place": token.place, "aria-pressed": String(token.place === look.position),
    title: t("token.about", { id: token.id }),
  }, make("sup", {}, token.place), make("span", { class: "token" }, token.text))));
  const next = look.next && make("li", { class: "comes" }, make("span", { class: "arrow", "aria-label": t("comes") }, "→"), guess(look));
  return make("ol", { class: "tokens", "aria-label": t("tokens") }, chips, next);
}

/** The word that comes next, with its probability; which one it is may be open. */
function guess(look) {
  if (look.next.token === null) return make("span", { class: "chip guess" }, make("span", { class: "token" }, "?"));
  const { token, candidates } = look.next, share = candidates.find((one) => one.id === look.next.id)?.share ?? candidates[0]?.share ?? 0;
  const moved = look.changed?.next && look.changed.next.before !== look.changed.next.after ? look.changed.next.before : null;
  const inside = [moved !== null && make("s", {}, moved), make("span", { class: "token" }, token), make("span", { class: "much" }, percent(share))];
  const label = `${t("comes")}: ${token}, ${percent(share)}`;
  if (!extended(look)) return make("span", { class: "chip guess", style: `--share:${share.toFixed(3)}` }, ...inside);
  return make("button", { type: "button", class: "chip guess", style: `--share:${share.toFixed(3)}`, "data-do": "append", title: t("append"), "aria-label": `${label}. ${t("append")}` }, ...inside);
}

/** The text with the expected word behind it, where there is room and a way to write it. */
function extended(look) {
  if (!look.next || look.next.token === null || look.position !== look.tokens.length - 1) return null;
  if (look.model.context && look.tokens.length >= look.model.context) return null;
  if (look.model.outputs && !look.model.vocabulary.includes(look.next.token)) return null; // an answer, no token
  const join = { words: " ", characters: "" }[look.model.kind];
  return join === undefined ? null : `${look.text}${join}${look.next.token}`;
}

function aim(look) {
  const { vocabulary, vocab, outputs } = look.model, chosen = look.loss?.target ?? null;
  const answers = outputs ?? vocabulary, few = outputs !== null || vocabulary.length === vocab;
  const choice = few
    ? make("select", { id: "the-target", "data-do": "target" }, make("option", { value: "", selected: chosen === null }, t("target.none")), options(answers, chosen))
    : make("input", { type: "text", id: "the-target", "data-do": "target", value: chosen ?? "" });
  return make("div", { class: "aims" }, make("label", { for: "the-target" }, t("target")), choice,
    look.loss && make("output", { class: "loss" }, `${t("loss")} `, make("button", { type: "button", class: "plain", "data-a": look.loss.address }, look.loss.text)));
}

doing("model", (select) => select.value && change({ model: { name: select.value }, language: app.state.language }, { before: null, here: { passage: null, position: null } }));
doing("numbers", (select) => change({ ...app.state, numbers: select.value }));
doing("position", (chip) => go({ position: Number(chip.dataset.place) }));
doing("append", () => change({ ...app.state, text: extended(app.look), ...aimed() }, { here: { position: null } }));
doing("target", (choice) => change({ ...app.state, text: app.look.text, target: choice.value || null }));
doing("text", async (box) => {
  try {
    const shown = await attempt({ ...app.state, text: box.value, ...aimed() }, { keep: typing ? "amend" : "push", here: { position: null } });
    typing ||= shown;
    trouble = null;
  } catch (error) {
    trouble = { error, text: box.value, look: app.look };
  }
  render();
});

// With another text the model's own target would fall away unsaid: it stays.
const aimed = () => (app.look.loss ? { target: app.look.loss.target } : {});

document.addEventListener("focusin", (event) => { if (event.target.id === "the-text") typing = false; });

/** Draws the bar and the desk. */
export function drawControls() {
  drawBar();
  drawDesk();
}
