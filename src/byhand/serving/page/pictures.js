// Pictures of the whole: who looks at whom, the logits, the stream of one position, and which part
// of the model speaks for the word that comes.

import { app, render, sent } from "./app.js";
import { Newest } from "./asking.js";
import { draw, make } from "./drawing.js";
import { refusal } from "./notices.js";
import { way } from "./rail.js";
import { decimal, percent, short, t } from "./words.js";

const WORDY = 10, FEW = 2; // positions and heads up to which the shares are written into the picture
const explained = new Newest();
let told = null; // {of, answer | error}

export function picturesView() {
  const { look } = app;
  explain();
  const of = told?.of === question() ? told : null;
  return [
    make("h2", { class: "step-title", tabindex: "-1" }, t("pictures.title", { label: look.stream.label })),
    look.attention.length > 0 && make("section", { class: "picture" }, make("h3", {}, t("attention")), make("p", { class: "lead" }, t("attention.about")),
      make("div", { class: "patterns" }, look.attention.map(pattern))),
    make("section", { class: "picture" }, make("h3", {}, t("attribution")), make("p", { class: "lead" }, t("attribution.about", { token: of?.answer?.token ?? look.next?.token ?? "" })),
      of?.error ? refusal(of.error) : of?.answer ? attribution(of.answer) : make("p", { class: "quiet" }, "…")),
    make("section", { class: "picture" }, make("h3", {}, t("lens")), make("p", { class: "lead" }, t("lens.about")), of?.answer && lens(of.answer)),
    streamed(look),
    make("section", { class: "picture" }, logits(look), way(look)),
  ];
}

// ------------------------------------------------------------------ attention

const level = (share) => [0.05, 0.25, 0.5, 0.75].filter((edge) => share >= edge).length; // of the colour, as in the book

function pattern(head) {
  const { look } = app, size = head.labels.length, wordy = size <= WORDY && look.attention.length <= FEW;
  const several = look.attention.length > 1;
  const step = head.address.replace(/\]$/, "");
  const rows = head.values.map((row, query) => make("tr", { class: query === look.position ? "current" : null },
    make("th", { scope: "row" }, head.labels[query]),
    row.map((share, key) => (share === null ? make("td", { class: "hidden" }, make("span", { class: "sr" }, t("masked")))
      : make("td", { class: `l${level(share)}`, "data-a": `${step},${query},${key}]` },
        make("button", { type: "button", "data-a": `${step},${query},${key}]`, tabindex: query + key ? "-1" : "0", title: wordy ? null : `${head.labels[query]} → ${head.labels[key]}` },
          make("span", { class: "sr" }, `${head.labels[query]} → ${head.labels[key]}: `, !wordy && decimal(share, 2)), wordy && decimal(share, 2)))))));
  return make("figure", { class: `attention-of${wordy ? "" : " dense"}` },
    make("figcaption", {}, several ? `${t("block", { layer: head.layer })} · ${t("head", { head: head.head })}` : make("span", { class: "sr" }, t("head", { head: head.head }))),
    make("div", { class: "table" }, make("table", {},
      make("caption", { class: "sr" }, head.address),
      make("thead", {}, make("tr", {}, make("td", {}), head.labels.map((label) => make("th", { scope: "col" }, make("span", {}, label))))),
      make("tbody", {}, rows))));
}

// ------------------------------------------------------------------ the stream

const WIDE = 64; // numbers of the stream in one line of its picture

/** Every number of the stream at every stop, as a shade: orange above zero, blue below, as in the book. */
function streamed({ stream }) {
  const rows = stream.stops.filter((stop) => stop.row);
  if (!rows.length) return null;
  const reach = Math.max(...rows.flatMap((stop) => stop.row.map(Math.abs)), 1e-9);
  return make("section", { class: "picture" }, make("h3", {}, t("stream")), make("p", { class: "lead" }, t("stream.about", { reach: short(reach) })),
    make("ol", { class: "rows-of" }, rows.map((stop) => make("li", { class: `on-${stop.kind}` },
      make("a", { href: `#${stop.address}`, "data-do": "step-to", class: "term" }, [stop.label, stop.layer !== null && app.look.model.layers > 1 ? t("block", { layer: stop.layer }) : null].filter(Boolean).join(" · ")),
      shades(stop, reach)))));
}

function shades(stop, reach) {
  const wide = Math.min(WIDE, stop.row.length), high = Math.ceil(stop.row.length / WIDE);
  const largest = stop.row.reduce((best, value, at) => (Math.abs(value) > Math.abs(stop.row[best]) ? at : best), 0);
  return draw("svg", { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", class: "shades", style: `--high:${high}`, role: "img", "aria-label": t("stream.largest", { at: largest, value: short(stop.row[largest]) }) },
    stop.row.map((value, at) => draw("rect", { x: at % WIDE, y: Math.floor(at / WIDE), width: 1, height: 1, class: value < 0 ? "below" : "above", "fill-opacity": Math.sqrt(Math.abs(value) / reach).toFixed(2) },
      draw("title", {}, `${stop.address}[${app.look.position},${at}] ≈ ${short(value)}`))));
}

// ------------------------------------------------------------------ logits

function logits(look) {
  if (!look.next) return null;
  const values = look.next.candidates.map((word) => Number(word.logit.replace("−", "-").replace(",", ".").split(" ")[0]));
  const known = values.every(Number.isFinite), reach = Math.max(...values.map(Math.abs), 1e-9);
  return make("div", { class: "card" }, make("h3", {}, t("logits")),
    make("ol", { class: "diverging" }, look.next.candidates.map((word, at) => make("li", {},
      make("span", { class: "token" }, word.token), known ? around(values[at] / reach) : make("span", {}),
      make("button", { type: "button", class: "plain", "data-a": word.addresses[0] }, word.logit)))));
}

/** A bar to the right for what is positive, to the left for what is negative. */
const around = (share) => make("span", { class: `around${share < 0 ? " less" : ""}`, style: `--share:${Math.abs(share).toFixed(4)}` }, make("i", {}));

// ------------------------------------------------------------------ which part speaks for the word

const question = () => JSON.stringify([sent(app.state), app.look.position]);

async function explain() {
  const of = question();
  if (told?.of === of) return;
  told = { of };
  try {
    const answer = await explained.ask("explain", { state: sent(app.state), position: app.look.position });
    if (answer) told = { of, answer };
  } catch (error) { told = { of, error }; }
  if (app.here.view === "pictures") render();
}

function attribution({ attribution: found, token }) {
  if (!found) return make("p", { class: "quiet" }, t("attribution.none"));
  const reach = Math.max(...found.terms.map((term) => Math.abs(term.value)), 1e-9);
  return make("ol", { class: "diverging" },
    found.terms.map((term) => make("li", {},
      term.name.startsWith("weight.") ? make("span", {}, kind(term)) : make("a", { href: `#${term.name}`, "data-do": "step-to", class: "term" }, kind(term)), around(term.value / reach), make("span", { class: "value" }, short(term.value)))),
    make("li", { class: "total" }, make("span", {}, t("attribution.total", { token })), make("span", {}), make("span", { class: "value" }, short(found.total))));
}

function kind(term) {
  const head = /\[(\d+)\]$/.exec(term.name)?.[1];
  return [t(`part.${term.kind}`), term.layer !== null && app.look.model.layers > 1 ? t("block", { layer: term.layer }) : null,
    term.kind === "head" && head !== undefined ? t("head", { head }) : null].filter(Boolean).join(" · ");
}

function lens({ lens: stops }) {
  if (!stops?.length) return make("p", { class: "quiet" }, t("attribution.none"));
  return make("ol", { class: "lens" }, stops.map((stop) => make("li", {},
    make("a", { href: `#${stop.address}`, "data-do": "step-to", class: "term" }, [t(`part.${stop.kind}`), stop.layer !== null && app.look.model.layers > 1 ? t("block", { layer: stop.layer }) : null].filter(Boolean).join(" · ")),
    make("span", { class: "guesses" }, (stop.words ?? []).slice(0, 4).map((word, at) => make("span", { class: `chip${at ? "" : " first"}`, style: `--share:${word.share.toFixed(3)}` }, make("span", { class: "token" }, word.token), make("span", { class: "much" }, percent(word.share))))))));
}
