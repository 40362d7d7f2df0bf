function picture(image, source, onclick, label) {
  if (!source) {
    const why = image.status === "unreadable" ? "unreadable image" : "picture not found when this page was made";
    return el("div", { class: "shot" }, el("div", { class: "blank" }, why));
  }
  const shot = el("img", { src: source, alt: image.image, decoding: "async", width: image.width, height: image.height });
  shot.style.height = "auto";
  const boxes = image.anomalies.map((anomaly) => anomaly.box).filter(Boolean);
  const drawn = image.width && boxes.length ? svg("svg", { class: "marks", viewBox: `0 0 ${image.width} ${image.height}`, "aria-hidden": "true" }, boxes.map((box) => outline(box))) : null;
  return el("button", { type: "button", class: "shot", "aria-label": label, onclick }, shot, drawn);
}

// `by` pixels outside of the box, so that the line hides nothing of what is in it.
function outline([x, y, right, bottom], by = 0) {
  const size = { x: x - by, y: y - by, width: right - x + 2 * by, height: bottom - y + 2 * by };
  return svg("g", {}, svg("rect", { ...size, class: "edge" }), svg("rect", { ...size, class: "line" }));
}

// What is around an anomaly, enlarged: cut from the file when the page was made, else out of the copy in the page.
function part(image, anomaly) {
  if (!anomaly.part) return null;
  const { layers: [{ copy }], parts } = views[image.n - 1], { box, number } = anomaly.part;
  image.parts ??= (parts && readJson(parts)) || [];
  const sharp = image.parts[number];
  const source = sharp || (copy ? (image.large ??= readJson(copy)) : image.thumbs[0]);
  if (!source) return null;
  const [x, y, right, bottom] = box, place = { x, y, width: right - x, height: bottom - y };
  const size = sharp ? place : { width: image.width, height: image.height };
  const shown = svg("svg", { viewBox: `${x} ${y} ${place.width} ${place.height}`, "aria-hidden": "true" },
    svg("image", { href: source, ...size, preserveAspectRatio: "none" }), anomaly.box && outline(anomaly.box, place.width / 60));
  return el("button", { type: "button", class: "part marks", "aria-label": `Enlarge: ${anomaly.name}`, onclick: () => openPicture(image.n, { finding: anomaly }) }, shown);
}

// Rounded down, so that nothing below a limit reads as if it had reached it.
const percentOf = (share) => `${Math.floor(100 * share + 1e-9)} %`;

function severity({ severity: value, confidence, probability }) {
  const scale = svg("svg", { "aria-hidden": "true" },
    svg("line", { x1: "2", x2: "100%", y1: 5, y2: 5 }),
    svg("circle", { cx: `${4 + value * 0.92}%`, cy: 5, r: 4 }));
  const rated = value === null ? [el("small", {}, "realism not rated")] : [el("small", {}, "realism "), String(value), el("small", {}, " of 100"), scale];
  return el("div", { class: `sev ${value === null ? "" : shade(value)}`, title: "0 is completely unreal, 100 fully realistic" }, rated,
    typeof confidence === "number" && el("small", { title: "How sure the model is that this is there and is a fault" }, `${percentOf(confidence)} sure`),
    typeof probability === "number" && el("small", { title: "How likely people accept it, by a calibration" }, `${Math.min(Math.max(Math.round(100 * probability), 1), 99)} % likely right (calibrated)`));
}

function quad(image, anomaly) {
  const names = [...anomaly.objects.map((name) => prose("span", "", name)), anomaly.kind && el("span", { class: "kind" }, anomaly.kind)];
  const tags = names.some(Boolean) ? el("p", { class: "tags" }, names.filter(Boolean)) : null;
  return el("li", { class: "quad" }, part(image, anomaly),
    el("div", {}, prose("p", "name", anomaly.name), severity(anomaly), tags,
      prose("p", "", anomaly.phenomenon), prose("p", "why", anomaly.reasoning)));
}

const quadList = (image, some) => el("ul", { class: "quads" }, some.map((anomaly) => quad(image, anomaly)));

// What the model is not sure of, behind a click; made when it is opened.
function doubtful(image) {
  if (!image.doubtful) return null;
  const more = image.anomalies.length ? "more " : "";
  const rest = el("details", { class: "rest" }, el("summary", {}, `${count(image.doubtful.length)} ${more}below confidence ${data.least}`));
  rest.addEventListener("toggle", () => rest.append(quadList(image, image.doubtful)), { once: true });
  return rest;
}

function quads(image, most = Infinity) {
  if (image.anomalies.length) {
    const found = image.anomalies;
    if (found.length <= most + 1) return quadList(image, found);
    return el("div", {}, quadList(image, found.slice(0, most)),
      el("details", { class: "rest" }, el("summary", {}, `${count(found.length - most)} more anomalies`), quadList(image, found.slice(most))));
  }
  const { verdict, source, description } = image.extra;
  if (typeof description === "string") return prose("p", "", description);
  if (typeof verdict === "string" && !source) return el("p", { class: "empty" }, "Asked whether it is generated, the model said: ", prose("bdi", "", verdict.trim() || "nothing"));
  if (data.of_detector && image.status === "ok") return judged(image);
  if (image.doubtful) return null;
  const word = { ok: "No anomalies found.", partial: "No anomalies from the steps that worked." }[image.status];
  return el("p", { class: "empty" }, word || "Not judged.");
}

// What a detector says, and where it looks.
function judged(image) {
  const { score } = image.extra, heat = image.thumbs[1];
  const label = "Enlarge: where it looks";
  return el("div", { class: "judged" }, typeof score === "number" && el("p", {}, `Probability of being generated: ${score.toFixed(3)}`),
    heat && el("figure", {}, el("button", { type: "button", class: "shot", "aria-label": label, onclick: () => openPicture(image.n, {}, 1) },
      el("img", { src: heat, alt: "", decoding: "async" })), el("figcaption", {}, "Where it looks")));
}

// All that agents found, with what became of it: nothing is left out unseen.
function candidates(image) {
  const found = image.extra.candidates;
  if (!Array.isArray(found) || !found.length) return [];
  const fates = found.reduce((sum, one) => ({ ...sum, [one.fate]: (sum[one.fate] || 0) + 1 }), {});
  const counts = Object.entries(fates).map(([fate, number]) => `${number} ${fate}`).join(", ");
  return [el("h3", {}, "Findings"), el("p", { class: "sub" }, `${plural(found.length, "finding")}: ${counts}`),
    el("ol", { class: "plain" }, found.map((one) => el("li", { value: one.number }, el("b", {}, String(one.fate)), " ",
      prose("span", "", String(one.phenomenon)), " ", prose("span", "sub", [one.found_by, one.why].filter(Boolean).join(": ")), closerLook(one))))];
}

// What became of a finding when the part of the picture around it was looked at again.
function closerLook({ region, confidence, first_confidence: first }) {
  const known = (value) => typeof value === "number", words = [];
  if (known(first) && known(confidence) && known(region)) words.push(`${percentOf(first)} sure at first, ${percentOf(confidence)} after a closer look`);
  else if (known(confidence)) words.push(`${percentOf(confidence)} sure`);
  else if (known(first)) words.push(`${percentOf(first)} sure at first`);
  if (known(region)) words.push(`region ${region}`);
  return words.length ? el("span", { class: "sub" }, ` (${words.join("; ")})`) : null;
}

// The parts of the picture that the model saw enlarged; the viewer draws them.
function lookedAt(image) {
  const regions = views[image.n - 1].marks.filter((mark) => mark.group === "regions");
  if (!regions.length) return null;
  return el("p", {}, el("button", { type: "button", class: "link", onclick: () => openPicture(image.n, { group: "regions" }) },
    `Show ${regions.length === 1 ? "the part" : `the ${count(regions.length)} parts`} that ${regions.length === 1 ? "was" : "were"} looked at closely`));
}

// What is no failure and still must be known: objects above the limit, copies that were not asked about.
function remarks(image) {
  const found = [], cut = image.extra.cut_objects, twin = image.extra.duplicate_of;
  if (Array.isArray(cut) && cut.length) {
    const names = cut.map((object) => object.name || String(object)).join(", ");
    found.push(prose("li", "remark", `${plural(cut.length, "object")} above the limit not looked into: ${names}`));
  }
  const beyond = Object.entries(image.extra.left_out || {}).map(([what, number]) => `${number} ${what}`);
  if (beyond.length) found.push(prose("li", "remark", `More than is read of an answer, and left out: ${beyond.join(", ")}`));
  if (twin) found.push(prose("li", "remark", `Same bytes as ${twin}, whose answers these are.`));
  return found;
}

function errorList(image, most = Infinity) {
  if (!image.errors.length && !remarks(image).length) return null;
  const items = image.errors.slice(0, most).map((error) => {
    const names = error.object ? [error.object] : error.objects || [];
    const about = names.length ? [" about ", prose("bdi", "", names.map((name) => `“${name}”`).join(", "))] : [];
    return el("li", {}, el("b", {}, `${error.agent}, step ${error.step}`), ...about,
      ` failed (${error.kind}): `, prose("bdi", "", error.message));
  });
  if (image.errors.length > most) items.push(el("li", { class: "remark" }, `and ${plural(image.errors.length - most, "more error")}`));
  return el("ul", { class: "errors" }, items, remarks(image));
}

// Of a detection run alone: what the model takes the image for.
function sourceBadge(image) {
  const { verdict, source } = image.extra;
  if (verdict === undefined || verdict === null) return null;
  const words = source ? `taken for ${source}` : "no clear verdict";
  if (typeof image.right !== "boolean") return el("span", { class: "badge" }, words);
  return el("span", { class: `badge is-${image.right ? "ok" : "failed"}` }, `${words}, ${image.right ? "right" : "wrong"}`);
}

function usage(image) {
  const used = image.usage;
  return [el("span", {}, plural(used.calls, "call")), el("span", {}, total(used) === null ? "tokens not reported" : `${count(total(used))} tokens`),
    el("span", {}, used.cost_usd === null ? "cost not known" : money(used.cost_usd))];
}

function card(image, open) {
  const size = image.width && image.height ? `${image.width} × ${image.height}` : null;
  return el("article", { class: "card", tabindex: "-1", id: `image-${image.n}`, "aria-label": `Image ${image.n}` },
    picture(image, image.thumbs[0], () => openPicture(image.n), `Enlarge image ${image.n}`),
    el("header", {}, el("span", { class: "sub" }, `#${image.n}`), el("h3", {}, prose("bdi", "", image.image)),
      el("span", { class: `badge is-${image.status}` }, image.status), sourceBadge(image),
      el("span", { class: "sub" }, image.anomalies.length ? plural(image.anomalies.length, "anomaly", "anomalies") : "")),
    el("div", {}, errorList(image, 2), quads(image, data.listed), doubtful(image)),
    el("footer", {}, el("button", { type: "button", class: "link", onclick: () => open(image.n) }, data.of_detector ? "Details" : "Calls and details"),
      !data.of_detector && usage(image), size && el("span", {}, size)));
}
