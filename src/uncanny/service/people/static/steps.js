"use strict";
// What pages have in common on which one thing comes after another: each answer brings the next panel.
// `present` gets what the panel is about, null for nothing, and shows it; then `clock` is started. Nobody
// answers about a picture that is not there yet: `isShown`.
uncanny.steps = () => {
  const {one, ask} = uncanny;
  if (uncanny.asksName("/person")) return null;
  one("#change-name")?.addEventListener("click", event => uncanny.rename("/person", event.target.dataset.who));

  const panel = () => one("#panel");
  const clock = uncanny.clock();
  let content = null;
  const undo = () => ask("POST", "/undo", {});
  const rested = () => one("[data-do=rested]") && ask("GET", "/panel?rested=1", {});
  const help = () => one("#help").showModal();
  const send = (path, said) => {
    const {key} = panel().dataset;
    ask("POST", path, {key, ...said, seconds: clock.seconds()});
  };

  function begin({present, zoom, keys, click = () => {}, does = {}, other}) {
    if (!panel()) return;
    const next = () => {
      clock.reset();
      const {stage} = panel().dataset;
      content = stage ? JSON.parse(stage) : null;
      present(content);
    };
    const actions = {undo, rested, ...does};
    uncanny.keys(() => ({z: undo, f: zoom, "?": help, Enter: rested, ...keys()}), other);
    document.addEventListener("click", event => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.do) actions[button.dataset.do]();
      else if (button.dataset.tool === "zoom") zoom();
      else if (button.id === "open-help") help();
      else click(button.dataset);
    });
    uncanny.listen(next);
    next();
  }

  return {panel, clock, send, help, begin, isShown: () => content && document.body.dataset.shown === content.key};
};
