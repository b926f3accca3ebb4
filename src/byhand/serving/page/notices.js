// What the page has to tell: refusals, notes of the server, waiting.

import { app, cancel, drawn, render, waits } from "./app.js";
import { doing, fill, make, region } from "./drawing.js";
import { icon } from "./icons.js";
import { ticked } from "./rail.js";
import { t } from "./words.js";

/** A refusal in the parts of the command line's message. */
export function refusal(error) {
  const part = (name) => error[name] && make("span", { class: "part" }, make("b", {}, t(`error.${name}`)), " ", make("span", {}, error[name]));
  return make("p", { class: "refusal" }, make("span", { class: "sign", "aria-hidden": "true" }, "✗"),
    make("span", { class: "what" }, error.message), part("where"), part("expected"), part("found"), part("hint"));
}

function drawNotices() {
  const notes = app.look?.notes ?? [];
  fill(region("notices"),
    app.error && make("div", { class: "notice error", role: "alert" }, refusal(app.error),
      make("button", { type: "button", class: "tool", "data-do": "dismiss", "aria-label": t("dismiss") }, icon("close"))),
    notes.length > 0 && make("div", { class: "notice remarks" }, notes.map((note) => make("p", {}, ticked(note)))));
}

doing("dismiss", () => { app.error = null; render(); });
doing("cancel", () => { cancel(); stopOthers.forEach((stop) => stop()); });

const stopOthers = [];
/** Something else that the cancel button stops. */
export const stops = (stop) => stopOthers.push(stop);

/** How many steps a pass has, as far as is known before it is worked out. */
const steps = () => app.look?.passages.reduce((count, passage) => count + passage.steps.length, 0) ?? 1;

waits((progress) => {
  const place = region("waiting");
  if (!progress) { place.hidden = true; return; }
  const told = progress.waiting ? t("waiting.turn") : progress.address ?? "";
  place.hidden = false;
  fill(place, make("div", { class: "spinner", "aria-hidden": "true" }),
    make("div", { role: "status" }, make("strong", {}, t("waiting")), " ", make("code", {}, told),
      progress.count > 0 && make("progress", { value: Math.min(progress.count, steps()), max: steps(), "aria-label": t("waiting") })),
    make("button", { type: "button", "data-do": "cancel" }, t("cancel")));
});

drawn(drawNotices);
