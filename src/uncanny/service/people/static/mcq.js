"use strict";
// Questions about pictures: one key an answer. The server sends the next question as a piece of the page.
(() => {
  const {one} = uncanny, steps = uncanny.steps();
  if (!steps) return;

  const stage = new uncanny.Stage({shown: () => steps.clock.start()});
  const answer = choice => {
    const {question} = steps.panel().dataset;
    if (one(`[data-choice="${choice}"]`, steps.panel()) && steps.isShown()) steps.send("/answer", {question, choice});
  };
  const instructions = () => { const details = one("#instructions"); if (details) details.open = !details.open; };

  const LETTERS = Object.fromEntries([..."ABCDE"].flatMap((letter, n) => [letter.toLowerCase(), `${n + 1}`].map(key => [key, () => answer(letter)])));
  const PRESENCE = {y: () => answer("yes"), n: () => answer("no"), 1: () => answer("yes"), 2: () => answer("no")};
  steps.begin({
    present: content => stage.present(content),
    zoom: () => stage.zoom(),
    keys: () => ({i: instructions, ...(steps.panel().dataset.question === "q1" ? PRESENCE : LETTERS)}),
    click: ({choice}) => choice && answer(choice),
  });
})();
