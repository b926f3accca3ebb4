// The page begins here: reads the address, fetches words and models, and draws.

import { app, attempt, change, drawn, fetchModels, report } from "./app.js";
import { read } from "./address.js";
import { all, fill, listen, make, region, say } from "./drawing.js";
import { drawControls } from "./controls.js";
import { comparedMap, compareView } from "./compare.js";
import { listenToEditor } from "./editor.js";
import { listenToFiles } from "./dropping.js";
import { listenToTerms, marked } from "./glossary.js";
import { listenToKeys } from "./keys.js";
import { learnView } from "./learn.js";
import { drawMap } from "./map.js";
import { listenToNumbers } from "./numbers.js";
import { passageView, watchWidths } from "./passage.js";
import { picturesView } from "./pictures.js";
import { practiceView } from "./practice.js";
import { proveView } from "./prove.js";
import { drawRail } from "./rail.js";
import { themes } from "./theme.js";
import { drawTrials, greet, tried } from "./trials.js";
import { listenToTour } from "./tour.js";
import { weightsView } from "./weights.js";
import { speak, spoken, t, whole } from "./words.js";

const FIRST = "journey"; // the model to begin with where none is named
const views = { steps: passageView, weights: weightsView, learn: learnView, pictures: picturesView, compare: compareView, prove: proveView, practice: practiceView };

let before = null, told = null;
drawn(() => {
  if (!app.look) return;
  const inside = region("main").contains(document.activeElement) && document.activeElement !== region("main");
  if (before && before !== app.here.view) scrollTo({ top: 0, behavior: "instant" });
  before = app.here.view;
  document.title = `${app.look.model.title}: ${app.here.view === "steps" ? app.look.passage.title : t(`view.${app.here.view}`)} · byhand`;
  document.body.dataset.view = app.here.view;
  drawControls();
  drawTrials();
  fill(region("main"), lit(marked(make("div", { class: `view ${app.here.view}`, "data-key": app.here.view }, ...views[app.here.view]()))));
  drawMap(app.here.view === "compare" ? comparedMap() : undefined, { bare: app.here.view === "practice" });
  drawRail();
  watchWidths();
  if (inside && document.activeElement === document.body) document.querySelector(".step-title")?.focus({ preventScroll: true });
  if (app.look.changed && app.look.changed !== told) say([...app.look.changed.told.sentences, t("changed.count", { count: whole(app.look.changed.count) })].join(" "));
  told = app.look.changed;
});

/** The number that an experiment is about is lit, wherever it stands. */
function lit(content) {
  const address = tried()?.told.star?.address;
  if (address) for (const cell of all(`[data-a="${CSS.escape(address)}"]`, content)) cell.classList.add("star");
  return content;
}

/** What the address says, made whole; the first State of all where it says nothing. */
function wanted() {
  const said = read(location.hash), query = new URLSearchParams(location.search);
  const named = [query.get("model"), FIRST].find((name) => app.models.some((model) => model.name === name)) ?? app.models[0].name;
  const language = said?.state?.language ?? query.get("language") ?? (app.state ? spoken() : navigator.language.slice(0, 2));
  const state = { ...(said?.state ?? app.state ?? { model: { name: named } }), language: language === "es" ? "es" : "en" };
  const here = { view: "steps", passage: null, position: null, ...said?.here };
  if (!(here.view in views)) here.view = "steps";
  return { state, here, other: said?.other ?? null };
}

async function follow() {
  const { state, here, other } = wanted();
  if (state.language !== spoken()) await speak(state.language);
  if (other) app.other = other;
  await change(state, { keep: "none", before: app.before, here });
}

async function begin() {
  themes.apply();
  listen();
  const language = wantedLanguage();
  await Promise.all([fetchModels(language), speak(language)]);
  greet(!location.hash);
  region("skip").textContent = t("skip");
  listenToNumbers();
  listenToEditor();
  listenToKeys();
  listenToFiles();
  listenToTerms();
  listenToTour();
  addEventListener("popstate", follow);
  const { state, here, other } = wanted();
  app.other = other;
  try {
    await attempt(state, { keep: "none", before: null, here });
  } catch (error) { // an address that says something impossible: begin afresh, and say why
    await attempt({ model: { name: app.models.find((model) => model.name === FIRST)?.name ?? app.models[0].name }, language }, { keep: "none", before: null });
    report(error);
  }
}

function wantedLanguage() {
  const said = read(location.hash)?.state?.language ?? new URLSearchParams(location.search).get("language") ?? navigator.language.slice(0, 2);
  return said === "es" ? "es" : "en";
}

begin().catch((error) => {
  fill(region("main"), make("p", { class: "refusal", role: "alert" }, String(error.message ?? error)));
});
