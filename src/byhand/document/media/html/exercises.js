// Exercises: an answer is told right or not as it is checked, and all of them are saved as a sheet
// for `byhand check`.  Nothing leaves the page.
(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const said = JSON.parse(document.getElementById("exercise-words")?.textContent ?? "{}");
  const store = {
    get(key) { try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; } },
    set(key, value) { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* not kept, then */ } },
  };
  const key = `byhand course ${location.pathname}`;

  // ---------------------------------------------------------------- reading what was typed
  const GROUPED = /^[0-9]{1,3}([.,'\u2009\u202f\u00a0 ][0-9]{3})+$/; // 103,680 or 103.680: a whole number
  const plain = (text) => text.trim().replace(/[−–]/g, "-").replace(/,(?=[0-9])/g, ".").replace(/·/g, "*").replace(/√/g, "sqrt");

  // The value of `3/4`, `-0.25`, `e/(1 + e)`, `(3 + 4e^2)/(1 + e^2)`, `sqrt(2)/2`; NaN where it has none.
  function valueOf(text) {
    const tokens = plain(text).match(/[0-9]*\.?[0-9]+|sqrt|e|[-+*/^()]|\S/g) ?? [];
    let at = 0;
    const next = () => tokens[at], take = (token) => next() === token && (at += 1, true);
    const number = () => /^[0-9.]+$/.test(next() ?? "");
    function sum() {
      let total = product();
      while (next() === "+" || next() === "-") total = take("+") ? total + product() : (take("-"), total - product());
      return total;
    }
    function product() {
      let total = signed();
      for (;;) {
        if (take("*")) total *= signed();
        else if (take("/")) total /= signed();
        else if (next() === "(" || next() === "e" || next() === "sqrt") total *= power(); // 4e, 2(1 + e)
        else return total;
      }
    }
    const signed = () => (take("-") ? -signed() : take("+") ? signed() : power());
    function power() {
      const base = atom();
      return take("^") ? base ** signed() : base;
    }
    function atom() {
      if (number()) return Number(tokens[at++]);
      if (take("e")) return Math.E;
      if (take("sqrt")) return Math.sqrt(atom());
      if (take("(")) { const inside = sum(); return take(")") ? inside : NaN; }
      return NaN;
    }
    const value = sum();
    return at === tokens.length ? value : NaN;
  }

  const decimals = (text) => (/^[-+]?[0-9]*\.([0-9]+)$/.exec(plain(text)) ?? ["", ""])[1].length;

  const isWhole = (right) => /^[0-9]{4,}$/.test(right); // only where 103.680 can be nothing else

  // ---------------------------------------------------------------- judging it
  // right, more (right, with too few decimals), exactly (right, but rounded), wrong, or unread
  function verdict(text, right, { kind, places }) {
    if (kind === "word") return text.trim().replace(/^["'`]|["'`]$/g, "") === right ? "right" : "wrong";
    const typed = isWhole(right) && GROUPED.test(text.trim()) ? Number(text.replace(/[^0-9]/g, "")) : valueOf(text);
    const truth = valueOf(right);
    if (Number.isNaN(typed)) return "unread";
    const apart = Math.abs(typed - truth), given = decimals(text);
    if (places === null) {
      if (apart <= 1e-9 * Math.max(1, Math.abs(truth))) return "right";
      return given > 1 && apart <= 0.5 * 10 ** -given ? "exactly" : "wrong";
    }
    if (given >= places || apart === 0) return apart <= 0.5001 * 10 ** -places ? "right" : "wrong";
    return given > 0 && apart <= 0.5001 * 10 ** -given ? "more" : "wrong";
  }

  function judged(told, texts) {
    if (texts.some((text) => text.trim() === "")) return ["unsure", said.blank, []];
    const found = texts.map((text, at) => verdict(text, told.right[at], told));
    const off = found.flatMap((one, at) => (one === "wrong" || one === "unread" ? [at] : []));
    if (found.includes("unread")) return ["unsure", said.unread.replace("{examples}", told.kind === "form" ? "3/4, e/(1 + e)" : `0${said.point}25, -3/2`), off];
    if (!off.length) {
      if (found.includes("more")) return ["unsure", said.more.replace("{places}", told.places), []];
      if (found.includes("exactly")) return ["unsure", said.exactly, []];
      return ["right", said.right, []];
    }
    if (texts.every((text, at) => verdict(text, told.wrong[at], told) === "right")) return ["wrong", said.slip.replace("{slip}", told.slip), off];
    if (off.length < texts.length) return ["wrong", said.some.replace("{numbers}", off.map((at) => at + 1).join(", ")), off];
    return ["wrong", said.wrong, off];
  }

  // ---------------------------------------------------------------- the fields
  const fields = all(".answering").map((box) => ({ box, told: JSON.parse(box.dataset.answer), inputs: all("input", box) }));
  const texts = ({ inputs }) => inputs.map((input) => input.value);

  function show(field) {
    const [kind, text, off] = judged(field.told, texts(field));
    field.box.classList.remove("right", "wrong", "unsure");
    field.box.classList.add(kind);
    field.box.querySelector("[role=status]").textContent = text;
    field.inputs.forEach((input, at) => input.classList.toggle("off", off.includes(at)));
    count();
  }
  function count() {
    const done = document.querySelector(".done"), right = all(".answering.right").length;
    if (done) done.textContent = right ? said.done.replace("{right}", right).replace("{count}", fields.length) : "";
  }
  function keep() {
    store.set(key, Object.fromEntries(fields.filter((field) => texts(field).some(Boolean)).map((field) => [`${field.told.sheet} ${field.told.address}`, texts(field)])));
  }

  const kept = store.get(key);
  for (const field of fields) {
    const button = field.box.querySelector("button"), before = kept[`${field.told.sheet} ${field.told.address}`];
    button.hidden = false;
    button.addEventListener("click", () => show(field));
    field.inputs.forEach((input, at) => {
      input.value = before?.[at] ?? "";
      input.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        if (at + 1 < field.inputs.length && input.value.trim() && !field.inputs[at + 1].value) field.inputs[at + 1].focus();
        else show(field);
      });
      input.addEventListener("input", () => {
        field.box.classList.remove("right", "wrong", "unsure");
        field.box.querySelector("[role=status]").textContent = "";
        input.classList.remove("off");
        count();
        keep();
      });
    });
    if (texts(field).every(Boolean)) show(field);
  }

  // ---------------------------------------------------------------- the sheets
  const NUMBER = /^[-+]?[0-9]*\.?[0-9]+$/;
  const yaml = (text, { kind }, right) => {
    const typed = text.trim();
    if (!typed) return "_";
    const number = isWhole(right) && GROUPED.test(typed) ? typed.replace(/[^0-9]/g, "") : plain(typed);
    return NUMBER.test(number) ? number : JSON.stringify(kind === "word" ? typed : number);
  };
  for (const sheet of all(".sheet")) {
    const button = sheet.querySelector("button");
    button.hidden = false;
    button.addEventListener("click", () => {
      const own = new Map(fields.filter(({ told }) => told.sheet === sheet.dataset.file).map((field) => [JSON.stringify(field.told.address), field]));
      const lines = sheet.dataset.text.split("\n").map((line) => {
        const field = own.get((/^ {2}("(?:[^"\\]|\\.)*"): /.exec(line) ?? [])[1]);
        if (!field) return line;
        const values = texts(field).map((text, at) => yaml(text, field.told, field.told.right[at]));
        return `  ${JSON.stringify(field.told.address)}: ${values.length > 1 ? `[${values.join(", ")}]` : values[0]}`;
      });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n")], { type: "application/yaml" }));
      link.download = sheet.dataset.file.replace(/^.*\//, "");
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
})();
