// One image with its calls, in a dialog; parsed from its own script element when it is opened.
const dialog = byId("detail");
let opened = null;

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function fillCalls(node, packed, present) {
  if (!("DecompressionStream" in window)) {
    node.append(el("p", { class: "empty" }, "This browser is too old to unpack the calls; see calls.jsonl."));
    return;
  }
  node.replaceChildren(callSection(await unpack(packed), present));
}

function setHash(hash) {
  history.replaceState(null, "", hash || location.pathname + location.search);
}

function showDetail(image, data, move) {
  const detail = readJson(`d${image.n}`);
  const calls = el("div", {});
  if (!data.of_detector) fillCalls(calls, detail.packed, data.calls_present);
  const pair = el("div", { class: "pair" });
  const objects = image.objects.length ? [el("h3", {}, "Objects"), el("ul", { class: "plain" },
    image.objects.map((object) => el("li", {}, prose("b", "", object.name), " ", prose("span", "sub", object.description))))] : [];
  const copy = views[image.n - 1].layers[0].copy;
  pair.append(picture(image, copy ? readJson(copy) : image.thumbs[0], () => openPicture(image.n), "Enlarge"),
    el("div", {}, errorList(image), quads(image), doubtful(image), lookedAt(image), candidates(image), objects));
  const facts = { model: image.model, prompts: image.prompts, sha256: image.sha256 || "not known",
    input: amount(image.usage.input_tokens), cached: amount(image.usage.cached_tokens),
    output: amount(image.usage.output_tokens), cost: money(image.usage.cost_usd) };
  if (image.pixels) {
    const { format, bytes, changes, sent } = image.pixels;
    facts.file = `${format}, ${count(bytes)} bytes`;
    facts.sent = sent ? `${sent.media_type}, ${sent.width} × ${sent.height}, ${count(sent.bytes)} bytes (${changes.join(", ")})` : "as it is";
  }
  const others = Object.fromEntries(Object.entries(image.extra).filter(([key]) => key !== "candidates" && !(key === "regions" && lookedAt(image))));
  const extra = Object.keys(others).length ? [el("h3", {}, "Other fields of the record"), prose("pre", "", JSON.stringify(others, null, 1))] : [];
  dialog.replaceChildren(
    el("div", { class: "bar-top" }, el("h2", { id: "detail-title", tabindex: "-1" }, `#${image.n} `, prose("bdi", "", image.image)),
      el("span", { class: `badge is-${image.status}` }, image.status), sourceBadge(image),
      el("button", { type: "button", "aria-label": "Previous image (k)", onclick: () => move(-1) }, "↑"),
      el("button", { type: "button", "aria-label": "Next image (j)", onclick: () => move(1) }, "↓"),
      el("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    pair,
    calls,
    el("h3", {}, "Record"),
    el("dl", { class: "facts" }, Object.entries(facts).map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value)))),
    ...extra);
  opened = image.n;
  if (!dialog.open) dialog.showModal();
  byId("detail-title").focus();
  dialog.scrollTop = 0;
  setHash(`#image=${image.n}`);
}
