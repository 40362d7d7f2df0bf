"use strict";
// The review page: one key a verdict. The server sends the next finding as a piece of the page; the picture
// stays where it is and is drawn from what that piece says of it (data-stage).
(() => {
  const one = (query, within = document) => within.querySelector(query);
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const SVG = "http://www.w3.org/2000/svg";
  const base = document.body.dataset.base;

  // Bodies are JSON: a form of another site cannot send that.
  htmx.defineExtension("json", {
    onEvent(name, event) {
      if (name === "htmx:configRequest" && event.detail.verb !== "get")
        event.detail.headers["Content-Type"] = "application/json";
    },
    encodeParameters(request, parameters) {
      return JSON.stringify(parameters instanceof FormData ? Object.fromEntries(parameters) : parameters);
    },
  });

  const who = one("#who");
  if (who) {
    who.addEventListener("submit", async event => {
      event.preventDefault();
      const answer = await fetch(`${base}/reviewer`, {
        method: "POST", headers: {"Content-Type": "application/json"},
        body: JSON.stringify({name: who.elements.name.value}),
      });
      if (answer.ok) location.reload(); else one(".wrong", who).textContent = await answer.text();
    });
    return;
  }
  if (!one("#panel")) return;

  // What is on the stage

  const view = one("#view"), frame = one("#frame"), drawing = one("svg", frame);
  const problem = one("#picture-problem"), message = one("#message");
  let picture = one("img", frame), ahead = null;
  let stage = null, zoomed = false, hidden = false, busy = false, boxing = null, shownPicture = "";

  const panel = () => one("#panel");
  const filters = () => Object.fromEntries(new FormData(one("#filters")));

  function rect(box, kind, id) {
    const shape = document.createElementNS(SVG, "rect");
    const [x0, y0, x1, y1] = box;
    for (const [name, value] of Object.entries({x: x0, y: y0, width: x1 - x0, height: y1 - y0, class: kind}))
      shape.setAttribute(name, value);
    if (id) shape.dataset.finding = id;
    return shape;
  }

  function drawBoxes() {
    drawing.replaceChildren();
    if (!stage) return;
    const width = stage.width || picture.naturalWidth || 1, height = stage.height || picture.naturalHeight || 1;
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.setAttribute("preserveAspectRatio", "none");
    if (hidden || boxing) return;
    for (const other of stage.others) {
      const shape = rect(other.box, "other", other.id);
      const title = document.createElementNS(SVG, "title");
      title.textContent = other.name;
      shape.append(title);
      drawing.append(shape);
    }
    if (stage.box) drawing.append(rect(stage.box, "edge"), rect(stage.box, "mine"));
  }

  // Boxes count in pixels of the file, the picture on the page may be a smaller copy.
  const size = () => ({width: stage.width || picture.naturalWidth, height: stage.height || picture.naturalHeight});

  function fit() {
    if (!stage) return;
    const {width, height} = size();
    if (!width || !height) return;
    const room = Math.min(view.clientWidth / width, view.clientHeight / height);
    // Small pictures are enlarged somewhat, so that a person sees what is meant.
    const scale = zoomed ? Math.max(1, room) : Math.min(room, Math.max(1, Math.min(3, 640 / Math.max(width, height))));
    const [w, h] = [Math.max(1, Math.floor(width * scale)), Math.max(1, Math.floor(height * scale))];
    frame.style.width = `${w}px`;
    frame.style.height = `${h}px`;
    view.classList.toggle("zoomed", zoomed && (w > view.clientWidth || h > view.clientHeight));
  }

  function toBox() {
    if (!stage || !stage.box || !zoomed) return;
    const {width} = size(), scale = frame.clientWidth / width, [x0, y0, x1, y1] = stage.box;
    view.scrollTo((x0 + x1) / 2 * scale - view.clientWidth / 2, (y0 + y1) / 2 * scale - view.clientHeight / 2);
  }

  // Loaded and decoded, so that it can be put on the page within a frame.
  function load(url) {
    const image = new Image();
    image.src = url;
    const ready = image.decode();
    ready.catch(() => {});
    return {url, image, ready};
  }

  async function showPicture() {
    const wanted = zoomed ? stage.image : stage.preview;
    if (wanted === shownPicture) return;
    shownPicture = wanted;
    problem.hidden = true;
    // The old picture under the new boxes would be judged.
    frame.classList.add("loading");
    const loading = ahead?.url === wanted ? ahead : load(wanted);
    let text = "";
    try {
      await loading.ready;
    } catch {
      text = "The picture cannot be shown: its file is gone, or is no longer the one that was examined.";
    }
    if (shownPicture !== wanted) return;
    problem.textContent = text;
    problem.hidden = !text;
    const image = text ? new Image() : loading.image;
    image.alt = stage.alt;
    picture.replaceWith(image);
    picture = image;
    frame.classList.toggle("loading", Boolean(text));
    fit();
    drawBoxes();
    toBox();
    shown();
  }

  // For whoever waits for it, and to measure.
  function shown() {
    document.body.dataset.shown = stage.finding;
    performance.mark("shown");
    lookAhead();
  }

  function lookAhead() {
    if (stage?.next && ahead?.url !== stage.next) ahead = load(stage.next);
  }

  function present() {
    endBox();
    const found = panel();
    const content = found.dataset.stage;
    stage = content ? JSON.parse(content) : null;
    one("#stage").classList.toggle("empty", !stage);
    for (const tool of all("#tools button")) tool.disabled = !stage;
    if (!stage) { shownPicture = ""; picture.removeAttribute("src"); drawBoxes(); return; }
    picture.alt = stage.alt;
    fit();
    drawBoxes();
    const same = (zoomed ? stage.image : stage.preview) === shownPicture;
    if (same) { toBox(); shown(); }
    else showPicture();
  }

  // Steps: one at a time, so that no key is about a finding that nobody has seen

  function say(text) {
    message.textContent = text;
    message.hidden = !text;
  }

  async function ask(verb, path, values) {
    if (busy) return false;
    busy = true;
    say("");
    document.body.classList.add("busy");
    try {
      await htmx.ajax(verb, base + path, {source: document.body, target: "#panel", swap: "outerHTML", values: {...filters(), ...values}});
    } finally {
      busy = false;
      document.body.classList.remove("busy");
    }
    return true;
  }

  const here = () => panel().dataset.finding || "";
  const judge = decision => stage && ask("POST", "/verdict", {finding: here(), text: panel().dataset.text, decision});
  const undo = () => ask("POST", "/undo", {finding: here()});
  const go = move => stage && ask("GET", "/finding", {at: here(), move});

  document.body.addEventListener("htmx:afterSwap", event => {
    if (event.detail.target.id !== "panel") return;
    present();
    one("#name", panel())?.focus({preventScroll: true});
    if (innerWidth < 760) scrollTo(0, 0);
  });
  document.body.addEventListener("htmx:responseError", event => {
    const text = event.detail.xhr.responseText.slice(0, 400);
    const wrong = one("#editor").open ? one("#editor .wrong") : null;
    if (wrong) wrong.textContent = text; else say(`Not kept: ${text}`);
  });
  for (const name of ["htmx:sendError", "htmx:timeout"])
    document.body.addEventListener(name, () => say("Not kept: the server does not answer. Is it still running?"));

  // Box: drawn and moved with Annotorious, which is loaded when it is first needed

  let annotorious = null;
  function loadAnnotorious() {
    annotorious ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = document.body.dataset.annotorious;
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
    return annotorious;
  }

  const scaleX = () => picture.naturalWidth / size().width;
  const scaleY = () => picture.naturalHeight / size().height;

  function asAnnotation(box) {
    const [x0, y0, x1, y1] = box;
    const [x, y, w, h] = [x0 * scaleX(), y0 * scaleY(), (x1 - x0) * scaleX(), (y1 - y0) * scaleY()];
    return {
      "@context": "http://www.w3.org/ns/anno.jsonld", id: "box", type: "Annotation", body: [],
      target: {source: "picture", selector: {type: "FragmentSelector",
        conformsTo: "http://www.w3.org/TR/media-frags/", value: `xywh=pixel:${x},${y},${w},${h}`}},
    };
  }

  function asBox(annotation) {
    const found = /^xywh=pixel:([^,]+),([^,]+),([^,]+),([^,]+)$/.exec(annotation?.target?.selector?.value ?? "");
    if (!found) return null;  // rotated ones come as SVG
    const [x, y, w, h] = found.slice(1).map(Number), {width, height} = size();
    const within = (value, most) => Math.max(0, Math.min(most, Math.round(value)));
    const box = [within(x / scaleX(), width), within(y / scaleY(), height),
      within((x + w) / scaleX(), width), within((y + h) / scaleY(), height)];
    return box[0] < box[2] && box[1] < box[3] ? box : null;
  }

  async function beginBox(done) {
    if (!stage || boxing || !picture.naturalWidth) return;
    await loadAnnotorious();
    if (boxing) return;
    const tool = Annotorious.createImageAnnotator(picture, {
      adapter: Annotorious.W3CImageFormat("picture"), autoSave: true, drawingEnabled: true, theme: "light",
    });
    const named = new MutationObserver(() => {
      for (const handle of all("[role=button]:not([aria-label])", tool.element)) handle.setAttribute("aria-label", "handle of the box");
      one(".a9s-annotationlayer", tool.element)?.setAttribute("aria-label", "Draw the box here");
    });
    named.observe(tool.element, {childList: true, subtree: true});
    boxing = {tool, named, done, box: done ? null : stage.box};
    tool.on("createAnnotation", drawn => {
      for (const each of tool.getAnnotations()) if (each.id !== drawn.id) tool.removeAnnotation(each.id);
      keepShape(asBox(drawn), drawn.id);
    });
    tool.on("updateAnnotation", moved => { boxing.box = asBox(moved) ?? boxing.box; });
    if (boxing.box) putBox(boxing.box);
    one("#tools").hidden = true;
    one("#box-tools").hidden = false;
    one("[data-tool=box-remove]").hidden = Boolean(done) || !stage.box;
    document.body.classList.add("boxing");
    drawBoxes();
    one(".a9s-annotationlayer", tool.element)?.setAttribute("aria-label", "Draw the box here");
    one("[data-tool=box-keep]").focus({preventScroll: true});
  }

  function putBox(box) {
    boxing.box = box;
    boxing.tool.clearAnnotations();
    boxing.tool.addAnnotation(asAnnotation(box));
    boxing.tool.setSelected("box", true);
  }

  function keepShape(box, id) {
    if (!boxing) return;
    if (!box) { boxing.tool.removeAnnotation(id); return; }
    boxing.box = box;
    boxing.tool.setSelected(id, true);
  }

  function endBox() {
    if (!boxing) return;
    boxing.named.disconnect();
    boxing.tool.destroy();
    boxing = null;
    document.body.classList.remove("boxing");
    one("#tools").hidden = false;
    one("#box-tools").hidden = true;
    drawBoxes();
  }

  function readBox() {
    const drawn = boxing.tool.getAnnotations();
    return (drawn.length && asBox(drawn[drawn.length - 1])) || (drawn.length ? boxing.box : null);
  }

  function keepBox() {
    const box = readBox(), {done} = boxing;
    if (!box) { say("There is no box yet: drag on the picture, or press an arrow key."); return; }
    endBox();
    if (done) done(box);
    else ask("POST", "/box", {finding: here(), text: panel().dataset.text, box: box.join(",")});
  }

  function removeBox() {
    endBox();
    ask("POST", "/box", {finding: here(), text: panel().dataset.text, box: ""});
  }

  function nudge(key, sizes) {
    const {width, height} = size(), step = Math.max(1, Math.round(Math.max(width, height) / 100));
    const [dx, dy] = {ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step]}[key];
    const old = readBox();
    let [x0, y0, x1, y1] = old ?? [width * .375, height * .375, width * .625, height * .625].map(Math.round);
    if (old && sizes) {
      x1 = Math.max(x0 + 1, Math.min(width, x1 + dx));
      y1 = Math.max(y0 + 1, Math.min(height, y1 + dy));
    } else if (old) {
      const [mx, my] = [Math.max(-x0, Math.min(width - x1, dx)), Math.max(-y0, Math.min(height - y1, dy))];
      [x0, y0, x1, y1] = [x0 + mx, y0 + my, x1 + mx, y1 + my];
    }
    putBox([x0, y0, x1, y1]);
  }

  // Editing and adding

  const editor = one("#editor"), texts = one("#texts");
  let adding = null;

  function openEditor(box) {
    if (!stage) return;
    adding = box === undefined ? null : {box};
    texts.reset();
    one(".wrong", texts).textContent = "";
    one("#editor-title").textContent = adding ? "Add what was missed" : "Edit";
    one("#editor-hint").textContent = adding
      ? (box ? "With the box you have drawn." : "Without a box; it can be drawn later.")
      : "The text before stays in the log. Verdicts on it do not count for the new one.";
    one("#keep").hidden = Boolean(adding);
    one("#keep-accept span").textContent = adding ? "Add" : "Keep and accept";
    if (!adding) for (const field of all("input, textarea", one("#fields", panel()).content)) texts.elements[field.name].value = field.value;
    editor.showModal();
    texts.elements.name.focus();
  }

  texts.addEventListener("submit", async event => {
    event.preventDefault();
    const decision = event.submitter ? event.submitter.value : "accept";
    const values = Object.fromEntries(new FormData(texts));
    one(".wrong", texts).textContent = "";
    const box = (adding ? adding.box : stage.box)?.join(",") ?? "";
    await (adding ? ask("POST", "/add", {...values, finding: here(), box})
      : ask("POST", "/edit", {...values, finding: here(), text: panel().dataset.text, box, decision}));
    if (!one(".wrong", texts).textContent) editor.close();
  });
  texts.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); texts.requestSubmit(one("#keep-accept")); }
  });
  one("#leave").addEventListener("click", () => editor.close());
  // Where the finding has changed meanwhile, the answer is the finding as it is now.
  document.body.addEventListener("htmx:afterSwap", () => { if (editor.open) editor.close(); });

  function add() {
    if (!stage) return;
    beginBox(box => openEditor(box));
    one("#box-hint").textContent = "Drag a box around what was missed, or go on without one.";
  }

  // Keys and buttons

  function zoom() {
    zoomed = !zoomed;
    one("[data-tool=zoom]").setAttribute("aria-pressed", zoomed);
    fit();
    showPicture();
    drawBoxes();
    toBox();
  }
  function hide() {
    hidden = !hidden;
    one("[data-tool=hide]").setAttribute("aria-pressed", hidden);
    drawBoxes();
  }
  function box() {
    one("#box-hint").textContent = "Drag on the picture to draw or move the box.";
    beginBox(null);
  }
  const help = () => one("#help").showModal();

  const KEYS = {
    a: () => judge("accept"), r: () => judge("reject"), u: () => judge("unsure"), z: undo,
    j: () => go("next"), k: () => go("previous"), n: () => go("next-image"), p: () => go("previous-image"),
    e: () => openEditor(), b: box, m: add, f: zoom, h: hide, "?": help,
  };
  const keysOn = one("#keys-on");
  keysOn.checked = localStorage.getItem("uncanny-keys") !== "off";
  keysOn.addEventListener("change", () => localStorage.setItem("uncanny-keys", keysOn.checked ? "on" : "off"));

  document.addEventListener("keydown", event => {
    if (one("dialog[open]") || event.altKey) return;
    if (boxing) {
      if (event.key.startsWith("Arrow")) { event.preventDefault(); event.stopPropagation(); nudge(event.key, event.shiftKey); }
      else if (event.key === "Escape") { event.preventDefault(); cancelBox(); }
      else if (event.key === "Delete" && !boxing.done && stage.box) { event.preventDefault(); removeBox(); }
      else if (event.key === "Enter" && !event.target.closest("#box-tools button")) { event.preventDefault(); keepBox(); }
      else if (event.ctrlKey || event.metaKey) event.stopPropagation();  // Annotorious has an undo of its own
      return;
    }
    if (event.ctrlKey || event.metaKey || event.repeat || !keysOn.checked) return;
    if (event.target.closest("input, textarea, select")) return;
    const step = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (step) { event.preventDefault(); if (!busy) step(); }
  }, true);

  function cancelBox() {
    const {done} = boxing;
    endBox();
    if (done) openEditor(null);
  }

  const TOOLS = {zoom, hide, box, add, "box-keep": keepBox, "box-remove": removeBox, "box-cancel": cancelBox};
  document.addEventListener("click", event => {
    const button = event.target.closest("button, rect[data-finding]");
    if (!button) return;
    const {decision, tool, move, finding, show} = button.dataset;
    if (decision) judge(decision);
    else if (tool) TOOLS[tool]();
    else if (move) go(move);
    else if (finding) ask("GET", "/finding", {at: finding});
    else if (show) { one("#filters").elements.show.value = show; ask("GET", "/finding", {}); }
    else if (button.dataset.do === "undo") undo();
    else if (button.dataset.do === "edit") openEditor();
    else if (button.id === "open-help") help();
    else if (button.id === "open-agreement") openAgreement();
    else if (button.id === "change-name") rename();
  });
  one("#filters").addEventListener("change", event => { event.target.blur(); ask("GET", "/finding", {}); });

  async function openAgreement() {
    await htmx.ajax("GET", `${base}/agreement`, {source: document.body, target: "#agreement-content", swap: "innerHTML"});
    one("#agreement").showModal();
  }
  async function rename() {
    const name = prompt("Who judges?");
    if (!name || !name.trim()) return;
    const answer = await fetch(`${base}/reviewer`, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({name})});
    if (answer.ok) location.assign(`${base}/`); else say(await answer.text());
  }

  new ResizeObserver(() => fit()).observe(view);
  present();
  // The box tool is wanted soon, but not before the finding is there.
  (window.requestIdleCallback ?? setTimeout)(() => loadAnnotorious().catch(() => { annotorious = null; }));
})();
