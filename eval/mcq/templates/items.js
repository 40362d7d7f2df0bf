// Every item opens from its row: picture with boxes, questions, all answers. The data is parsed when one is opened.
{
const table = byId("all-items"), dialog = byId("item");
const STATES = { r: "right", w: "wrong", i: "invalid", f: "refused", m: "missing", u: "unasked" };
const MARKS = { right: "✓ ", wrong: "✗ " };
const BRIEF = { invalid: "invalid", refused: "refused", missing: "missing", unasked: "not asked" };
let all = null;

const shownRows = () => [...table.tBodies[0].rows].filter((row) => !row.hasAttribute("data-out") && row.dataset.item);

function cellOf(code) {
  const state = STATES[code[0]], words = code.slice(1);
  const text = BRIEF[state] || (MARKS[state] || "") + words;
  const raw = BRIEF[state] && words !== BRIEF[state] ? prose("small", "", words) : null;
  return el("td", { class: `is-${state}-answer` }, text, raw);
}

function pictureOf(id, item) {
  const marks = item.boxes.map(([letter, box, text]) => ({ name: letter === item.right ? `${letter} ✓` : letter, box, text, severity: null, group: "" }));
  if (!item.src) return el("div", { class: "blank" }, `The picture is not in this page: ${item.image}`);
  const shot = el("img", { src: item.src, alt: `the image of ${id}`, decoding: "async" });
  const open = () => openViewer([{ title: id, width: null, height: null, layers: [{ name: "image", src: item.src }], marks, hidden: [], groups: [] }]);
  shot.addEventListener("error", () => shot.replaceWith(el("div", { class: "blank" }, `The picture is not where it was: ${item.image}`)));
  return el("button", { type: "button", class: "shot", "aria-label": `Enlarge the image of ${id}, with its boxes`, onclick: open }, shot);
}

function showItem(id) {
  all ??= readJson("items");
  const item = all.items[id], order = shownRows().map((row) => row.dataset.item), at = order.indexOf(id);
  const step = (by, label, words) => el("button", { type: "button", "aria-label": label, disabled: !order[at + by], onclick: () => showItem(order[at + by]) }, words);
  const one = (flat, [letter, text, right]) => el("li", { class: `${right ? "is-right" : ""}${flat ? " flat" : ""}` },
    el("span", {}, letter), prose("span", "", (text === `box ${letter}` ? "" : text) + (right ? " ✓" : "")));
  const questions = item.questions.map(([title, options]) => el("div", {}, el("h4", {}, title),
    el("ul", {}, options.map((option) => one(/^Q[13]/.test(title), option)))));
  const heads = ["Answers", "Q1", "Q2", "Q3", "Q4"].map((head) => el("th", { scope: "col" }, head));
  const answers = item.answers.map((codes, n) => el("tr", {}, el("th", { scope: "row" }, prose("bdi", "", all.models[n])), codes.map(cellOf)));
  dialog.replaceChildren(
    el("div", { class: "bar-top" }, el("h2", { id: "item-title", tabindex: "-1" }, prose("bdi", "", id), el("span", { class: "sub" }, ` ${item.about.join(", ")}`)),
      step(-1, "Previous item in the table", "↑"), step(1, "Next item in the table", "↓"), el("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    el("div", { class: "item bare" }, el("div", { class: "one-shot" }, pictureOf(id, item)), el("div", { class: "asked" }, questions),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Answers to ${id}` }, el("table", { class: "grid" }, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, answers)))));
  if (!dialog.open) dialog.showModal();
  byId("item-title").focus();
  dialog.scrollTop = 0;
}

if (table && dialog) {
  table.addEventListener("click", (event) => { const button = event.target.closest("button[data-open]"); if (button) showItem(button.dataset.open); });
  const find = byId("find-item"), matching = byId("matching-items");
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let kept = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      kept += !row.toggleAttribute("data-out", !words.every((word) => text.includes(word)));
    }
    turnPage(table.tBodies[0]);
    matching.textContent = words.length ? `${count(kept)} of ${count(table.tBodies[0].rows.length)}` : "";
  });
}
}
