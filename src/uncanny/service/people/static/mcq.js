"use strict";
// Questions about pictures: one key an answer. The server sends the next question as a piece of the page.
(() => {
  const {one, ask} = uncanny;
  if (uncanny.asksName("/person") || !one("#panel")) return;

  const panel = () => one("#panel");
  const stage = new uncanny.Stage({shown: () => clock.start()});

  const clock = uncanny.clock();

  function present() {
    clock.reset();
    const content = panel().dataset.stage;
    stage.present(content ? JSON.parse(content) : null);
  }

  const answer = choice => {
    const button = one(`[data-choice="${choice}"]`, panel());
    // Nobody answers about a picture that is not there yet.
    if (!button || !stage.content || document.body.dataset.shown !== stage.content.key) return;
    const {key, question} = panel().dataset;
    ask("POST", "/answer", {key, question, choice, seconds: clock.seconds()});
  };
  const undo = () => ask("POST", "/undo", {});
  const instructions = () => { const details = one("#instructions"); if (details) details.open = !details.open; };
  const help = () => one("#help").showModal();

  const OTHERS = {z: undo, f: () => stage.zoom(), i: instructions, "?": help};
  const LETTERS = Object.fromEntries([..."ABCDE"].flatMap((letter, n) => [letter.toLowerCase(), `${n + 1}`].map(key => [key, () => answer(letter)])));
  const PRESENCE = {y: () => answer("yes"), n: () => answer("no"), 1: () => answer("yes"), 2: () => answer("no")};
  uncanny.keys(() => ({...OTHERS, ...(panel().dataset.question === "q1" ? PRESENCE : LETTERS)}));

  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.choice) answer(button.dataset.choice);
    else if (button.dataset.do === "undo") undo();
    else if (button.dataset.tool === "zoom") stage.zoom();
    else if (button.id === "open-help") help();
    else if (button.id === "change-name") uncanny.rename("/person", "Who answers?");
  });

  uncanny.listen(present);
  present();
})();
