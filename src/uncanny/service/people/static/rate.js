"use strict";
// How much has changed between two pictures: one key a pair. The server sends the next pair as a piece of the
// page.
(() => {
  const {one, all, ask} = uncanny;
  if (uncanny.asksName("/person")) return;
  one("#change-name")?.addEventListener("click", () => uncanny.rename("/person", "Who rates?"));

  const panel = () => one("#panel");
  const clock = uncanny.clock();
  let content = null, zoomed = false, ahead = [];
  const isShown = () => content && document.body.dataset.shown === content.key;

  function present() {
    clock.reset();
    const stage = panel().dataset.stage;
    content = stage ? JSON.parse(stage) : null;
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
    clock.start();
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

  const rate = change => {
    if (isShown()) ask("POST", "/rate", {key: panel().dataset.key, change, seconds: clock.seconds()});
  };
  const undo = () => ask("POST", "/undo", {});
  const rested = () => one("[data-do=rested]") && ask("GET", "/pair?rested=1", {});
  const help = () => one("#help").showModal();
  const DO = {undo, rested};
  uncanny.keys(() => ({
    1: () => rate("not much"), 2: () => rate("some"), 3: () => rate("a lot"), z: undo, f: zoom, "?": help, Enter: rested,
  }));

  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.change) rate(button.dataset.change);
    else if (button.dataset.do) DO[button.dataset.do]();
    else if (button.dataset.tool === "zoom") zoom();
    else if (button.id === "open-help") help();
  });

  uncanny.listen(present);
  present();
})();
