// Elements, and turning what is shown into what should be shown with as few touches as possible.
// What can be operated says what it does in `data-do`; `doing` hears it for the whole page, so that
// an element may be kept or exchanged freely.

export const all = (selector, within = document) => [...within.querySelectorAll(selector)];
export const region = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

function furnished(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

/** An HTML element; attributes that are null, undefined or false are left out. */
export const make = (tag, attributes = {}, ...children) => furnished(document.createElement(tag), attributes, children);

/** An SVG element. */
export const draw = (tag, attributes = {}, ...children) => furnished(document.createElementNS(SVG, tag), attributes, children);

/** What HTML of the server says, as nodes. */
export function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

/** Makes the children of `shown` those of `wanted`; what is the same already is not touched. */
export function become(shown, wanted) {
  const now = [...shown.childNodes], then = [...wanted.childNodes];
  then.forEach((node, at) => {
    if (at < now.length) turn(now[at], node);
    else shown.append(node);
  });
  for (const node of now.slice(then.length)) node.remove();
}

/** Shows these children in a region. */
export const fill = (place, ...children) => become(place, make("div", {}, ...children));

function turn(shown, wanted) {
  if (shown.nodeType !== wanted.nodeType || shown.nodeName !== wanted.nodeName || shown.dataset?.key !== wanted.dataset?.key) {
    shown.replaceWith(wanted);
    return;
  }
  if (shown.nodeType !== Node.ELEMENT_NODE) {
    if (shown.data !== wanted.data) shown.data = wanted.data;
    return;
  }
  if (!shown.isEqualNode(wanted)) {
    for (const { name } of [...shown.attributes]) {
      if (!wanted.hasAttribute(name) && !(name === "open" && shown.localName === "details")) shown.removeAttribute(name);
    }
    for (const { name, value } of wanted.attributes) {
      if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
    }
    become(shown, wanted);
    follow(shown, wanted);
    return;
  }
  const fields = all("input, select", wanted);
  all("input, select", shown).forEach((field, at) => follow(field, fields[at]));
  follow(shown, wanted);
}

/** What a person has set in a field gives way to what is so, unless they are at it. */
function follow(shown, wanted) {
  if (shown === document.activeElement && shown.localName === "input" && shown.type === "text") return;
  if (shown.localName === "input" && shown.type === "checkbox") shown.checked = wanted.hasAttribute("checked");
  else if (shown.localName === "input") shown.value = wanted.getAttribute("value") ?? "";
  else if (shown.localName === "select") shown.value = [...shown.options].find((option) => option.hasAttribute("selected"))?.value ?? shown.value;
}

const heard = new Map();

/** What happens when something with this `data-do` is operated: `act(element, event)`. */
export const doing = (name, act) => heard.set(name, act);

/** Begins to listen, once. */
export function listen() {
  const hear = (event) => {
    const element = event.target.closest?.("[data-do]");
    if (!element || !heard.has(element.dataset.do)) return;
    const field = element.matches("select, input");
    if (field ? event.type === "click" : event.type !== "click" && event.type !== "submit") return;
    if (element.localName === "form" ? event.type !== "submit" : event.type === "submit") return;
    if (event.type === "submit" || element.localName === "a") event.preventDefault();
    const moves = ["text", "range"].includes(element.type); // while a person is at it
    if (field && moves && (element.dataset.live !== undefined) !== (event.type === "input")) return;
    if (field && !moves && event.type === "input") return;
    heard.get(element.dataset.do)(element, event);
  };
  for (const kind of ["click", "change", "input", "submit"]) document.addEventListener(kind, hear);
}

/** Says something to those who hear the page. */
export const say = (text) => { region("said").textContent = text; };

/** How long it took from the key to the new numbers on the screen; anyone can read it there. */
export function painted(name, started) {
  requestAnimationFrame(() => setTimeout(() => performance.measure(name, { start: started, end: performance.now() })));
}

/** A picture of a share from 0 to 1; the number stands beside it. */
export const bar = (share, kind = "") => make("i", { class: `share ${kind}`.trim(), style: `--share:${Math.max(0, Math.min(1, share ?? 0)).toFixed(4)}` });
