function picture(image, source, onclick, label) {
  if (!source) {
    const why = image.status === "unreadable" ? "unreadable image" : "picture not found when this page was made";
    return el("div", { class: "shot" }, el("div", { class: "blank" }, why));
  }
  const shot = el("img", { src: source, alt: image.image, decoding: "async", width: image.width, height: image.height });
  shot.style.height = "auto";
  const boxes = image.anomalies.map((anomaly) => anomaly.box).filter(Boolean);
  const drawn = image.width && boxes.length ? svg("svg", { class: "marks", viewBox: `0 0 ${image.width} ${image.height}`, "aria-hidden": "true" }, boxes.map(outline)) : null;
  return el("button", { type: "button", class: "shot", "aria-label": label, onclick }, shot, drawn);
}

function outline([x, y, right, bottom]) {
  const size = { x, y, width: right - x, height: bottom - y };
  return svg("g", {}, svg("rect", { ...size, class: "edge" }), svg("rect", { ...size, class: "line" }));
}

// Where an anomaly is: its own box, else one around the objects it names.
function boxAround(image, anomaly) {
  if (anomaly.box) return anomaly.box;
  const boxes = image.objects.filter((object) => object.box && anomaly.objects.includes(object.name)).map((object) => object.box);
  if (!boxes.length) return null;
  const side = (i, end) => end(...boxes.map((box) => box[i]));
  return [side(0, Math.min), side(1, Math.min), side(2, Math.max), side(3, Math.max)];
}

// The part of the picture that an anomaly is about, enlarged, 4 : 3.
function part(image, anomaly) {
  const box = boxAround(image, anomaly), copy = views[image.n - 1].layers[0].copy;
  const source = copy ? (image.large ??= readJson(copy)) : image.thumb;
  if (!box || !source || !image.width || !image.height) return null;
  const [x, y, right, bottom] = box;
  const least = Math.max((right - x) * 1.4, (bottom - y) * 1.4 * 4 / 3, image.width / 5);
  const width = Math.min(least, image.width), height = Math.min(least * 3 / 4, image.height);
  const within = (middle, size, whole) => Math.max(0, Math.min(middle - size / 2, whole - size));
  const at = [within((x + right) / 2, width, image.width), within((y + bottom) / 2, height, image.height)];
  const shown = svg("svg", { viewBox: [...at, width, height].join(" "), "aria-hidden": "true" },
    svg("image", { href: source, width: image.width, height: image.height, preserveAspectRatio: "none" }), anomaly.box && outline(box));
  return el("button", { type: "button", class: "part marks", "aria-label": `Enlarge: ${anomaly.name}`, onclick: () => openPicture(image.n) }, shown);
}

function severity(value, confidence) {
  const scale = svg("svg", { "aria-hidden": "true" },
    svg("line", { x1: "2", x2: "100%", y1: 5, y2: 5 }),
    svg("circle", { cx: `${4 + value * 0.92}%`, cy: 5, r: 4 }));
  return el("div", { class: `sev ${shade(value)}`, title: "0 is completely unreal, 100 fully realistic" },
    el("small", {}, "realism "), String(value), el("small", {}, " of 100"), scale,
    typeof confidence === "number" && el("small", { title: "How sure the model is that this is there and is a fault" }, `${Math.floor(100 * confidence + 1e-9)} % sure`));
}

const LISTED = 4;

function quad(image, anomaly) {
  const names = [...anomaly.objects.map((name) => prose("span", "", name)), anomaly.kind && el("span", { class: "kind" }, anomaly.kind)];
  const tags = names.some(Boolean) ? el("p", { class: "tags" }, names.filter(Boolean)) : null;
  return el("li", { class: "quad" }, part(image, anomaly),
    el("div", {}, prose("p", "name", anomaly.name), severity(anomaly.severity, anomaly.confidence), tags,
      prose("p", "", anomaly.phenomenon), prose("p", "why", anomaly.reasoning)));
}

const quadList = (image, some) => el("ul", { class: "quads" }, some.map((anomaly) => quad(image, anomaly)));
const worstFirst = (anomalies) => [...anomalies].sort((a, b) => a.severity - b.severity);

// What the model is not sure of, behind a click; made when it is opened.
function doubtful(image) {
  if (!image.doubtful) return null;
  const more = image.anomalies.length ? "more " : "";
  const rest = el("details", { class: "rest" }, el("summary", {}, `${count(image.doubtful.length)} ${more}below confidence ${data.least}`));
  rest.addEventListener("toggle", () => rest.append(quadList(image, worstFirst(image.doubtful))), { once: true });
  return rest;
}

function quads(image, most = Infinity) {
  if (image.anomalies.length) {
    const found = worstFirst(image.anomalies);
    if (found.length <= most + 1) return quadList(image, found);
    return el("div", {}, quadList(image, found.slice(0, most)),
      el("details", { class: "rest" }, el("summary", {}, `${count(found.length - most)} more anomalies`), quadList(image, found.slice(most))));
  }
  const { verdict, source, description } = image.extra;
  if (typeof description === "string") return prose("p", "", description);
  if (typeof verdict === "string" && !source) return el("p", { class: "empty" }, "Asked whether it is generated, the model said: ", prose("bdi", "", verdict.trim() || "nothing"));
  if (image.doubtful) return null;
  const word = { ok: "No anomalies found.", partial: "No anomalies from the steps that worked." }[image.status];
  return el("p", { class: "empty" }, word || "Not judged.");
}

// All that agents found, with what became of it: nothing is left out unseen.
function candidates(image) {
  const found = image.extra.candidates;
  if (!Array.isArray(found) || !found.length) return [];
  const fates = found.reduce((sum, one) => ({ ...sum, [one.fate]: (sum[one.fate] || 0) + 1 }), {});
  const counts = Object.entries(fates).map(([fate, number]) => `${number} ${fate}`).join(", ");
  return [el("h3", {}, "Findings"), el("p", { class: "sub" }, `${plural(found.length, "finding")}: ${counts}`),
    el("ol", { class: "plain" }, found.map((one) => el("li", { value: one.number }, el("b", {}, String(one.fate)), " ",
      prose("span", "", String(one.phenomenon)), " ", prose("span", "sub", [one.found_by, one.why].filter(Boolean).join(": ")))))];
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
    picture(image, image.thumb, () => openPicture(image.n), `Enlarge image ${image.n}`),
    el("header", {}, el("span", { class: "sub" }, `#${image.n}`), el("h3", {}, prose("bdi", "", image.image)),
      el("span", { class: `badge is-${image.status}` }, image.status), sourceBadge(image),
      el("span", { class: "sub" }, image.anomalies.length ? plural(image.anomalies.length, "anomaly", "anomalies") : "")),
    el("div", {}, errorList(image, 2), quads(image, LISTED), doubtful(image)),
    el("footer", {}, el("button", { type: "button", class: "link", onclick: () => open(image.n) }, "Calls and details"),
      usage(image), size && el("span", {}, size)));
}
