// What a heat map shows under the pointer or the arrow keys.  The page says everything without it.
(() => {
  const LEAST = 1e-4, STEPS = 5000;
  const share = (steps) => {
    if (steps === 65535) return "∞";
    const value = steps === 1 ? 0 : LEAST * 10 ** ((steps - 1) / STEPS);
    if (value > 1.0005) return `${Number(value.toPrecision(3)).toLocaleString()}×`;
    return value && value < 0.001 ? "<0.1%" : `${Number((Math.min(value, 1) * 100).toPrecision(2))}%`;
  };
  const span = (cell, [start, size, entries]) => {
    const first = cell * entries, last = Math.min(first + entries, size) - 1;
    return last > first ? `${start + first}:${start + last + 1}` : `${start + first}`;
  };
  for (const svg of document.querySelectorAll(".heat svg")) {
    const numbers = (text) => text.split(" ").map(Number);
    const rows = numbers(svg.dataset.rows), columns = numbers(svg.dataset.columns);
    const bytes = Uint8Array.from(atob(svg.dataset.shares), (sign) => sign.charCodeAt(0));
    const shares = new DataView(bytes.buffer);
    const { width: wide, height: high } = svg.viewBox.baseVal;
    const readout = svg.closest("figure").querySelector(".readout");
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    cursor.setAttribute("class", "cursor");
    for (const side of ["width", "height"]) cursor.setAttribute(side, 1);
    let row = 0, column = 0;
    const show = () => {
      cursor.setAttribute("x", column);
      cursor.setAttribute("y", row);
      if (!cursor.parentNode) svg.append(cursor);
      const steps = shares.getUint16(2 * (row * wide + column), true);
      const address = svg.dataset.address.replace("{row}", span(row, rows)).replace("{column}", span(column, columns));
      readout.textContent = `${address}  ${steps ? share(steps) : "–"}`;
    };
    svg.tabIndex = 0;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      column = Math.min(wide - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * wide)));
      row = Math.min(high - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * high)));
      show();
    });
    svg.addEventListener("focus", show);
    svg.addEventListener("pointerleave", () => cursor.remove());
    svg.addEventListener("blur", () => cursor.remove());
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!move) return;
      event.preventDefault();
      row = Math.min(high - 1, Math.max(0, row + move[0]));
      column = Math.min(wide - 1, Math.max(0, column + move[1]));
      show();
    });
  }
})();
