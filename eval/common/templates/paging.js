// Long lists a page at a time: the children of whatever has `data-page`, so many on each page. Those that a
// filter leaves out have `data-out`; whoever filters or sorts calls `turnPage` for the list to begin anew.
const pages = new Map();

function startPaging(list) {
  const page = { size: Number(list.dataset.page), first: 0, list };
  const turn = (step, words, label) => el("button", { type: "button", "aria-label": label, onclick: () => { turnPage(list, page.first + step * page.size); backTo(list); } }, words);
  page.before = turn(-1, "‹ Previous", "Previous page");
  page.after = turn(1, "Next ›", "Next page");
  page.place = el("span", { role: "status" });
  const box = list.closest(".scroll"), label = list.dataset.label || `Pages of ${box ? box.getAttribute("aria-label") : "this list"}`;
  page.bar = el("nav", { class: "paging", "aria-label": label }, page.before, page.place, page.after);
  (box || list).after(page.bar);
  pages.set(list, page);
  turnPage(list);
}

function turnPage(list, first = 0) {
  const page = pages.get(list);
  if (!page) return;
  const among = [...list.children].filter((node) => !node.hasAttribute("data-out"));
  const last = Math.max(0, Math.ceil(among.length / page.size) - 1) * page.size;
  page.first = Math.min(Math.max(0, first), last);
  const end = Math.min(among.length, page.first + page.size), shown = new Set(among.slice(page.first, end));
  for (const node of list.children) node.hidden = !shown.has(node);
  page.bar.hidden = among.length <= page.size;
  page.place.textContent = `${count(page.first + 1)}–${count(end)} of ${count(among.length)}`;
  page.before.disabled = page.first === 0;
  page.after.disabled = end === among.length;
}

// The page that a node is on.
function showPageOf(node) {
  for (const [list, page] of pages) {
    const child = list.contains(node) && [...list.children].find((each) => each.contains(node));
    if (!child || !child.hidden) continue;
    const among = [...list.children].filter((each) => !each.hasAttribute("data-out"));
    turnPage(list, Math.floor(among.indexOf(child) / page.size) * page.size);
  }
}

// Its beginning, where that has gone off the top.
function backTo(list) {
  const top = list.closest(".scroll") || list;
  if (top.getBoundingClientRect().top < 0) top.scrollIntoView({ block: "start" });
}

function toHash() {
  let name = location.hash.slice(1);
  try { name = decodeURIComponent(name); } catch { return; } // "%" alone is an address, too
  const node = name && byId(name);
  if (!node) return;
  showPageOf(node);
  node.scrollIntoView();
}

document.querySelectorAll("[data-page]").forEach(startPaging);
if (pages.size) {
  toHash();
  addEventListener("hashchange", toHash);
  // Paper has room for all.
  addEventListener("beforeprint", () => { for (const list of pages.keys()) for (const node of list.children) node.hidden = node.hasAttribute("data-out"); });
  addEventListener("afterprint", () => { for (const [list, page] of pages) turnPage(list, page.first); });
}
