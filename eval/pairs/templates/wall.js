// Which candidates are on the wall: those with one verdict, or all.
for (const bar of document.querySelectorAll(".only")) {
  const list = byId(bar.dataset.of), buttons = [...bar.querySelectorAll("button")];
  const choose = (chosen) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === chosen));
    const verdict = chosen.dataset.verdict;
    for (const card of list.children) card.toggleAttribute("data-out", verdict !== "" && card.dataset.verdict !== verdict);
    turnPage(list);
  };
  for (const button of buttons) button.addEventListener("click", () => choose(button));
  bar.hidden = false;
}
