// Stepping with keys, copying links, reading strips out, and the badge that works the page's numbers
// out again.  The page says everything without it.
(() => {
  "use strict";
  const page = document.documentElement;
  page.classList.remove("no-script");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---------------------------------------------------------------- stepping through the passages
  const passages = all(".passage");
  const current = () => {
    const line = Math.min(innerHeight * 0.4, 320);
    let place = -1;
    passages.forEach((passage, at) => { if (passage.getBoundingClientRect().top <= line) place = at; });
    return place;
  };
  const show = () => {
    const place = current();
    passages.forEach((passage, at) => passage.classList.toggle("here", at === place));
  };
  const step = (by) => {
    const focused = passages.indexOf(document.activeElement);
    const place = (focused >= 0 ? focused : current()) + by;
    if (place >= 0 && place < passages.length) {
      const passage = passages[place];
      passage.focus({ preventScroll: true });
      passage.scrollIntoView({ block: "start" });
      try { history.replaceState(null, "", `#${passage.id}`); } catch { /* some browsers refuse from disk */ }
      passages.forEach((each) => each.classList.toggle("here", each === passage));
      return;
    }
    const turn = document.querySelector(by > 0 ? "a[rel=next]" : "a[rel=prev]");
    if (turn) location.href = turn.href + (turn.dataset.last ? `#${turn.dataset.last}` : "");
  };
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const arrows = { ArrowRight: 1, ArrowLeft: -1 }, letters = { j: 1, k: -1 };
    const by = letters[event.key] ?? arrows[event.key];
    if (by === undefined || event.target.closest("input, textarea, select, [popover]")) return;
    if (event.key in arrows && event.target.closest("[tabindex='0']")) return; // it scrolls, or reads out
    event.preventDefault();
    step(by);
  });
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; show(); });
  }, { passive: true });
  requestAnimationFrame(show);

  // ---------------------------------------------------------------- what is folded, on paper
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of closed) each.open = false; });

  // What does not scroll need not be a stop of the tab key; asked when it comes into sight, and anew
  // when its size changes.
  const seen = new ResizeObserver((changes) => {
    const wide = changes.map(({ target }) => target.scrollWidth > target.clientWidth);
    changes.forEach(({ target }, at) => {
      if (wide[at]) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    });
  });
  for (const stop of all(".table[tabindex], .formula[tabindex], .letter[tabindex]")) seen.observe(stop);

  // ---------------------------------------------------------------- links to a number
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const link = location.href.split("#")[0] + "#" + button.dataset.copy;
    const done = () => button.classList.add("copied");
    const byHand = () => {
      const area = document.createElement("textarea");
      area.value = link;
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(link).then(done, byHand);
    else byHand();
  });

  // ---------------------------------------------------------------- what a strip holds
  const point = page.lang === "es" ? "," : ".";
  for (const strip of all(".heat")) {
    const numbers = (text) => text.split(" ").map(Number);
    const { width: wide, height: high } = strip.viewBox.baseVal;
    const [down, across] = numbers(strip.dataset.pooled), sizes = numbers(strip.dataset.sizes);
    const reach = Number(strip.dataset.reach), readout = strip.closest("figure").querySelector(".readout");
    let values = null, cursor = null, row = 0, column = 0;
    const span = (cell, entries, size) => {
      const first = cell * entries, last = Math.min(first + entries, size) - 1;
      return last > first ? `${first}:${last + 1}` : `${first}`;
    };
    const tell = () => {
      if (!values) {
        const bytes = Uint8Array.from(atob(strip.dataset.values), (sign) => sign.charCodeAt(0));
        values = new DataView(bytes.buffer);
        cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
        for (const [name, value] of [["class", "cursor"], ["width", 1], ["height", 1]]) cursor.setAttribute(name, value);
        strip.append(cursor);
      }
      cursor.setAttribute("x", column);
      cursor.setAttribute("y", row);
      const steps = values.getUint16(2 * (row * wide + column), true) - 32768;
      const value = Number(((steps / 32767) * reach).toPrecision(3));
      const address = strip.dataset.address
        .replace("{row}", span(row, down, sizes[0])).replace("{column}", span(column, across, sizes[1]));
      const shown = steps === -32768 ? "–" : `≈ ${value}`.replace(".", point).replace("-", "−");
      readout.textContent = `${address}  ${shown}`;
    };
    const within = (value, count) => Math.min(count - 1, Math.max(0, value));
    strip.tabIndex = 0;
    strip.addEventListener("pointermove", (event) => {
      const box = strip.getBoundingClientRect();
      column = within(Math.floor(((event.clientX - box.left) / box.width) * wide), wide);
      row = within(Math.floor(((event.clientY - box.top) / box.height) * high), high);
      tell();
    });
    strip.addEventListener("focus", tell);
    strip.addEventListener("keydown", (event) => {
      const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (!move) return;
      event.preventDefault();
      row = within(row + move[0], high);
      column = within(column + move[1], wide);
      tell();
    });
  }

  // ---------------------------------------------------------------- a walk through the pass
  // On request: station by station, each with its numbers.  Where less motion is wanted, each press is
  // one step, and nothing moves by itself.
  for (const walk of all(".walk")) {
    const button = walk.querySelector("button"), status = walk.querySelector("p");
    const drawing = walk.closest("figure").querySelector("svg.pass");
    const stations = all("a[data-station]", drawing);
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const walker = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    walker.setAttribute("class", "walker");
    walker.setAttribute("r", 13);
    let place = -1, timer = 0;
    const label = () => {
      button.textContent = still.matches ? button.dataset.step : timer ? button.dataset.pause : button.dataset.play;
      walk.classList.toggle("moving", timer !== 0);
    };
    const numbers = (station) => {
      const found = [];
      for (let next = station.nextElementSibling; next?.matches("text.v"); next = next.nextElementSibling) found.push(next.textContent);
      return found.join("   ");
    };
    const go = (to) => {
      stations[place]?.classList.remove("now");
      place = to;
      const station = stations[place];
      if (!station) { walker.remove(); status.textContent = ""; return; }
      station.classList.add("now");
      const { x, y, width, height } = station.querySelector(".node").getBBox();
      if (!walker.isConnected) drawing.prepend(walker);
      walker.style.transform = `translate(${x + width / 2}px, ${y + height / 2}px)`;
      const name = station.querySelector("text").textContent, values = numbers(station);
      status.textContent = status.dataset.told.replace("{place}", place + 1).replace("{count}", stations.length)
        .replace("{station}", values ? `${name}  ${values}` : name);
    };
    const stop = () => { clearInterval(timer); timer = 0; label(); };
    const on = () => { if (place + 1 < stations.length) go(place + 1); else { stop(); go(-1); } };
    button.addEventListener("click", () => {
      if (still.matches) return on();
      if (timer) return stop();
      on();
      timer = setInterval(on, 1500);
      label();
    });
    button.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") { stop(); go(-1); }
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      stop();
      go(Math.min(stations.length - 1, Math.max(0, place + by)));
    });
    still.addEventListener("change", stop);
    label();
  }

  // ---------------------------------------------------------------- intervals in float64
  // A number is [low, high]; every operation widens what it makes by `slack` of its size, which
  // covers the rounding of float64 (and of the book's own floats).  null: not known.
  let slack = 1e-12;
  const widened = (low, high) => {
    const by = Math.max(Math.abs(low), Math.abs(high)) * slack + 1e-300;
    return Number.isFinite(low) && Number.isFinite(high) ? [low - by, high + by] : null;
  };
  const ends = (values) => widened(Math.min(...values), Math.max(...values));
  const corners = (a, b, made) => ends([made(a[0], b[0]), made(a[0], b[1]), made(a[1], b[0]), made(a[1], b[1])]);
  const rising = (f) => (a) => ends([f(a[0]), f(a[1])]);
  const near = (f) => (a) => {
    const middle = f((a[0] + a[1]) / 2), radius = (a[1] - a[0]) / 2;
    return widened(middle - radius, middle + radius);
  };
  const erf = (x) => {
    if (Math.abs(x) > 6) return Math.sign(x);
    let term = x, total = x;
    for (let n = 1; n < 200; n += 1) total += term *= (2 * x * x) / (2 * n + 1);
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
  };
  const power = (a, b) => {
    if (b[0] === b[1] && Number.isInteger(b[0])) {
      if (a[0] <= 0 && a[1] >= 0) {
        if (b[0] <= 0) return null;
        if (b[0] % 2 === 0) return ends([0, a[0] ** b[0], a[1] ** b[0]]);
      }
      return ends([a[0] ** b[0], a[1] ** b[0]]);
    }
    return a[0] > 0 ? corners(a, b, (x, y) => x ** y) : null;
  };
  const two = {
    "+": (a, b) => widened(a[0] + b[0], a[1] + b[1]),
    "-": (a, b) => widened(a[0] - b[1], a[1] - b[0]),
    "*": (a, b) => corners(a, b, (x, y) => x * y),
    "/": (a, b) => (b[0] <= 0 && b[1] >= 0 ? null : corners(a, b, (x, y) => x / y)),
    "^": power,
  };
  const one = {
    neg: (a) => [-a[1], -a[0]],
    sqrt: (a) => (a[1] < 0 ? null : rising((x) => Math.sqrt(Math.max(x, 0)))(a)),
    ln: (a) => (a[0] <= 0 ? null : rising(Math.log)(a)),
    exp: rising(Math.exp), tanh: rising(Math.tanh), erf: rising(erf),
    step: (a) => [a[0] > 0 ? 1 : 0, a[1] > 0 ? 1 : 0],
    relu: rising((x) => Math.max(x, 0)), sin: near(Math.sin), cos: near(Math.cos),
  };
  const constants = { e: Math.E, pi: Math.PI, "π": Math.PI };

  // A decimal numeral is within one unit of its last place; a whole number is itself.
  const numeral = (text) => {
    const match = /^([-−]?)(\d+)(?:[.,](\d+))?(?:e([-+−]?\d+))?$/.exec(text.trim());
    if (!match) return null;
    const shift = Number((match[4] || "0").replace("−", "-"));
    const value = Number(`${match[2]}.${match[3] || "0"}e${shift}`) * (match[1] ? -1 : 1);
    const unit = match[3] || match[4] ? 10 ** (shift - (match[3] || "").length) * 1.000001 : 0;
    return [value - unit, value + unit];
  };

  // ---------------------------------------------------------------- the workings, from the data
  const postfix = (text, known) => {
    const stack = [];
    for (const token of text.split(" ")) {
      let made;
      if (token in two) {
        const b = stack.pop(), a = stack.pop();
        made = a && b ? two[token](a, b) : null;
      } else if (token in one) {
        const a = stack.pop();
        made = a ? one[token](a) : null;
      } else if (token in constants) made = widened(constants[token], constants[token]);
      else if (token[0] === "@") made = known(Number(token.slice(1)));
      else if (token[0] === "~") made = numeral(token.slice(1));
      else made = [Number(token), Number(token)];
      if (!made || !made.every(Number.isFinite)) return null;
      stack.push(made);
    }
    return stack.length === 1 ? stack[0] : null;
  };

  // ---------------------------------------------------------------- formulas, as they are printed
  const formula = (node) => {
    const children = [...node.children];
    switch (node.localName) {
      case "mn": {
        const value = numeral(node.textContent);
        if (!value || !node.classList.contains("exact")) return value;
        return widened((value[0] + value[1]) / 2, (value[0] + value[1]) / 2); // said in full
      }
      case "mi": {
        const value = constants[node.textContent];
        return value === undefined ? null : widened(value, value);
      }
      case "mfrac": return pair(two["/"], children);
      case "msup": return pair(two["^"], children);
      case "msqrt": { const a = row(children); return a && one.sqrt(a); }
      case "math": case "mrow": {
        const brackets = children[0]?.textContent === "(" && children.at(-1)?.textContent === ")";
        return row(brackets ? children.slice(1, -1) : children);
      }
      default: return null;
    }
  };
  const pair = (made, [a, b]) => {
    const first = formula(a), second = formula(b);
    return first && second ? made(first, second) : null;
  };
  const oneDigit = (nodes, at) =>
    nodes[at]?.localName === "mn" && /^\d$/.test(nodes[at].textContent) && nodes[at + 1]?.textContent === "⋅" &&
    nodes[at + 2]?.localName === "msup" && nodes[at + 2].children[0].textContent === "10";
  const row = (nodes) => {
    let at = 0;
    const sign = () => (nodes[at]?.localName === "mo" ? nodes[at].textContent : "");
    const atom = () => {
      if (nodes[at]?.localName === "mi" && nodes[at + 1]?.textContent === "\u2061") {
        const name = nodes[at].textContent, argument = nodes[at + 2] && formula(nodes[at + 2]);
        at += 3;
        return argument && Object.hasOwn(one, name) ? one[name](argument) : null;
      }
      if (oneDigit(nodes, at)) { // 2·10⁻⁸ is known to one digit, unlike 2
        const value = Number(nodes[at++].textContent);
        return [value - 1, value + 1];
      }
      return nodes[at] && nodes[at].localName !== "mo" ? formula(nodes[at++]) : null;
    };
    const product = () => {
      let made = atom();
      while (made && ["⋅", "\u2062", "/"].includes(sign())) {
        const by = nodes[at++].textContent === "/" ? "/" : "*", next = atom();
        made = next && two[by](made, next);
      }
      return made;
    };
    if (["=", "≈"].includes(sign())) at += 1;
    let minus = false;
    if (sign() === "−") { minus = true; at += 1; }
    let made = product();
    if (made && minus) made = one.neg(made);
    while (made && ["+", "−"].includes(sign())) {
      const by = nodes[at++].textContent === "+" ? "+" : "-", next = product();
      made = next && two[by](made, next);
    }
    return made && at === nodes.length ? made : null;
  };

  const printed = (line) => { // a long sum is several formulas, so that its line may end between them
    const parts = all("math", line);
    return parts.length === 1 ? formula(parts[0]) : row(parts.flatMap((part) => [...part.children]));
  };

  // ---------------------------------------------------------------- the badge
  const check = () => {
    const data = JSON.parse(document.getElementById("workings").textContent);
    slack = data.slack;
    const place = new Map(data.lines.map(([address], at) => [address, at]));
    const values = new Map();
    const known = (at) => {
      if (!values.has(at)) {
        values.set(at, null);
        values.set(at, data.lines[at] ? postfix(data.lines[at][1], known) : null);
      }
      return values.get(at);
    };
    let count = 0, wrong = 0;
    for (const number of all(".n[data-a], .worked[data-a]")) {
      const readings = [
        place.has(number.dataset.a) ? known(place.get(number.dataset.a)) : null,
        ...all("data", number).map((node) => numeral(node.textContent)),
        ...all(".form, .values", number).map(printed),
      ].filter(Boolean);
      if (readings.length < 2) continue;
      count += 1;
      const low = Math.max(...readings.map((r) => r[0])), high = Math.min(...readings.map((r) => r[1]));
      const differs = low > high + Math.max(Math.abs(low), Math.abs(high)) * slack;
      number.classList.toggle("wrong", differs);
      wrong += differs;
    }
    if (!count) return;
    const badge = document.getElementById("badge");
    const text = wrong ? badge.dataset.differ : badge.dataset.agree;
    badge.hidden = false;
    badge.textContent = text.replace("{wrong}", wrong).replace("{count}", count);
    badge.classList.toggle("differ", wrong > 0);
    badge.dataset.checked = count;
    badge.dataset.wrong = wrong;
  };
  if (document.getElementById("workings")) setTimeout(check);
})();
