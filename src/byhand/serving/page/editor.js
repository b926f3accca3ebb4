// A weight changed in place: every number follows while it is typed.  Return keeps it, Escape takes
// it back; what cannot be read is told beside it, as the command line would.

import { app, attempt, render, sent } from "./app.js";
import { fill, make, painted, region } from "./drawing.js";
import { ask } from "./asking.js";
import { ticked } from "./rail.js";
import { editable, pointed, t } from "./words.js";
import { refusal } from "./notices.js";

let open = null; // {key, base, anchor address, past}
let late = 0;
const NUDGE = 0.1;

/** Opens the editor on a weight; `key` is its address without "weight." */
export function editWeight(key, anchor, text = anchor.dataset.text ?? plain(anchor)) {
  const form = region("editor"), box = anchor.getBoundingClientRect();
  open = { key, base: app.state, address: anchor.dataset.a, shown: editable(app.state.weights?.[key] ?? pointed(text)), before: app.before, past: app.past.length };
  fill(form,
    make("label", { for: "weight-text" }, make("span", { class: "meaning", id: "weight-meaning" }), " ", make("code", {}, key)),
    make("input", { type: "text", id: "weight-text", value: open.shown, autocomplete: "off", spellcheck: "false", "aria-describedby": "weight-told" }),
    make("div", { id: "weight-told", class: "told" }, make("p", { class: "quiet" }, editable(t("editor.how")))));
  form.hidden = false;
  form.style.left = `${Math.max(8, Math.min(box.left + scrollX - 10, scrollX + innerWidth - form.offsetWidth - 8))}px`;
  form.style.top = `${box.top + scrollY - 34}px`;
  form.scrollIntoView({ block: "nearest" });
  const input = form.querySelector("input");
  input.value = open.shown;
  input.focus({ preventScroll: true });
  input.select();
  explain(key);
}

/** Says what the weight means, when the server has said it. */
async function explain(key) {
  try {
    const found = await ask("number", { state: sent(app.state), address: `weight.${key}` });
    if (open?.key === key) fill(region("weight-meaning"), ticked(found.meaning));
  } catch { /* the editor itself says what is wrong */ }
}

// What a number looks like as text; a fraction keeps its stroke.
function plain(anchor) {
  const fraction = anchor.querySelector("mfrac");
  const text = fraction ? `${fraction.children[0].textContent}/${fraction.children[1].textContent}` : (anchor.querySelector("data")?.value ?? anchor.querySelector(".face")?.textContent ?? anchor.textContent);
  const minus = fraction && anchor.querySelector("math mo")?.textContent === "−" ? "-" : "";
  return (minus + text).replaceAll("−", "-").trim();
}

async function follow(text) {
  const { key, base } = open, started = performance.now();
  clearTimeout(late);
  try {
    const weights = { ...base.weights };
    if (text.trim()) weights[key] = pointed(text.trim());
    else delete weights[key];
    const shown = await attempt({ ...base, weights }, { keep: open.begun ? "amend" : "push", before: base });
    if (!open) return true;
    open.begun ||= shown;
    if (shown) painted("edit", started);
    tell(make("p", { class: "quiet" }, editable(t("editor.how"))));
    return true;
  } catch (error) {
    if (open) late = setTimeout(() => open && tell(refusal(error)), 250);
    return false;
  }
}

function tell(...said) {
  fill(region("weight-told"), ...said);
  region("editor").scrollIntoView({ block: "nearest" });
}

function close() {
  const address = open?.address;
  open = null;
  clearTimeout(late);
  region("editor").hidden = true;
  const back = address && document.querySelector(`button[data-a="${CSS.escape(address)}"]`);
  (back ?? region("main")).focus({ preventScroll: true });
}

async function takeBack() {
  const { base, before, past } = open;
  close();
  if (app.state === base) return;
  await attempt(base, { keep: "none", before });
  app.past.length = Math.min(app.past.length, past);
  render();
}

export function listenToEditor() {
  const form = region("editor");
  form.addEventListener("input", (event) => follow(event.target.value));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = form.querySelector("input").value;
    if (text === open?.shown && !open.begun) close();
    else if (await follow(text)) close();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.preventDefault(); takeBack(); }
    if (event.key === "ArrowUp" || event.key === "ArrowDown") nudge(event);
  });
  document.addEventListener("pointerdown", (event) => { if (open && !form.contains(event.target)) leave(); });
}

// Away from the editor: what can be read stays, what cannot is taken back.
function leave() {
  open = null;
  clearTimeout(late);
  region("editor").hidden = true;
}

function nudge(event) {
  const value = Number(pointed(event.target.value));
  if (!Number.isFinite(value) || !event.target.value.trim()) return;
  event.preventDefault();
  event.target.value = editable(String(Number((value + (event.key === "ArrowUp" ? NUDGE : -NUDGE)).toFixed(10))));
  follow(event.target.value);
}
