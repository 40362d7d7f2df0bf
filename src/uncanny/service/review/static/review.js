"use strict";
// The review page: one key a verdict. The server sends the next finding as a piece of the page; the picture
// stays where it is and is drawn from what that piece says of it (data-stage).
(() => {
  const {one, all, base, say, ask: send, rect} = uncanny;
  if (uncanny.asksName("/reviewer") || !one("#panel")) return;

  // What is on the stage

  let hidden = false, boxing = null;
  const panel = () => one("#panel");
  const filters = () => Object.fromEntries(new FormData(one("#filters")));
  const stage = new uncanny.Stage({
    draw: drawBoxes,
    gone: "The picture cannot be shown: its file is gone, or is no longer the one that was examined.",
  });

  function drawBoxes(drawing, content) {
    if (hidden || boxing) return;
    for (const other of content.others) {
      const shape = rect(other.box, "other");
      shape.dataset.finding = other.id;
      const title = document.createElementNS(uncanny.SVG, "title");
      title.textContent = other.name;
      shape.append(title);
      drawing.append(shape);
    }
    if (content.box) drawing.append(rect(content.box, "edge"), rect(content.box, "mine"));
  }

  function present() {
    endBox();
    const content = panel().dataset.stage;
    stage.present(content ? JSON.parse(content) : null);
    // At the end of an image there is no box to move, and no text to judge.
    if (one("[data-tool=box]")) one("[data-tool=box]").disabled = !panel().dataset.text;
  }

  const ask = (verb, path, values) => send(verb, path, {...filters(), ...values});
  const here = () => panel().dataset.finding || "";
  const sampled = () => filters().sample === "yes";
  const judge = decision => panel().dataset.text && ask("POST", "/verdict", {finding: here(), text: panel().dataset.text, decision});
  const undo = () => ask("POST", "/undo", {finding: here()});
  // From the end, where there is no finding, too.
  const go = move => ask("GET", "/finding", {at: here(), move});
  // Where findings are left it leads to them.
  function complete() {
    if (!sampled() || !stage.content) return;
    const {state} = panel().dataset;
    if (state) ask("POST", "/complete", {finding: here(), state}); else go("enter");
  }

  // Box: drawn and moved. `done` takes that of a finding which is added, else it is kept with the one shown.

  async function beginBox(done) {
    if (!stage.content || boxing || !stage.picture.naturalWidth) return;
    boxing = {done, editor: null};
    const old = done || !stage.content.box ? [] : [stage.content.box];
    boxing.editor = await uncanny.BoxEditor.open(stage, old);
    if (!boxing.editor) { boxing = null; return; }
    one("#tools").hidden = true;
    one("#box-tools").hidden = false;
    one("[data-tool=box-remove]").hidden = Boolean(done) || !stage.content.box;
    stage.redraw();
    one("[data-tool=box-keep]").focus({preventScroll: true});
  }

  function endBox() {
    if (!boxing?.editor) return;
    const {editor} = boxing;
    // First: keys are the page's again even where the editor cannot be closed.
    boxing = null;
    one("#tools").hidden = false;
    one("#box-tools").hidden = true;
    editor.close();
    stage.redraw();
  }

  function keepBox() {
    const [box] = boxing.editor.read(), {done} = boxing;
    if (!box) { say("There is no box yet: drag on the picture, or press an arrow key."); return; }
    endBox();
    if (done) done(box);
    else ask("POST", "/box", {finding: here(), text: panel().dataset.text, box: box.join(",")});
  }

  function removeBox() {
    endBox();
    ask("POST", "/box", {finding: here(), text: panel().dataset.text, box: ""});
  }

  // Editing and adding

  const editor = one("#editor"), texts = one("#texts");
  let adding = null, written = "";  // the finding that is written about

  function openEditor(box) {
    if (!stage.content || (box === undefined && !panel().dataset.text)) return;
    adding = box === undefined ? null : {box};
    written = here();
    texts.reset();
    // Whoever judges whole images says in three steps how real it is, and need not write more than a name.
    const steps = Boolean(adding) && sampled();
    one("#scale").hidden = one("#scale").disabled = !steps;
    one("#exact").hidden = texts.elements.severity.disabled = steps;
    // The texts come last where they may stay empty.
    (steps ? one("#scale") : texts.elements.reasoning.closest("label")).after(one(".two", texts));
    for (const name of ["phenomenon", "reasoning"]) {
      texts.elements[name].required = !steps;
      texts.elements[name].placeholder = steps ? "optional" : "";
    }
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

  texts?.addEventListener("submit", async event => {
    event.preventDefault();
    const decision = event.submitter ? event.submitter.value : "accept";
    const {step, ...values} = Object.fromEntries(new FormData(texts));
    if (step) values.severity = step;
    one(".wrong", texts).textContent = "";
    if (!adding && here() !== written) {
      one(".wrong", texts).textContent = "This finding is no longer there. Copy what you need, and cancel.";
      return;
    }
    const status = await (adding ? ask("POST", "/add", {...values, finding: written, box: adding.box?.join(",") ?? ""})
      : ask("POST", "/edit", {...values, finding: written, text: panel().dataset.text, decision}));
    // What somebody has typed is theirs until it is kept.
    if (status >= 200 && status < 300) editor.close();
    else if (status === 409) one(".wrong", texts).textContent = adding
      ? "This image has changed meanwhile. What you wrote is still here."
      : "The text was changed meanwhile: behind this is how it stands. Keep yours in its place, or cancel.";
  });
  texts?.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); texts.requestSubmit(one("#keep-accept")); }
  });
  one("#leave")?.addEventListener("click", () => editor.close());

  function add() {
    if (!stage.content) return;
    beginBox(box => openEditor(box));
    one("#box-hint").textContent = "Drag a box around what was missed, or go on without one.";
    one("[data-tool=box-cancel] span").textContent = "Without a box";
  }

  // Keys and buttons

  const zoom = () => stage.zoom();
  function hide() {
    hidden = !hidden;
    one("[data-tool=hide]").setAttribute("aria-pressed", hidden);
    stage.redraw();
  }
  function box() {
    if (!panel().dataset.text) return;
    one("#box-hint").textContent = "Drag on the picture to draw or move the box.";
    one("[data-tool=box-cancel] span").textContent = "Cancel";
    beginBox(null);
  }
  const help = () => one("#help").showModal();
  // Another queue begins at its start, but an image that is judged whole stays.
  const reload = () => ask("GET", "/finding", sampled() && here() ? {at: here(), move: "enter"} : {});
  // What the model was not sure of is hidden until asked for.
  function doubtful() {
    const shown = one("#filters").elements.doubtful;
    if (shown) { shown.checked = !shown.checked; reload(); }
  }

  const KEYS = {
    j: () => go("next"), k: () => go("previous"), n: () => go("next-image"), p: () => go("previous-image"),
    f: zoom, h: hide, d: doubtful, "?": help,
  };
  // Who only reads has no editor either.
  if (editor) Object.assign(KEYS, {
    a: () => judge("accept"), r: () => judge("reject"), u: () => judge("unsure"), z: undo,
    e: () => openEditor(), b: box, m: add, c: complete,
  });
  uncanny.keys(() => KEYS, event => {
    if (!boxing) return false;
    if (!boxing.editor) return true;
    if (event.key.startsWith("Arrow")) { event.preventDefault(); event.stopPropagation(); boxing.editor.nudge(event.key, event.shiftKey); }
    else if (event.key === "Escape") { event.preventDefault(); cancelBox(); }
    else if (event.key === "Delete" && !boxing.done && stage.content.box) { event.preventDefault(); removeBox(); }
    else if (event.key === "Enter" && !event.target.closest("#box-tools button")) { event.preventDefault(); keepBox(); }
    else if (event.ctrlKey || event.metaKey) event.stopPropagation();  // Annotorious has an undo of its own
    return true;
  });

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
    else if (button.dataset.do === "complete") complete();
    else if (button.dataset.do === "edit") openEditor();
    else if (button.dataset.do === "doubtful") doubtful();
    else if (button.id === "open-help") help();
    else if (button.id === "open-agreement") openAgreement();
    else if (button.id === "change-name") uncanny.rename("/reviewer", "Who judges?");
  });
  one("#filters").addEventListener("change", event => { event.target.blur(); if (event.target.name === "doubtful") reload(); else ask("GET", "/finding", {}); });

  async function openAgreement() {
    await htmx.ajax("GET", `${base}/agreement`, {source: document.body, target: "#agreement-content", swap: "innerHTML"});
    one("#agreement").showModal();
  }

  uncanny.listen(present, text => {
    if (!editor?.open) return false;
    one(".wrong", editor).textContent = `Not kept: ${text}`;
    return true;
  });
  present();
  if (editor) uncanny.loadAnnotoriousSoon();
})();
