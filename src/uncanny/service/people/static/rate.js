"use strict";
// How much has changed between two pictures: one key a pair. The server sends the next pair as a piece of the
// page.
(() => {
  const {one, all} = uncanny, steps = uncanny.steps();
  if (!steps) return;

  let content = null, zoomed = false, ahead = [];

  function present(next) {
    content = next;
    one("#stage").classList.toggle("empty", !content);
    if (content) show();
  }

  // Nobody rates a pair of which one picture is not there yet.
  async function show() {
    const mine = content, problem = one("#picture-problem");
    problem.hidden = true;
    one("#both").classList.add("loading");
    const loading = all("#both figure").map(figure => {
      const side = content.sides[figure.dataset.side], image = one("img", figure);
      const [width, height] = side.size;
      Object.assign(image, {width, height, src: zoomed ? side.image : side.preview});
      image.style.aspectRatio = `${width} / ${height}`;
      return image.decode();
    });
    try {
      await Promise.all(loading);
    } catch {
      if (content !== mine) return;
      problem.textContent = "The pictures cannot be shown.";
      problem.hidden = false;
      return;
    }
    if (content !== mine) return;
    one("#both").classList.remove("loading");
    document.body.dataset.shown = mine.key;
    steps.clock.start();
    ahead = mine.next.map(url => Object.assign(new Image(), {src: url}));
  }

  function zoom() {
    zoomed = !zoomed;
    one("[data-tool=zoom]").setAttribute("aria-pressed", zoomed);
    one("#both").classList.toggle("zoomed", zoomed);
    if (content) show();
  }

  // The same place in both, so that it can be compared.
  const windows = all("#both .window");
  for (const window of windows)
    window.addEventListener("scroll", () => {
      for (const other of windows)
        if (other !== window) Object.assign(other, {scrollLeft: window.scrollLeft, scrollTop: window.scrollTop});
    });

  const rate = change => steps.isShown() && steps.send("/rate", {change});
  steps.begin({
    present, zoom,
    keys: () => ({1: () => rate("not much"), 2: () => rate("some"), 3: () => rate("a lot")}),
    click: ({change}) => change && rate(change),
  });
})();
