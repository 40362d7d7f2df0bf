"use strict";
// Real or edited, and where: one key a judgement, then boxes. The server sends the next picture as a piece of
// the page.
(() => {
  const {one} = uncanny, steps = uncanny.steps();
  if (!steps) return;

  const form = one("#profile");
  if (form) {
    form.addEventListener("submit", async event => {
      event.preventDefault();
      const answers = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value || null]));
      const answer = await uncanny.post("/profile", {answers});
      if (answer.ok) location.reload(); else one(".wrong", form).textContent = await answer.text();
    });
  }
  if (!one("#panel")) return;

  const stage = new uncanny.Stage({shown: () => steps.clock.start()});
  let placing = null;

  function present(content) {
    endPlacing();
    stage.present(content);
  }

  const send = (judged, boxes) => {
    endPlacing();
    steps.send("/judge", {judged, boxes});
  };

  // Nobody judges a picture that is not there yet.
  const judge = judged => {
    if (!steps.isShown()) return;
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

  const does = {
    done, nowhere: () => send("edited", []), back: endPlacing,
    remove: () => { placing.editor.remove(); count(); },
  };
  const PLACING = {
    Enter: done, n: does.nowhere, Escape: endPlacing, Delete: does.remove, Backspace: does.remove,
    b: () => { placing.editor.add(); count(); }, j: () => placing.editor.step(), "?": steps.help,
  };
  const other = event => {
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
  };

  steps.begin({
    present, does, other,
    zoom: () => stage.zoom(),
    keys: () => ({r: () => judge("real"), e: () => judge("edited")}),
    click: ({judged}) => judged && judge(judged),
  });
  uncanny.loadAnnotoriousSoon();
})();
