// The keyboard: steps, playing, undo, numbers in a table, and the help that says all of it.

import { app, travel } from "./app.js";
import { all, doing, fill, make, region } from "./drawing.js";
import { learn } from "./learn.js";
import { play, step } from "./passage.js";
import { release } from "./numbers.js";
import { hush } from "./glossary.js";
import { begin } from "./tour.js";
import { greetAgain } from "./trials.js";
import { t } from "./words.js";

const KEYS = [[["←", "→"], "keys.step"], [["Home", "End"], "keys.ends"], [["Space"], "keys.play"], [["←", "→"], "keys.learn"], [["Tab"], "keys.tab"], [["←", "↑", "↓", "→"], "keys.table"], [["Enter"], "keys.enter"],
  [["Ctrl", "Z"], "keys.undo"], [["Ctrl", "Shift", "Z"], "keys.redo"], [["Esc"], "keys.escape"], [["?"], "keys.help"]];

function help() {
  const dialog = region("help");
  dialog.setAttribute("aria-label", t("help"));
  fill(dialog,
    make("h2", {}, t("help")),
    make("p", {}, t("help.about")),
    make("dl", {}, KEYS.map(([keys, what]) => make("div", {}, make("dt", {}, keys.map((key) => make("kbd", {}, key))), make("dd", {}, t(what))))),
    make("p", { class: "quiet" }, t("help.private")),
    make("p", { class: "doings" },
      make("button", { type: "button", class: "small-button", "data-do": "help-tour" }, t("tour.take")),
      make("button", { type: "button", class: "small-button", "data-do": "glossary" }, t("glossary")),
      make("button", { type: "button", class: "small-button", "data-do": "help-greeting" }, t("greeting.again"))),
    make("form", { method: "dialog" }, make("button", { class: "main-button" }, t("close"))));
  dialog.showModal();
}
doing("help", help);
doing("help-tour", () => { region("help").close(); region("main").focus({ preventScroll: true }); begin(); });
doing("help-greeting", () => { region("help").close(); greetAgain(); });

const steps = { ArrowRight: 1, ArrowLeft: -1, j: 1, k: -1, Home: -Infinity, End: Infinity };
const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

/** From number to number inside a table. */
function within(event) {
  const cell = event.target.closest("button[data-a]")?.closest("td"), move = moves[event.key];
  if (!cell || !move) return false;
  const rows = all("tr", cell.closest("table")), row = rows.indexOf(cell.parentElement);
  let target = null;
  if (move[1]) for (let at = cell; (at = move[1] > 0 ? at.nextElementSibling : at.previousElementSibling) && !target;) target = at.querySelector("button[data-a]");
  else for (let at = row + move[0]; rows[at] && !target; at += move[0]) target = rows[at].cells[cell.cellIndex]?.querySelector("button[data-a]");
  target?.focus();
  return true;
}

/** Which way the keys of undo and redo lead; nothing for other keys. */
function turns({ ctrlKey, metaKey, shiftKey, key }) {
  if (!(ctrlKey || metaKey)) return null;
  if (key.toLowerCase() === "y") return ["future", "past"];
  if (key.toLowerCase() !== "z") return null;
  return shiftKey ? ["future", "past"] : ["past", "future"];
}

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox], [type=range]), textarea");
    const wanted = turns(event);
    if (wanted && !(typing && typing.id !== "the-text" && typing.value !== (typing.getAttribute("value") ?? ""))) {
      event.preventDefault();
      travel(...wanted);
      return;
    }
    if (event.key === "Escape") { release(); hush(); return; }
    if (event.altKey || event.ctrlKey || event.metaKey || typing || region("help").open || region("glossary").open || event.target.closest("select")) return;
    if (event.key === "?") { help(); return; }
    if (within(event)) { event.preventDefault(); return; }
    if (event.key in moves && event.target.closest("[tabindex='0']") && !event.target.closest("button, a")) return; // it scrolls
    if (event.key === " " && !event.target.closest("button, a, summary, input")) {
      event.preventDefault();
      play();
    } else if (event.key in steps && !event.shiftKey && app.here.view === "steps") {
      event.preventDefault();
      play(false);
      step(steps[event.key]);
    } else if (["ArrowLeft", "ArrowRight"].includes(event.key) && !event.shiftKey && app.here.view === "learn") {
      event.preventDefault();
      if (event.key === "ArrowRight") learn(1);
      else travel("past", "future");
    }
  });
}
