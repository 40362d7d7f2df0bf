"use strict";
// Real or edited, and where: one key a judgement, then boxes. The server sends the next picture as a piece of
// the page.
(() => {
  const {one, all, ask} = uncanny;
  if (uncanny.asksName("/person")) return;

  const form = one("#profile");
  if (form) {
    form.addEventListener("submit", async event => {
      event.preventDefault();
      const answers = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value || null]));
      const answer = await uncanny.post("/profile", {answers});
      if (answer.ok) location.reload(); else one(".wrong", form).textContent = await answer.text();
    });
  }
  one("#change-name")?.addEventListener("click", () => uncanny.rename("/person", "Who judges?"));
  if (!one("#panel")) return;

  const panel = () => one("#panel");
  const stage = new uncanny.Stage({shown: () => clock.start()});
  let placing = null;

  const clock = uncanny.clock();
  const isShown = () => stage.content && document.body.dataset.shown === stage.content.key;

  function present() {
    endPlacing();
    clock.reset();
    const content = panel().dataset.stage;
    stage.present(content ? JSON.parse(content) : null);
  }

  const send = (judged, boxes) => {
    const {key} = panel().dataset, seconds = clock.seconds();
    endPlacing();
    ask("POST", "/judge", {key, judged, boxes, seconds});
  };
  const undo = () => ask("POST", "/undo", {});
  const rested = () => one("[data-do=rested]") && ask("GET", "/picture?rested=1", {});

  // Nobody judges a picture that is not there yet.
  const judge = judged => {
    if (!isShown()) return;
    if (judged === "real") send("real", []); else beginPlacing();
  };

  async function beginPlacing() {
    if (placing) return;
    const mine = placing = {editor: null};
    mine.editor = await uncanny.BoxEditor.open(stage, [], {many: true});
    if (!mine.editor || placing !== mine) { mine.editor?.close(); if (placing === mine) placing = null; return; }
    placing.editor.changed = count;
    document.body.classList.add("placing");
    count();
    one(".a9s-annotationlayer")?.focus({preventScroll: true});
  }

  function endPlacing() {
    placing?.editor?.close();
    placing = null;
    document.body.classList.remove("placing");
  }

  function count() {
    const n = placing.editor.read().length;
    one("#boxes").textContent = n === 0 ? "No box yet" : n === 1 ? "1 box" : `${n} boxes`;
  }

  function done() {
    const boxes = placing.editor.read();
    if (boxes.length) send("edited", boxes);
    else uncanny.say("There is no box yet: drag on the picture, or say that you cannot tell where.");
  }

  const help = () => one("#help").showModal();
  const DO = {
    undo, rested, done, nowhere: () => send("edited", []), back: endPlacing,
    remove: () => { placing.editor.remove(); count(); },
  };
  const KEYS = {r: () => judge("real"), e: () => judge("edited"), z: undo, f: () => stage.zoom(), "?": help, Enter: rested};
  const PLACING = {
    Enter: done, n: DO.nowhere, Escape: endPlacing, Delete: DO.remove, Backspace: DO.remove,
    b: () => { placing.editor.add(); count(); }, j: () => placing.editor.step(), "?": help,
  };
  uncanny.keys(() => KEYS, event => {
    if (!placing) return false;
    if (!placing.editor) return true;
    if (event.key.startsWith("Arrow")) {
      event.preventDefault(); event.stopPropagation();
      placing.editor.nudge(event.key, event.shiftKey);
      count();
      return true;
    }
    // Annotorious has an undo of its own.
    if (event.ctrlKey || event.metaKey) { event.stopPropagation(); return true; }
    const step = PLACING[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!step || event.repeat || (event.key === "Enter" && event.target.closest("button"))) return true;
    event.preventDefault(); event.stopPropagation();
    step();
    return true;
  });

  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.judged) judge(button.dataset.judged);
    else if (button.dataset.do) DO[button.dataset.do]();
    else if (button.dataset.tool === "zoom") stage.zoom();
    else if (button.id === "open-help") help();
  });

  uncanny.listen(present);
  present();
  uncanny.loadAnnotoriousSoon();
})();
