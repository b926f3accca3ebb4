// A model file of one's own: dropped on the page or chosen.  It goes to the local server and nowhere
// else.

import { app, attempt, report } from "./app.js";
import { Refusal } from "./asking.js";
import { fill, make, region } from "./drawing.js";
import { t } from "./words.js";

const POSTED = "model.yaml"; // what the server calls a file without a name
const LARGEST = 4_000_000; // bytes; what the server takes is a little more

async function take(file) {
  if (!file) return;
  if (file.size > LARGEST) {
    report(new Refusal({ message: t("drop.large", { name: file.name }), expected: t("drop.limit") }));
    return;
  }
  const model = { file: await file.text(), title: file.name };
  try {
    await attempt({ model, language: app.state.language }, { before: null, here: { passage: null, position: null } });
  } catch (error) { // the server was sent a text: the file's name is known here
    if (error.where?.startsWith(POSTED)) error.where = file.name + error.where.slice(POSTED.length);
    report(error);
  }
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
