// Writes what was typed into a claims file, which `byhand check` marks.  Nothing leaves the page.
"use strict";
(function () {
  const sheet = JSON.parse(document.getElementById("sheet").textContent);
  const fields = new Map();
  for (const field of document.querySelectorAll("input[data-a]")) fields.set(field.dataset.a, field);
  const bar = document.querySelector(".save");
  const status = bar.querySelector("[role=status]");
  const number = /^[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?%?$/;

  const grouped = /^[0-9]{1,3}([.,'\u2009\u202f\u00a0 ][0-9]{3})+$/; // 103,680 or 103.680: a whole number

  // A number with a decimal point: a comma is read as one, and − as a minus sign.
  function plain(text) {
    return text.trim().replace(/[−–]/g, "-").replace(/^([-+]?[0-9]*),([0-9]+)(%?)$/, "$1.$2$3");
  }

  function typed(address, line) {
    const text = fields.has(address) ? fields.get(address).value.trim() : "";
    if (text === "") return "_";
    if (line.list) {
      const parts = text.replace(/^\[|\]$/g, "").split(text.includes(";") ? /\s*;\s*/ : /\s+/);
      return JSON.stringify(parts.map(plain).join("; "));
    }
    if (line.whole && grouped.test(text)) return text.replace(/[^0-9]/g, "");
    const said = plain(text);
    return number.test(said) ? said : JSON.stringify(text);
  }

  // worksheet-ana-maria.yaml
  function name() {
    const student = document.getElementById("student").value.trim();
    const letters = student.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
    const plainly = letters.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
    return plainly ? "worksheet-" + plainly + ".yaml" : "worksheet.yaml";
  }

  const commands = [...document.querySelectorAll(".intro code")].filter((code) =>
    code.textContent.endsWith(sheet.file));

  function told() {
    const filled = [...fields.values()].filter((field) => field.value.trim() !== "").length;
    for (const code of commands) code.textContent = code.textContent.replace(/worksheet[^ ]*$/, name());
    status.textContent = status.dataset.count.replace("{filled}", filled).replace("{count}", fields.size);
  }

  function file() {
    const student = document.getElementById("student").value.trim();
    const head = sheet.head.replace(/^student:.*$/m, "student: " + (student ? JSON.stringify(student) : ""));
    const lines = sheet.lines.map(function (line) {
      const values = line.places.map((place) => typed(place, line));
      return "  " + line.key + ": " + (line.row ? "[" + values.join(", ") + "]" : values[0]);
    });
    return head + "\nclaims:\n" + lines.join("\n") + "\n" + sheet.foot + "\n";
  }

  bar.hidden = false;
  told();
  document.addEventListener("input", told);
  bar.querySelector("button").addEventListener("click", function () {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([file()], { type: "application/yaml" }));
    link.download = name();
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  });
})();
