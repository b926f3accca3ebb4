// What the page knows: the State, the place in it, the last look, and the way back.  A State is
// shown only once the server has accepted it; what it refuses leaves everything as it is.

import { Newest, Refusal } from "./asking.js";
import { written } from "./address.js";
import { speak } from "./words.js";

export const VIEWS = ["steps", "weights", "learn", "pictures", "compare", "prove", "practice"];

/** Everything that is drawn is drawn from this. */
export const app = {
  models: [],
  state: null,
  before: null, // the State before the last edit, which changes are measured from
  here: { view: "steps", passage: null, position: null },
  other: null, // the second State of a comparison
  look: null,
  weights: null, // of the last look that asked for them
  error: null, // a Refusal that belongs to no field
  past: [],
  future: [],
  playing: false,
};

const draws = [];
const looks = new Newest();
const MANY = 3000; // parameters of which not all are asked for again at every edit

/** Something that draws, called whenever what it draws from may have changed. */
export const drawn = (draw) => draws.push(draw);
export const render = () => { for (const each of draws) each(app); };

/** A State as the server takes it. */
export function sent(state) {
  const { model, ...rest } = state;
  return { ...rest, model: model.name ? { name: model.name } : { file: model.file } };
}

/** Which of a State's edits there are. */
export const edits = (state) => ["weights", "architecture", "lessons"].reduce((count, key) => count + Object.keys(state[key] ?? {}).length, 0);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
/** Whether a State has the text that is shown, as far as is known: a position belongs to its text. */
function sameText(next) {
  if (!app.state || (next.text === app.state.text && same(next.model, app.state.model))) return true;
  return app.look.text === (next.text ?? app.models.find((model) => model.name === next.model.name)?.text);
}
/** Where undo comes back to: the State, and the one it is compared with. */
const entry = () => copy({ state: app.state, other: app.other });
const copy = (data) => JSON.parse(JSON.stringify(data));

function request(state, here, before) {
  const asked = { state: sent(state) };
  if (here.passage) asked.passage = here.passage;
  if (here.position !== null && here.position !== undefined) asked.position = here.position;
  if (before && !same(before, state)) asked.before = sent({ ...before, language: state.language });
  if (here.view === "weights" && needsWeights(state)) asked.weights = true;
  if (here.view === "learn") asked.gradients = true;
  return asked;
}

// Of a medium model the weights are sent once and edits are laid over them.
const origin = (state) => [state.model, state.architecture ?? {}, state.lessons ?? []];
function needsWeights(state) {
  const large = (app.look?.model.parameters ?? 0) > MANY;
  return !(large && app.weights && same(app.weights.of, origin(state)));
}

/**
 * Shows another State, once it is accepted; a Refusal otherwise.
 * @param {object} next the State
 * @param {{keep?: "push"|"amend"|"none", before?: object|null, here?: object}} how it enters the way back,
 *   what changes are measured from, and where to look
 * @returns {Promise<boolean>} whether it is shown now (false: something newer is)
 */
export async function attempt(next, { keep = "push", before = app.state, here = {} } = {}) {
  const place = { ...app.here, ...(sameText(next) ? {} : { position: null }), ...here };
  const asked = request(next, place, before);
  const turn = looks.turn + 1;
  let found;
  try {
    found = await looks.ask("look", asked, waiting(true));
  } finally {
    if (looks.turn === turn) waiting(false)(); // nothing newer is waited for
  }
  if (found === undefined) return false;
  if (keep !== "none" && app.state && !same(app.state, next)) {
    if (keep === "push") app.past.push(entry());
    app.future = [];
  }
  app.before = before && !same(before, next) ? copy(before) : null;
  app.state = next;
  app.error = null;
  settle(found, place);
  return true;
}

function settle(found, place) {
  const moved = place.view !== app.here.view || found.passage.id !== app.here.passage;
  app.look = found;
  if (found.weights) app.weights = { list: found.weights, of: origin(app.state) };
  app.here = { ...place, passage: found.passage.id, position: found.position };
  note(moved && !app.playing);
  render();
}

/** Looks at another place of the same State. */
export async function go(here) {
  try {
    await attempt(app.state, { keep: "none", before: app.before, here });
  } catch (error) { report(error); }
}

/** Shows another State, and where it is refused says so above everything. */
export async function change(next, how) {
  try {
    return await attempt(next, how);
  } catch (error) {
    report(error);
    return false;
  }
}

/** A refusal that belongs to no field is shown on top. */
export function report(error) {
  app.error = error instanceof Refusal ? error : new Refusal({ message: String(error.message ?? error) });
  render();
}

let way = Promise.resolve();

/** Back to the State before, or forth again: one after the other, and after what is being worked out. */
export function travel(from, to) {
  way = way.then(() => looks.idle()).then(() => turn(from, to));
  return way;
}

async function turn(from, to) {
  if (!app[from].length) return;
  const now = app.state, kept = entry(), { state, other } = app[from].at(-1), next = { ...state, language: now.language };
  app.other = other;
  if (!(await change(next, { keep: "none", before: now }))) { app.other = kept.other; return; }
  app[from].pop();
  app[to].push(kept);
  if (document.activeElement?.id === "the-text") document.activeElement.value = app.look.text;
  render();
}

/** Compares with another State: an edit like any other. */
export function compareWith(other) {
  if (same(other, app.other)) return;
  app.past.push(entry());
  app.future = [];
  app.other = other;
  render();
}

/** Goes so many edits back (or forth, below 0): one after the other. */
export function travelBy(count) {
  for (let at = 0; at < Math.abs(count); at += 1) travel(...(count > 0 ? ["past", "future"] : ["future", "past"]));
  return way;
}

/** Another language, of the words and of everything the server says. */
export async function translate(language) {
  await speak(language);
  await fetchModels(language);
  await change({ ...app.state, language }, { keep: "none", before: app.before });
}

/** The models, described in a language. */
export async function fetchModels(language) {
  const answer = await fetch(`/api/models?language=${language}`);
  app.models = (await answer.json()).models;
}

// ------------------------------------------------------------------ the address

let typed = 0;

function note(moved) {
  const fragment = written(app.state, app.here, app.here.view === "compare" ? app.other : null);
  if (fragment === location.hash) return;
  if (moved) history.pushState(null, "", fragment);
  else history.replaceState(null, "", fragment);
}

/** Writes the address anew after something that is not a look. */
export const noted = () => note(false);

// ------------------------------------------------------------------ waiting

let shown = () => {};

/** Where waiting is shown: `show(progress | null)`. */
export const waits = (show) => { shown = show; };

/** The progress of one question: shown when it takes long, gone when it is over. */
export function waiting(begins) {
  if (!begins) return () => { clearTimeout(typed); shown(null); };
  clearTimeout(typed);
  typed = setTimeout(() => shown({}), 300);
  return (progress) => { clearTimeout(typed); shown(progress); };
}

/** Stops the look under way. */
export function cancel() {
  looks.cancel();
  waiting(false)();
  render(); // the controls say again what is shown
}
