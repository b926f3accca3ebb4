// The page's own words, which the server says in each language, and how numbers are written in it.

let words = {};
let glossary = [];
let language = "en";

/** Loads the words of a language. */
export async function speak(wanted) {
  const found = await Promise.all(["words", "glossary"].map((name) => fetch(`/assets/${name}-${wanted}.json`).then((answer) => answer.json())));
  [words, glossary] = found;
  language = wanted;
  document.documentElement.lang = wanted;
}

/** The word for a key, with `{names}` filled in. */
export const t = (key, values = {}) => (words[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
export const known = (key) => key in words;
export const spoken = () => language;
/** The glossary: [{key, word, forms, says}]. */
export const terms = () => glossary;

/** Numbers in a text as the language writes them: 0,25 in Spanish. */
export const localised = (text) => (language === "es" ? text.replace(/(?<=\d)\.(?=\d)/g, ",") : text).replace("-", "−");
/** The same in a field, to be edited; and what is typed there with a decimal comma, as it is sent. */
export const editable = (text) => (language === "es" ? text.replace(/(?<=\d)\.(?=\d)/g, ",") : text);
export const pointed = (text) => text.replace(/(?<=\d),(?=\d)/g, ".").replaceAll("−", "-");

/** A float with so many decimals; for pictures, never for proofs. */
export const decimal = (value, places = 4) => (value === null || value === undefined ? "–" : localised(value.toFixed(places)));

const raised = (whole) => String(whole).replace(/./g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)]));

/** A float in three digits, however small: 0.0123, 9.8·10⁻⁵. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 0.001 && size < 10000) return localised(String(Number(value.toPrecision(3))));
  const [digits, power] = value.toExponential(1).split("e");
  return `${localised(digits)}·10${raised(Number(power))}`;
}

/** A whole number with its thousands apart: 18,971, in Spanish 18 971. */
export const whole = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, language === "es" ? "\u00a0" : ",");
/** A share as a whole percentage. */
export const percent = (share) => (share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(share * 100)} %`);
