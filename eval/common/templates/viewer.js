// Pictures at full size: zoomed, moved, with boxes and their names; layers that lie over one another are flipped.
const openViewer = (() => {
const viewer = byId("viewer");
const GROUPS = 5, MOST_ZOOM = 32, STEP = 1.25;
const look = { views: [], at: 0, layer: 0, scale: 1, fit: 1, x: 0, y: 0, boxes: true, hidden: new Set(), asked: new Set(), chosen: -1, first: {}, left: () => {} };
const on = {};
const KEYS = "+ − zoom · 0 whole picture · 1 pixel for pixel · Shift and arrows move · ← → other pictures · Esc close";

const view = () => look.views[look.at];
const layers = () => view().layers;
const groupsOf = ({ groups, marks }) => [...new Set([...(groups || []), ...marks.map((mark) => mark.group)])];
const tone = (mark) => `m${groupsOf(view()).indexOf(mark.group) % GROUPS}`;
const realistic = (severity) => `${severity} of 100 realistic`;
const bounded = (value, low, high) => Math.min(Math.max(value, low), high);

// A list of views, which of them, which layer; `left` is called with the number of the view it is closed at.
// `first` is what to show of the first one: the `group` of hidden marks, or a `finding`, by its name and box.
function open(views, at = 0, layer = 0, left = () => {}, first = {}) {
  Object.assign(look, { views, left, first, boxes: true, asked: new Set(first.group ? [first.group] : []) });
  if (!on.stage) build();
  if (!viewer.open) viewer.showModal();
  showView(at, layer);
  on.stage.focus();
}

function build() {
  const button = (words, label, onclick) => el("button", { type: "button", "aria-label": label, title: label, onclick }, words);
  on.title = el("h2", { id: "viewer-title", dir: "auto" });
  on.place = el("span", { class: "sub v-place" });
  on.layers = el("div", { class: "v-set", role: "group", "aria-label": "Pictures that lie over one another" });
  on.zoom = el("output", { "aria-label": "Zoom" });
  on.boxes = button("Boxes", "Boxes (b)", toggleBoxes);
  on.groups = el("div", { class: "v-set", role: "group", "aria-label": "Further boxes" });
  on.file = el("a", { target: "_blank", rel: "noopener noreferrer" }, "File");
  on.move = el("div", { class: "v-set" }, button("‹", "Previous picture (←)", () => move(-1)), button("›", "Next picture (→)", () => move(1)));
  on.close = button("✕", "Close (Esc)", () => viewer.close());
  on.close.classList.add("v-close");
  on.image = el("img", { alt: "", draggable: "false" });
  on.drawn = svg("svg", { "aria-hidden": "true" });
  on.frame = el("div", { class: "v-frame" }, on.image, on.drawn);
  on.labels = el("div", { "aria-hidden": "true" });
  on.message = el("p", { class: "v-message", role: "status", hidden: true });
  on.stage = el("div", { class: "v-stage", tabindex: "0", role: "group", "aria-label": "The picture; keys zoom and move it" }, on.frame, on.labels, on.message);
  on.side = el("aside", { class: "v-side", "aria-label": "What is said of the picture" });
  on.keys = el("p", { class: "v-keys" });
  viewer.replaceChildren(el("div", { class: "v-bar" }, on.title, on.place, on.layers,
    el("div", { class: "v-set" }, button("−", "Smaller (−)", () => zoom(1 / STEP)), on.zoom, button("+", "Larger (+)", () => zoom(STEP)),
      button("Fit", "Whole picture (0)", fitted), button("1:1", "Pixel for pixel (1)", pixelForPixel)),
    on.boxes, on.groups, on.file, on.move, on.close), on.stage, on.side, on.keys);
  viewer.addEventListener("keydown", viewerKey);
  viewer.addEventListener("close", () => { on.image.removeAttribute("src"); look.left(look.at); });
  on.stage.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-bounded(event.deltaY, -120, 120) / (event.ctrlKey ? 60 : 300)), event); }, { passive: false });
  on.stage.addEventListener("dblclick", (event) => { if (look.scale > look.fit * 1.01) fitted(); else zoom(3, event); });
  for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) on.stage.addEventListener(kind, pointer);
  new ResizeObserver(() => { if (viewer.open && look.width) { const whole = Math.abs(look.scale - look.fit) < 1e-6; measure(); if (whole) fitted(); else place(); } }).observe(on.stage);
}

function showView(at, layer = 0) {
  look.at = at;
  look.chosen = -1;
  look.hidden = new Set(view().hidden.filter((group) => !look.asked.has(group)));
  const { title, marks, hidden } = view();
  on.title.textContent = on.title.title = title;
  on.place.textContent = look.views.length > 1 ? `${count(at + 1)} of ${count(look.views.length)}` : "";
  on.move.hidden = look.views.length < 2;
  on.boxes.hidden = !marks.some((mark) => mark.box);
  const several = layers().length > 1;
  on.layers.hidden = !several;
  on.keys.textContent = KEYS + (on.boxes.hidden ? "" : " · b boxes") + (several ? " · f flip" : "") + (layers().length > 2 ? ` · d ${layers()[2].name}` : "") + hidden.map((group) => ` · ${group[0]} ${group}`).join("");
  on.groups.hidden = !hidden.length;
  on.groups.replaceChildren(...hidden.map((group) => el("button", { type: "button", title: `${titled(group)} (${group[0]})`, onclick: () => toggleGroup(group) }, titled(group))));
  on.layers.replaceChildren(...layers().map((each, n) => el("button", { type: "button", onclick: () => showLayer(n) }, each.name)));
  fillSide();
  on.side.scrollTop = 0;
  look.width = look.height = 0;
  on.frame.hidden = true;
  showLayer(layer);
}

// The first source that can be shown: the linked file, the copy in the page, the thumbnail.
async function showLayer(n) {
  look.layer = n;
  const shownView = view(), current = layers()[n];
  [...on.layers.children].forEach((button, i) => button.setAttribute("aria-pressed", i === n));
  on.message.hidden = true;
  if (look.width) drawBoxes();
  on.file.hidden = !current.src;
  if (current.src) on.file.href = current.src;
  const small = current.thumb ?? thumbOf(shownView, n);
  if (small && !look.width) await put(small, true);
  const sources = [() => current.src, () => current.copy && readJson(current.copy), () => small];
  for (const [rank, source] of sources.entries()) {
    if (view() !== shownView || look.layer !== n) return;
    const address = source();
    if (!address || !(await put(address, false))) continue;
    if (rank > 0 && current.src) say("The picture is not where it was when this page was made, or this browser cannot show it. This is the small copy in the page.");
    else if (rank === 2 && !current.made) say("Only this small copy is in the page.");
    return;
  }
  if (view() === shownView && look.layer === n) {
    on.image.removeAttribute("src");
    say("This picture could not be read when the page was made.");
  }
}

const thumbOf = (shownView, n) => document.querySelector(`[data-view="${shownView.number}"][data-layer="${n}"] img`)?.src;

function say(words) {
  on.message.textContent = words;
  on.message.hidden = false;
}

async function put(address, passing) {
  const shownView = view(), n = look.layer, image = new Image();
  image.src = address;
  try { await image.decode(); } catch { return false; }
  if (view() !== shownView || look.layer !== n || !viewer.open) return true;
  if (passing && look.width) return true;
  on.image.src = address;
  on.image.alt = `${shownView.title}, ${layers()[n].name}`;
  const known = shownView.width && shownView.height;
  if (known && Math.abs(shownView.width * image.naturalHeight / shownView.height / image.naturalWidth - 1) > 0.03) {
    say("This picture has another shape than the one that was looked at: boxes need not be where they belong.");
  }
  const width = known ? shownView.width : image.naturalWidth, height = known ? shownView.height : image.naturalHeight;
  if (!look.width || (!known && !passing && look.given !== shownView)) {
    Object.assign(look, { width, height, given: passing ? null : shownView });
    on.frame.style.width = `${width}px`;
    on.frame.style.height = `${height}px`;
    on.drawn.setAttribute("viewBox", `0 0 ${width} ${height}`);
    on.frame.hidden = false;
    measure();
    drawBoxes();
    fitted();
    chooseFirst();
  }
  return true;
}

function measure() {
  look.fit = Math.min(on.stage.clientWidth / look.width, on.stage.clientHeight / look.height, 4);
}

function fitted() {
  look.scale = look.fit;
  look.x = look.y = 0;
  place();
}

function pixelForPixel() {
  zoom(1 / devicePixelRatio / look.scale);
}

// The point below the pointer, else the middle, stays where it is.
function zoom(factor, event) {
  if (!look.width) return;
  const area = on.stage.getBoundingClientRect();
  const px = event ? event.clientX - area.left : area.width / 2, py = event ? event.clientY - area.top : area.height / 2;
  const scale = bounded(look.scale * factor, Math.min(look.fit, 1 / devicePixelRatio) / 2, MOST_ZOOM);
  look.x = px - (px - look.x) * scale / look.scale;
  look.y = py - (py - look.y) * scale / look.scale;
  look.scale = scale;
  place();
}

function place() {
  const wide = on.stage.clientWidth, high = on.stage.clientHeight, w = look.width * look.scale, h = look.height * look.scale;
  look.x = w <= wide ? (wide - w) / 2 : bounded(look.x, wide - w, 0);
  look.y = h <= high ? (high - h) / 2 : bounded(look.y, high - h, 0);
  on.frame.style.transform = `translate(${look.x}px, ${look.y}px) scale(${look.scale})`;
  on.drawn.style.setProperty("--pixel", 1 / look.scale);
  on.frame.classList.toggle("coarse", look.scale * devicePixelRatio >= 2);
  on.zoom.textContent = `${Math.round(look.scale * devicePixelRatio * 100)} %`;
  placeLabels();
}

const drawnMarks = () => view().marks.map((mark, n) => ({ ...mark, n }))
  .filter((mark) => mark.box && look.boxes && !layers()[look.layer].drawn && !look.hidden.has(mark.group));
const chosen = (mark) => (mark.n === look.chosen ? " chosen" : "");

function drawBoxes() {
  on.boxes.setAttribute("aria-pressed", look.boxes);
  view().hidden.forEach((group, i) => on.groups.children[i].setAttribute("aria-pressed", look.boxes && !look.hidden.has(group)));
  on.drawn.replaceChildren(...drawnMarks().map((mark) => {
    const [x, y, right, bottom] = mark.box, rings = mark.outline || [];
    const d = rings.map((ring) => `M${ring.map((corner) => corner.join(" ")).join("L")}Z`).join("");
    const [shape, size] = d ? ["path", { d }] : ["rect", { x, y, width: right - x, height: bottom - y }];
    return svg("g", { class: tone(mark) + chosen(mark) + (mark.dashed ? " dashed" : "") }, svg(shape, { ...size, class: "v-edge" }), svg(shape, { ...size, class: "v-line" }));
  }));
  on.labels.replaceChildren(...drawnMarks().map((mark) => prose("div", `v-label ${tone(mark)}${chosen(mark)}`, mark.name)));
  if (look.width) placeLabels();
}

// Above its box if there is room, and below labels that stand there already.
function placeLabels() {
  const taken = [], wide = on.stage.clientWidth, high = on.stage.clientHeight;
  drawnMarks().forEach((mark, i) => {
    const node = on.labels.children[i], [x0, y0, x1, y1] = mark.box;
    const left = look.x + x0 * look.scale, top = look.y + y0 * look.scale;
    const outside = look.x + x1 * look.scale < 0 || left > wide || look.y + y1 * look.scale < 0 || top > high;
    node.hidden = outside;
    if (outside) return;
    const w = node.offsetWidth, h = node.offsetHeight;
    const spot = { x: bounded(left, 0, Math.max(0, wide - w)), y: bounded(top - h, 0, Math.max(0, high - h)), w, h };
    const meets = (other) => spot.x < other.x + other.w && other.x < spot.x + w && spot.y < other.y + other.h && other.y < spot.y + h;
    for (let tries = 0, other; tries < 20 && (other = taken.find(meets)); tries++) spot.y = other.y + other.h + 1;
    taken.push(spot);
    node.style.transform = `translate(${spot.x}px, ${spot.y}px)`;
  });
}

function fillSide() {
  const { marks } = view(), groups = groupsOf(view());
  on.side.hidden = !marks.length;
  const one = (mark, n) => el("li", { class: tone(mark) },
    mark.box ? el("button", { type: "button", class: "link", onclick: () => choose(n) }, el("span", { class: "v-swatch" }), prose("bdi", "", mark.name)) : prose("b", "", mark.name),
    mark.severity === null ? null : el("p", { class: `v-score ${shade(mark.severity)}` }, realistic(mark.severity)),
    mark.text ? prose("p", "", mark.text) : null,
    mark.box ? null : el("p", { class: "sub" }, "No place in the picture is given."));
  const list = (group) => !marks.some((mark) => mark.group === group) ? el("p", { class: "sub" }, "nothing") : el("ol", {}, marks.map((mark, n) => (mark.group === group ? one(mark, n) : null)));
  const lists = (group) => (look.hidden.has(group) ? [] : [list(group)]);
  const heads = (group) => el("label", { class: tone({ group }) }, toggle(group), el("span", { class: "v-swatch" }), prose("b", "", group));
  on.side.replaceChildren(...groups.flatMap((group) => (groups.length > 1 || group ? [heads(group), ...lists(group)] : [list(group)])));
}

// The group of hidden marks whose name begins with a key.
const groupOf = (key) => view().hidden.find((group) => group[0] === key);
const titled = (group) => group[0].toUpperCase() + group.slice(1);

function toggle(group) {
  const box = el("input", { type: "checkbox", checked: !look.hidden.has(group) });
  box.addEventListener("change", () => toggleGroup(group));
  return box;
}

// Those that are hidden at first stay as they were asked for in the next picture.
function toggleGroup(group) {
  const show = look.hidden.has(group) || !look.boxes;
  look.hidden[show ? "delete" : "add"](group);
  look.asked[show ? "add" : "delete"](group);
  look.boxes ||= show;
  const focused = on.side.contains(document.activeElement);
  fillSide();
  drawBoxes();
  if (focused) on.side.querySelectorAll("input")[groupsOf(view()).indexOf(group)]?.focus();
}

function chooseFirst() {
  const { finding } = look.first;
  look.first = {};
  if (!finding?.box) return;
  const same = (mark) => mark.name === finding.name && mark.box && mark.box.every((side, i) => side === finding.box[i]);
  const n = view().marks.findIndex(same);
  if (n >= 0) choose(n);
}

function toggleBoxes() {
  look.boxes = !look.boxes;
  drawBoxes();
}

// Brings a box to the middle, large enough to be looked at.
function choose(n) {
  const mark = view().marks[n], [x0, y0, x1, y1] = mark.box, wide = on.stage.clientWidth, high = on.stage.clientHeight;
  look.chosen = n;
  look.boxes = true;
  look.hidden.delete(mark.group);
  look.scale = bounded(Math.min(wide / (x1 - x0), high / (y1 - y0)) * 0.6, look.fit, Math.max(look.fit, 4));
  look.x = wide / 2 - look.scale * (x0 + x1) / 2;
  look.y = high / 2 - look.scale * (y0 + y1) / 2;
  fillSide();
  drawBoxes();
  place();
}

function move(step) {
  const next = look.at + step;
  if (next >= 0 && next < look.views.length) showView(next);
}

function viewerKey(event) {
  if (event.key === "Escape" || event.key === "Tab" || event.ctrlKey || event.metaKey || event.altKey) { event.stopPropagation(); return; }
  event.stopPropagation();
  const arrow = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] }[event.key];
  const acts = {
    "+": () => zoom(STEP), "=": () => zoom(STEP), "-": () => zoom(1 / STEP), "_": () => zoom(1 / STEP), 0: fitted, 1: pixelForPixel,
    j: () => move(1), k: () => move(-1), n: () => move(1), p: () => move(-1), b: toggleBoxes,
    f: () => showLayer(look.layer === 0 ? Math.min(1, layers().length - 1) : 0),
    d: () => { if (layers().length > 2) showLayer(look.layer === 2 ? 0 : 2); },
    ArrowLeft: () => move(-1), ArrowRight: () => move(1),
  };
  if (arrow && (event.shiftKey || (!acts[event.key] && event.target === on.stage))) { look.x += arrow[0]; look.y += arrow[1]; place(); }
  else if (acts[event.key] && !(event.shiftKey && arrow)) acts[event.key]();
  else if (!event.shiftKey && groupOf(event.key)) toggleGroup(groupOf(event.key));
  else return;
  event.preventDefault();
}

// One finger moves, two zoom; a swipe over a whole picture goes on to the next.
const fingers = new Map();
let swipe = null;

function pointer(event) {
  const before = fingers.get(event.pointerId);
  if (event.type === "pointerdown") {
    if (event.button > 0) return;
    on.stage.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    swipe = fingers.size === 1 && event.pointerType === "touch" && look.scale <= look.fit * 1.01 ? event : null;
  } else if (event.type === "pointermove") {
    if (!before || !look.width) return;
    if (fingers.size === 1) {
      look.x += event.clientX - before.clientX;
      look.y += event.clientY - before.clientY;
      place();
    } else if (fingers.size === 2) {
      const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      const middle = { clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 };
      if (apart(before) > 0) zoom(apart(event) / apart(before), middle);
    }
    fingers.set(event.pointerId, event);
  } else {
    fingers.delete(event.pointerId);
    const across = swipe && event.type === "pointerup" ? event.clientX - swipe.clientX : 0;
    if (Math.abs(across) > 60 && Math.abs(across) > 2 * Math.abs(event.clientY - swipe.clientY)) move(across < 0 ? 1 : -1);
    swipe = null;
  }
  on.stage.classList.toggle("dragging", fingers.size > 0);
}

// Pages whose pictures stand in the HTML: each opens its view, and next leads through all of them.
function startViewer() {
  const all = (readJson("views") || []).map((each, number) => ({ ...each, number }));
  document.addEventListener("click", (event) => {
    const trigger = event.target.closest("[data-view]");
    if (!trigger) return;
    const order = new Set([...document.querySelectorAll("[data-view]:not([data-out] *)")].map((node) => Number(node.dataset.view)));
    const views = [...order].map((number) => all[number]);
    const at = views.findIndex((each) => each.number === Number(trigger.dataset.view));
    openViewer(views, at, Number(trigger.dataset.layer), (last) => focusShot(views[last].number));
  });
}

function focusShot(number) {
  const shot = document.querySelector(`[data-view="${number}"]`), fold = shot?.closest("details:not([open])");
  if (fold) fold.open = true;
  if (shot) showPageOf(shot);
  shot?.focus({ preventScroll: true });
  shot?.scrollIntoView({ block: "nearest" });
}
if (viewer) startViewer();
return open;
})();
