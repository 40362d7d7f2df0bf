"use strict";
// Items with their right answers: one key a verdict. The server sends the next item as a piece of the page.
(() => {
  const {one} = uncanny, steps = uncanny.steps();
  if (!steps) return;

  const stage = new uncanny.Stage({shown: () => steps.clock.start()});
  const note = () => one("[name=note]");
  let content = null, boxed = true;

  // The picture without boxes lies beside the one with them.
  function show() {
    const bare = address => address.replace("/boxes?", "/original?");
    one("[data-tool=boxes]").setAttribute("aria-pressed", boxed);
    stage.present(content && !boxed ? {...content, image: bare(content.image), preview: bare(content.preview)} : content);
  }
  const boxes = () => { boxed = !boxed; if (content) show(); };
  const check = decision => steps.isShown() && steps.send("/check", {decision, note: note().value.trim() || null});

  steps.begin({
    present: next => { [content, boxed] = [next, true]; show(); },
    zoom: () => stage.zoom(),
    keys: () => ({c: () => check("accept"), w: () => check("reject"), u: () => check("unsure"), n: () => note()?.focus(), b: boxes}),
    click: ({decision, tool}) => { if (decision) check(decision); else if (tool === "boxes") boxes(); },
    other: event => {
      const leaves = event.key === "Escape" && event.target === note();
      if (leaves) note().blur();
      return leaves;
    },
  });
})();
