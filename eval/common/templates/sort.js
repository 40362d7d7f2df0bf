// Tables sorted by a press on a column's head: numbers by value, the highest first, other cells by name. The
// third press brings back the order in which the page came.
{
const FIGURE = /^[<>+]?\s*[-−–]?[\d.,]+/;

function sortKey(cell) {
  const text = (cell.dataset.sort ?? cell.firstChild?.textContent ?? "").trim();
  const figure = FIGURE.exec(text.replaceAll(",", "").replace("$", ""));
  return { text: text || cell.textContent.trim(), value: figure ? Number(figure[0].replace(/[<>+\s]/g, "").replace(/[−–]/, "-")) : NaN };
}

function sortBy(table, column, head) {
  // Figures begin with the highest, names with A.
  const names = column === 0, before = head.getAttribute("aria-sort");
  const down = before ? before === "ascending" : !names;
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  if (before === (names ? "descending" : "ascending")) {
    delete table.dataset.sorted;
    for (const body of table.tBodies) reorder(body, [...body.rows].sort((a, b) => a.dataset.came - b.dataset.came));
    return;
  }
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  table.dataset.sorted = column;
  for (const body of table.tBodies) {
    const rows = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column]) }));
    rows.sort((a, b) => {
      if (names) return (down ? -1 : 1) * a.key.text.localeCompare(b.key.text, undefined, { numeric: true });
      const unmeasured = Number.isNaN(a.key.value) - Number.isNaN(b.key.value);
      const bothText = Number.isNaN(a.key.value) && Number.isNaN(b.key.value);
      if (bothText) return (down ? -1 : 1) * a.key.text.localeCompare(b.key.text, undefined, { numeric: true });
      return unmeasured || (down ? b.key.value - a.key.value : a.key.value - b.key.value);
    });
    reorder(body, rows.map(({ row }) => row));
  }
}

function reorder(body, rows) {
  body.append(...rows);
  turnPage(body);
}

// The head of each column: of two rows the lower one, but for heads that reach down over both.
function headsOf(table) {
  if (!table.tHead) return [];
  const [upper, lower] = table.tHead.rows;
  if (!lower) return [...upper.cells];
  const below = [...lower.cells];
  return [...upper.cells].flatMap((cell) => (cell.rowSpan > 1 ? [cell] : below.splice(0, cell.colSpan)));
}

function startSorting() {
  for (const table of document.querySelectorAll("table.grid")) {
    const heads = headsOf(table);
    const simple = [...table.tBodies].every((body) => [...body.rows].every((row) => row.cells.length === heads.length));
    if (!simple || ![...table.tBodies].some((body) => body.rows.length > 1)) continue;
    for (const body of table.tBodies) [...body.rows].forEach((row, place) => { row.dataset.came = place; });
    heads.forEach((head, column) => {
      const words = head.textContent.trim().replace(/\s+/g, " ");
      if (!words || head.hasAttribute("data-unsorted")) return;
      head.replaceChildren(el("button", { type: "button", class: "sort", title: `Sort by ${words}`, onclick: () => sortBy(table, column, head) }, [...head.childNodes]));
    });
  }
}
startSorting();
}
