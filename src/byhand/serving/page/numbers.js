// One number: hover or focus it to see its working and what it comes from; press it to keep that
// open, or, where it is a weight, to change it.

import { app, drawn, go, sent } from "./app.js";
import { written } from "./address.js";
import { ask, Newest } from "./asking.js";
import { all, doing, fill, make, parsed, region } from "./drawing.js";
import { light } from "./map.js";
import { editWeight } from "./editor.js";
import { ticked } from "./rail.js";
import { t } from "./words.js";

const HESITATION = 90; // milliseconds that a pointer rests on a number before it is asked about
const asked = new Newest();
let pinned = null, current = null, timer = 0;

const editable = (address) => address.startsWith("weight.") && app.look.model.edit.weights;

async function show(address, anchor, pin) {
  if (pinned && !pin) return;
  clearTimeout(timer);
  current = address;
  let found;
  try { found = await asked.ask("number", { state: sent(app.state), address }); } catch { return; }
  if (!found || current !== address || (pinned && !pin)) return;
  trace(found);
  if (anchor.matches(".worked") || !document.contains(anchor)) return;
  const place = region("working");
  place.classList.toggle("pinned", pin);
  fill(place, make("p", { class: "meaning" }, ticked(found.meaning)), parsed(found.html), foot(found, pin));
  if (!place.matches(":popover-open")) place.showPopover();
  put(place, anchor);
}

/** Lights what a number comes from, and what comes from it, wherever it stands on the page. */
function trace(found) {
  const from = new Set(found.ancestors), readers = new Set(found.readers);
  for (const cell of all("[data-a]:not(button)")) {
    cell.classList.toggle("from", from.has(cell.dataset.a));
    cell.classList.toggle("reader", readers.has(cell.dataset.a));
    cell.classList.toggle("looked-at", cell.dataset.a === found.address);
  }
  light(found.nodes);
}

function foot(found, pin) {
  const count = found.ancestors.length;
  const told = [count ? t("number.from", { count }) : null, found.readers.length ? t("number.readers", { count: found.readers.length }) : null].filter(Boolean).join(" · ");
  return make("div", { class: "foot" },
    told && make("p", {}, told),
    pin && make("p", { class: "doings" },
      found.passage && found.passage !== app.here.passage && make("button", { type: "button", class: "small-button", "data-do": "go-to", "data-passage": found.passage }, t("number.go")),
      found.readers.length > 0 && make("button", { type: "button", class: "small-button", "data-do": "go-reader", "data-address": found.readers[0] }, t("number.go.reader")),
      found.weight && app.look.model.edit.weights && make("button", { type: "button", class: "small-button", "data-do": "edit-weight", "data-address": found.weight.address, "data-text": found.weight.text }, t("number.edit")),
      !found.weight && make("button", { type: "button", class: "small-button", "data-do": "practise", "data-address": found.address }, t("number.practise"))),
    !pin && found.weight && make("p", { class: "quiet" }, t("number.press.weight")),
    !pin && !found.weight && make("p", { class: "quiet" }, t("number.press")));
}

function put(place, anchor) {
  const { left, right, bottom, top } = anchor.getBoundingClientRect(), gap = 6;
  const { offsetWidth: wide, offsetHeight: high } = place;
  if (innerWidth < 640) { place.style.left = place.style.top = ""; return; }
  const x = Math.max(12, Math.min((left + right) / 2 - wide / 2, innerWidth - wide - 12));
  const y = bottom + gap + high < innerHeight || top - gap - high < 0 ? Math.min(bottom + gap, innerHeight - high - 12) : top - gap - high;
  place.style.left = `${x}px`;
  place.style.top = `${Math.max(12, y)}px`;
}

/** Lets go of the number. */
export function release() {
  clearTimeout(timer);
  pinned = current = null;
  const place = region("working");
  if (place.matches(":popover-open")) place.hidePopover();
  for (const cell of all(".from, .reader, .looked-at")) cell.classList.remove("from", "reader", "looked-at");
  light([]);
}

const numberAt = (target) => target.closest?.("button[data-a], .worked[data-a], [data-look]");
const addressOf = (node) => node.dataset.a ?? node.dataset.look;

export function listenToNumbers() {
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || pinned) return;
    const number = numberAt(event.target);
    clearTimeout(timer);
    if (number) timer = setTimeout(() => show(addressOf(number), number, false), HESITATION);
    else if (current) timer = setTimeout(release, 120);
  });
  document.addEventListener("focusin", (event) => {
    const number = numberAt(event.target);
    if (!number || !event.target.matches(":focus-visible") || pinned === addressOf(number)) return;
    pinned = null;
    show(addressOf(number), number, false);
  });
  document.addEventListener("focusout", (event) => {
    if (numberAt(event.target) && !region("working").contains(event.relatedTarget) && !pinned) release();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("#working, #editor")) return;
    const number = event.target.closest("button[data-a], button[data-look]");
    if (!number) { if (pinned) release(); return; }
    const address = addressOf(number);
    if (editable(address)) {
      release();
      editWeight(address.slice("weight.".length), number);
    } else if (pinned === address) release();
    else {
      pinned = address;
      show(address, number, true);
    }
  });
  addEventListener("scroll", () => { if (current && !pinned) release(); }, { passive: true });
}

doing("go-to", (one) => { release(); go({ passage: one.dataset.passage, view: "steps" }); });
doing("go-reader", async (one) => {
  const found = await ask("number", { state: sent(app.state), address: one.dataset.address });
  release();
  go({ passage: found.passage, view: "steps" });
});
doing("edit-weight", (one) => {
  const anchor = document.querySelector(`[data-a="${CSS.escape(`weight.${one.dataset.address}`)}"]`) ?? region("working");
  editWeight(one.dataset.address, anchor, one.dataset.text);
});
document.addEventListener("click", (event) => {
  const copy = event.target.closest(".copy"), link = event.target.closest(".working a.address");
  if (copy) navigator.clipboard?.writeText(location.href.split("#")[0] + written(app.state, { ...app.here, view: "steps", passage: copy.dataset.copy })).then(() => copy.classList.add("copied"), () => {});
  if (link) {
    event.preventDefault();
    const address = decodeURIComponent(link.getAttribute("href").slice(1));
    release();
    go({ passage: address, view: "steps" });
  }
});
drawn(() => { if (current && !document.querySelector(`[data-a="${CSS.escape(current)}"]`)) release(); });
