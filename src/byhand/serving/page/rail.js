// Beside the step, always in sight: what comes next, how the last edit moved it, and the way of the
// position through the pass.

import { app, change, go } from "./app.js";
import { bar, doing, fill, make, region } from "./drawing.js";
import { tried as experimented } from "./trials.js";
import { decimal, t, whole } from "./words.js";

/** The words that may come next, as bars; where an edit moved them, with what they were. */
export function prediction(look) {
  const { next, changed } = look;
  if (!next) return null;
  const before = new Map((changed?.next?.words ?? []).map((word) => [word.id, word]));
  const moved = new Set(changed?.addresses ?? []);
  const most = Math.max(...next.candidates.map((word) => Math.max(word.share, before.get(word.id)?.before ?? 0)), 1e-9);
  const rows = next.candidates.map((word) => {
    const was = before.get(word.id)?.before, differs = was !== undefined && was !== null && Math.abs(was - word.share) > 5e-5;
    return make("tr", { class: [word.target && "target", word.id === next.id && "winner"].filter(Boolean).join(" ") || null },
      make("th", { scope: "row" }, make("span", { class: "token" }, word.token), word.target && make("span", { class: "aim" }, t("target"))),
      number(word.addresses[0], word.logit, moved),
      make("td", { class: "bar" }, bar(word.share / most), differs && bar(was / most, "was")),
      number(word.addresses[1], word.probability, moved, differs && make("span", { class: "was" }, decimal(was))));
  });
  return make("section", { class: "card" },
    make("h2", {}, t("next")),
    make("div", { class: "table likely" }, make("table", {},
      make("caption", { class: "sr" }, t("next")),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, t("word")), make("th", { scope: "col" }, t("logit")), make("th", { scope: "col", colspan: "2" }, t("probability")))),
      make("tbody", {}, rows))),
    make("p", { class: "sentence" }, ticked(next.sentence)));
}

/** A sentence with `words` in it. */
export const ticked = (text) => text.replaceAll("≈ ", "≈\u00a0").split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));

const number = (address, text, moved, ...more) => make("td", { class: `n${moved.has(address) ? " moved" : ""}`, "data-a": address },
  make("button", { type: "button", "data-a": address }, make("span", { class: "face" }, ...more, text)));

/** Whether something was changed that could have moved numbers. */
const tried = () => ["weights", "architecture", "lessons", "numbers"].some((key) => JSON.stringify(app.before?.[key] ?? {}) !== JSON.stringify(app.state[key] ?? {}));

/** What the last edit did. */
function changes(look) {
  const { changed } = look;
  if (!changed || (changed.count === 0 && !tried())) return null;
  const titles = new Map(look.passages.flatMap((passage) => passage.steps.map((step) => [step, passage])));
  const first = changed.first && titles.get(changed.first);
  const { next, loss } = changed;
  return make("section", { class: "card changes" },
    make("h2", {}, t("changed")),
    changed.count > 0 && changed.told.sentences.length > 0 && !experimented() && make("p", { class: "sentence" }, ticked(changed.told.sentences[0])),
    changed.count === 0 ? make("p", {}, t("changed.nothing")) : make("p", {}, t("changed.count", { count: whole(changed.count) }),
      first && [" ", make("a", { href: `#${first.id}`, "data-do": "step-to" }, t("changed.first", { title: first.title }))]),
    next && next.before !== next.after && make("p", { class: "turned" }, make("s", { class: "token" }, next.before), make("span", { "aria-label": t("becomes") }, " → "), make("b", { class: "token" }, next.after)),
    loss?.before && loss.after && loss.before.text !== loss.after.text && make("p", {}, `${t("loss")} `, make("s", {}, loss.before.text), " → ", make("b", {}, loss.after.text)),
    make("p", {}, make("button", { type: "button", class: "small-button", "data-do": "compare-before" }, t("changed.compare"))));
}

/** The way of one position: what each trip adds, and how long the stream gets. */
export function way(look) {
  const { stream } = look, longest = Math.max(...stream.stops.map((stop) => stop.size), 1e-9), moved = new Set(look.changed?.addresses ?? []);
  return make("section", { class: "card" },
    make("h2", {}, t("way", { label: stream.label })),
    make("ol", { class: "way" }, stream.stops.map((stop) => make("li", { class: `on-${stop.kind}` },
      make("a", { href: `#${stop.address}`, "data-do": "step-to", class: "label" }, stop.label),
      make("span", { class: "vector-of" }, stop.numbers.length <= 4
        ? stop.numbers.map((one) => make("button", { type: "button", class: `plain${moved.has(one.address) ? " moved" : ""}`, "data-a": one.address, tabindex: "-1" }, one.text))
        : make("span", { class: "quiet" }, t("length", { size: decimal(stop.size, 2) }))),
      make("span", { class: "whole-line" }, bar(stop.size / longest, `on-${stop.kind}`))))));
}

doing("compare-before", () => {
  app.other = app.before ?? app.other;
  go({ view: "compare" });
});
doing("aim-at", (one) => change({ ...app.state, text: app.look.text, target: one.dataset.token }));

export function drawRail() {
  const { look } = app, place = region("rail");
  place.setAttribute("aria-label", t("rail"));
  place.hidden = ["compare", "prove", "practice"].includes(app.here.view);
  fill(place, changes(look), prediction(look), !["pictures", "learn"].includes(app.here.view) && way(look));
}
