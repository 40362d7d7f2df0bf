// Images of a comparison filtered by change, kind, sort of anomaly and words.
function startFilters(section) {
  const form = section.querySelector("form.filters"), list = section.querySelector(".changes");
  if (!form || !list) return;
  const cards = [...list.children];
  const fields = form.elements;
  const wanted = (card) => {
    const { change, kinds, has, words } = card.dataset, asked = fields.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (!fields.change.value || change === fields.change.value) &&
      (!fields.kind.value || kinds.split(" ").includes(fields.kind.value)) &&
      (!fields.has.value || has.split(" ").includes(fields.has.value)) && asked.every((word) => words.includes(word));
  };
  const update = () => {
    let matching = 0;
    for (const card of cards) matching += !card.toggleAttribute("data-out", !wanted(card));
    turnPage(list);
    section.querySelector(".nothing").hidden = matching > 0;
    form.querySelector("output").textContent = matching === cards.length ? plural(cards.length, "image") : `${count(matching)} of ${plural(cards.length, "image")} match`;
  };
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
}
document.querySelectorAll("section.images").forEach(startFilters);
