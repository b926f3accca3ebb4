// A model file of one's own: dropped on the page or chosen.  It goes to the local server and nowhere
// else.

import { app, change, report } from "./app.js";
import { Refusal } from "./asking.js";
import { fill, make, region } from "./drawing.js";
import { t } from "./words.js";

const LARGEST = 1_000_000; // bytes

async function take(file) {
  if (!file) return;
  if (file.size > LARGEST) {
    report(new Refusal({ message: t("drop.large", { name: file.name }), expected: t("drop.limit") }));
    return;
  }
  const model = { file: await file.text(), title: file.name };
  await change({ model, language: app.state.language }, { before: null, here: { passage: null, position: null } });
}

export function listenToFiles() {
  const veil = region("drop");
  const files = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    fill(veil, make("p", {}, t("drop")));
    veil.hidden = false;
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) veil.hidden = true; });
  document.addEventListener("drop", (event) => {
    veil.hidden = true;
    if (!files(event)) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  document.addEventListener("change", (event) => {
    if (event.target.id !== "the-file") return;
    take(event.target.files[0]);
    event.target.value = "";
  });
}
