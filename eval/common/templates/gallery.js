// The list of cards: filtered and sorted in memory, put on the page in batches.
const BATCH = 24;
const data = readJson("data");
const images = data.images.map((image, index) => ({ ...image, n: index + 1 }));
const views = (readJson("views") || []).map((view, index) => ({ ...view, layers: view.layers.map((layer, n) => ({ ...layer, thumb: images[index].thumbs[n] })) }));
const made = new Map();
let listed = images;
let placed = 0;
let current = -1;

const used = (image) => total(image.usage) ?? -1;
const ORDERS = {
  many: (a, b) => b.anomalies.length - a.anomalies.length,
  cost: (a, b) => (b.usage.cost_usd ?? -1) - (a.usage.cost_usd ?? -1),
  tokens: (a, b) => used(b) - used(a),
  score: (a, b) => (b.extra.score ?? -1) - (a.extra.score ?? -1),
  path: (a, b) => (a.image < b.image ? -1 : a.image > b.image ? 1 : 0),
};

function words(image) {
  image.words ??= [image.image, ...[...image.anomalies, ...(image.doubtful || [])].flatMap((a) => [a.name, a.kind, a.phenomenon, a.reasoning, ...a.objects]),
    ...image.objects.map((object) => object.name), ...image.errors.flatMap((e) => [e.agent, e.kind, e.message])].join("\n").toLowerCase();
  return image.words;
}

function wanted() {
  const asked = byId("q").value.toLowerCase().split(/\s+/).filter(Boolean);
  const status = byId("status").value, has = byId("has")?.value, verdict = byId("verdict")?.value;
  const bound = (id, otherwise) => ((byId(id)?.value ?? "") === "" ? otherwise : Number(byId(id).value));
  const low = bound("low", 0), high = bound("high", 100), any = low <= 0 && high >= 100;
  return (image) => (!status || image.status === status) && (!verdict || image.right === (verdict === "right")) &&
    (!has || (has === "some") === image.anomalies.length > 0) &&
    (any || image.anomalies.some((anomaly) => anomaly.severity !== null && anomaly.severity >= low && anomaly.severity <= high)) &&
    asked.every((word) => words(image).includes(word));
}

function place(upTo) {
  const end = Math.min(upTo, listed.length);
  for (; placed < end; placed++) {
    const image = listed[placed];
    if (!made.has(image.n)) made.set(image.n, card(image, openImage));
    byId("cards").append(made.get(image.n));
  }
  byId("more").hidden = placed >= listed.length;
  byId("more").textContent = `Show ${count(Math.min(BATCH, listed.length - placed))} more of ${count(listed.length)}`;
}

function update() {
  const order = ORDERS[byId("sort").value];
  listed = images.filter(wanted());
  if (order) listed.sort(order);
  byId("cards").replaceChildren();
  placed = 0;
  current = -1;
  place(BATCH);
  byId("nothing").hidden = listed.length > 0;
  byId("matching").textContent = listed.length === images.length ? plural(images.length, "image") : `${count(listed.length)} of ${plural(images.length, "image")} match`;
}

function go(step) {
  const next = Math.max(0, Math.min(listed.length - 1, current + step));
  if (!listed.length) return;
  current = next;
  place(current + 2);
  const node = made.get(listed[current].n);
  node.focus({ preventScroll: true });
  node.scrollIntoView({ block: "start" });
}

function openImage(n) {
  const image = images[n - 1];
  if (!image) return;
  const at = listed.indexOf(image);
  if (at >= 0) current = at;
  showDetail(image, data, move);
}

// The picture alone, at full size; next and previous lead through the images that are listed.
function openPicture(n, first = {}, layer = 0) {
  const among = listed.includes(images[n - 1]) ? listed : images;
  openViewer(among.map((image) => views[image.n - 1]), among.indexOf(images[n - 1]), layer, (at) => {
    if (dialog.open) { openImage(among[at].n); return; }
    current = listed.indexOf(among[at]);
    if (current < 0) return;
    place(current + 2);
    const node = made.get(among[at].n);
    node.querySelector(".shot").focus({ preventScroll: true });
    node.scrollIntoView({ block: "nearest" });
  }, first);
}

function move(step) {
  const next = listed[current + step];
  if (next) openImage(next.n);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "Escape" && typing) { event.target.blur(); return; }
  if (typing) return;
  const step = { j: 1, k: -1 }[event.key];
  if (step) { if (dialog.open) move(step); else go(step); }
  else if (event.key === "/" && !dialog.open) byId("q").focus();
  else if (event.key === "?") byId("help").showModal();
  else if (event.key === "Enter" && event.target.matches(".card")) openImage(Number(event.target.id.slice(6)));
  else return;
  event.preventDefault();
}

function fromHash() {
  const match = /^#image=(\d+)$/.exec(location.hash);
  if (match && Number(match[1]) !== opened) openImage(Number(match[1]));
}

function start() {
  for (const id of ["q", "status", "verdict", "has", "low", "high", "sort"]) byId(id)?.addEventListener("input", update);
  byId("filters").addEventListener("reset", () => setTimeout(update));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  for (const button of document.querySelectorAll("[data-search]")) {
    button.addEventListener("click", () => { byId("q").value = button.dataset.search; update(); byId("gallery").scrollIntoView(); });
  }
  if (!images.some((image) => image.usage.cost_usd !== null)) byId("sort").querySelector("[value=cost]")?.setAttribute("disabled", "");
  document.addEventListener("keydown", onKey);
  dialog.addEventListener("close", () => { if (dialog.open) return; opened = null; setHash(""); if (current >= 0) go(0); });
  addEventListener("hashchange", fromHash);
  // A modal dialog prints its first page only; the same dialog in the flow prints whole.
  const again = (show) => { if (dialog.open) { dialog.close(); dialog[show](); } };
  addEventListener("beforeprint", () => {
    place(listed.length);
    for (const rest of document.querySelectorAll(".rest")) rest.open = true;
    again("show");
  });
  addEventListener("afterprint", () => again("showModal"));
  byId("more").addEventListener("click", () => { const first = placed; place(placed + BATCH); made.get(listed[first].n).focus(); });
  update();
  fromHash();
}
if (images.length) start();
