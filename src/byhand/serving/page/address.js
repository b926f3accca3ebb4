// Where a person is, in the address of the page: a State and a place in it, so that reloading,
// going back and a link passed on show the same.

const PLAIN = ["text", "numbers"];
const TABLES = ["weights", "architecture", "lessons"];
const LONGEST_FILE = 4000; // characters of a model file that stand in the address themselves

/** @returns {string} the fragment for a State and a place */
export function written(state, here, other) {
  const said = new URLSearchParams();
  if (state.model.name) said.set("model", state.model.name);
  else said.set("file", kept(state.model.file));
  if (state.model.title) said.set("title", state.model.title);
  for (const key of PLAIN) if (state[key] !== undefined) said.set(key, state[key]);
  if (state.target !== undefined) said.set("target", JSON.stringify(state.target));
  for (const key of TABLES) if (state[key] && Object.keys(state[key]).length) said.set(key, JSON.stringify(state[key]));
  for (const [key, value] of Object.entries(here)) if (value !== null && value !== undefined) said.set(key, value);
  if (other) said.set("other", JSON.stringify(other));
  said.set("language", state.language);
  return `#${said}`;
}

/** @returns {{state: object, here: object, other: object|null}|null} what a fragment says; null: nothing */
export function read(fragment) {
  const text = fragment.replace(/^#/, "");
  if (!text) return null;
  const said = new URLSearchParams(text);
  if (![...said.keys()].some((key) => said.get(key))) return { state: null, here: { passage: decodeURIComponent(text) }, other: null };
  const state = {}, here = { view: said.get("view") ?? "steps", passage: said.get("passage"), position: whole(said.get("position")) };
  if (said.has("model")) state.model = { name: said.get("model") };
  if (said.has("file")) state.model = { file: found(said.get("file")), title: said.get("title") };
  for (const key of PLAIN) if (said.has(key)) state[key] = said.get(key);
  if (said.has("target")) state.target = data(said.get("target"));
  for (const key of TABLES) state[key] = data(said.get(key)) ?? undefined;
  if (said.has("language")) state.language = said.get("language") === "es" ? "es" : "en";
  return { state: state.model ? state : null, here, other: data(said.get("other")) };
}

const whole = (text) => (text !== null && /^\d+$/.test(text) ? Number(text) : null);

function data(text) {
  try { return JSON.parse(text); } catch { return null; }
}

// A long model file is kept in the tab, and the address only names it.
function kept(text) {
  if (text.length <= LONGEST_FILE) return text;
  let name = 0;
  for (let at = 0; at < text.length; at += 1) name = (Math.imul(name, 31) + text.charCodeAt(at)) | 0;
  const key = `kept:${(name >>> 0).toString(36)}`;
  try { sessionStorage.setItem(key, text); } catch { /* a full or forbidden store: reloading forgets */ }
  return key;
}

const found = (text) => (text.startsWith("kept:") ? sessionStorage.getItem(text) ?? "" : text);
