// The glossary: technical words are marked where they first occur, pointing at one shows what it
// means, and pressing it opens all of them.

import { all, doing, fill, make, region } from "./drawing.js";
import { t, terms } from "./words.js";

const PROSE = "p, figcaption, li, th[scope=col]";
const LEFT = "a, button, code, math, svg, label, .term, .token, .kicker, .where-names, .refusal, h1, h2, h3, h4";
const HESITATION = 120;
let of = null, pattern = null, byForm = new Map(); // of the language in which it was made
let shown = null, timer = 0;

function known() {
  if (of === terms()) return;
  of = terms();
  byForm = new Map(of.flatMap((entry) => entry.forms.map((form) => [form.toLowerCase(), entry])));
  const forms = [...byForm.keys()].sort((one, other) => other.length - one.length).map((form) => form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  pattern = forms.length ? new RegExp(`(?<![\\p{L}\\p{N}_.-])(${forms.join("|")})(?![\\p{L}\\p{N}_-])`, "giu") : null;
}

/** Marks the first occurrence of each word in the prose of a part of the page. */
export function marked(content) {
  known();
  if (!pattern) return content;
  const told = new Set();
  for (const prose of all(PROSE, content)) {
    const walk = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT), texts = [];
    while (walk.nextNode()) texts.push(walk.currentNode);
    for (const text of texts) if (!text.parentElement.closest(LEFT)) mark(text, told);
  }
  return content;
}

function mark(text, told) {
  const parts = [];
  let from = 0;
  for (const { 0: word, index } of text.data.matchAll(pattern)) {
    const entry = byForm.get(word.toLowerCase());
    if (told.has(entry.key)) continue;
    told.add(entry.key);
    parts.push(text.data.slice(from, index), make("a", { class: "term", href: "#glossary", "data-do": "term", "data-term": entry.key }, word));
    from = index + word.length;
  }
  if (parts.length) text.replaceWith(...parts, text.data.slice(from));
}

function show(term) {
  const entry = terms().find((each) => each.key === term.dataset.term), place = region("gloss");
  if (!entry) return;
  shown = term;
  fill(place, make("b", {}, entry.word), " ", make("span", {}, entry.says));
  if (!place.matches(":popover-open")) place.showPopover();
  const { left, bottom, top } = term.getBoundingClientRect(), { offsetWidth: wide, offsetHeight: high } = place;
  place.style.left = `${Math.max(8, Math.min(left, innerWidth - wide - 8))}px`;
  place.style.top = `${bottom + high + 12 < innerHeight ? bottom + 6 : Math.max(8, top - high - 6)}px`;
  term.setAttribute("aria-describedby", "gloss");
}

/** Hides the meaning that is shown. */
export function hush() {
  clearTimeout(timer);
  shown?.removeAttribute("aria-describedby");
  shown = null;
  if (region("gloss").matches(":popover-open")) region("gloss").hidePopover();
}

/** Opens the whole glossary, at one word where it is named. */
function openAll(key) {
  hush();
  const dialog = region("glossary");
  dialog.setAttribute("aria-label", t("glossary"));
  fill(dialog, make("h2", {}, t("glossary")), make("p", {}, t("glossary.about")),
    make("dl", { class: "entries", tabindex: "0" }, terms().map((entry) => make("div", { "data-entry": entry.key, class: entry.key === key ? "wanted" : null }, make("dt", {}, entry.word), make("dd", {}, entry.says)))),
    make("form", { method: "dialog" }, make("button", { class: "main-button" }, t("close"))));
  region("help").close();
  dialog.showModal();
  dialog.querySelector(".wanted")?.scrollIntoView({ block: "center" });
}
doing("term", (one) => openAll(one.dataset.term));
doing("glossary", () => openAll(null));

export function listenToTerms() {
  const term = (event) => event.target.closest?.("a.term");
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const one = term(event);
    clearTimeout(timer);
    if (one) timer = setTimeout(() => show(one), HESITATION);
    else if (shown && shown !== document.activeElement) timer = setTimeout(hush, HESITATION);
  });
  document.addEventListener("focusin", (event) => {
    const one = term(event);
    if (one && one.matches(":focus-visible")) show(one);
    else if (shown) hush();
  });
  addEventListener("scroll", hush, { passive: true });
}
