const FLOW = ["ObjectPerceiver", "AttributeAnalyzer", "RelationReasoner", "AnomalyIntegrator", "AnomalyFormatter"];
const LANE_ROW = 12;
const LABEL = { answered: "answered", unparseable: "unparseable", refused: "refused", error: "infrastructure error" };
const title = (call) => `${call.agent} ${call.step}${call.object ? ` · ${call.object}` : ""}`;
const shown = (call) => (call.replayed ? `${LABEL[call.outcome] || call.outcome}, replayed` : LABEL[call.outcome] || call.outcome);

// Calls that overlap stand in rows below each other, first free row first.
function rows(calls) {
  const ends = [];
  return calls.map((call) => {
    let row = ends.findIndex((end) => end <= call.at);
    if (row < 0) row = ends.length;
    ends[row] = call.at + Math.max(call.latency_s || 0, 0.001);
    return row;
  });
}

function bar(call, row, scale, colour, choose) {
  const x = call.at * scale, width = Math.max((call.latency_s || 0) * scale, 0.25);
  const lost = call.outcome !== "answered";
  const y = row * LANE_ROW + 2;
  const box = svg("rect", { x: `${x}%`, y, width: `${width}%`, height: LANE_ROW - 3, rx: 1.5,
    class: `${colour}${lost ? " lost" : ""}${call.replayed ? " again" : ""}`, onclick: () => choose(call) },
    svg("title", {}, `${title(call)}: ${shown(call)}, ${seconds(call.latency_s)}`));
  return lost ? [box, svg("text", { class: "cross", x: `${x}%`, y: y + 9, "aria-hidden": "true" }, "×")] : [box];
}

// Round times for the axis, the last one well before its end.
function marks(whole) {
  const rough = whole / 6, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const places = Array.from({ length: 7 }, (_, i) => Number((i * step).toPrecision(3)));
  return places.filter((at) => at <= whole * 0.97);
}

function lanes(detail, agents, choose) {
  const timed = detail.calls.filter((call) => call.at !== null);
  if (!timed.length || !detail.span) return el("p", { class: "empty" }, "The calls carry no start times: no chart.");
  const scale = 100 / detail.span;
  const pauses = (height) => detail.breaks.map((pause) =>
    svg("line", { class: "pause", x1: `${pause.at * scale}%`, x2: `${pause.at * scale}%`, y1: 0, y2: height }));
  const list = agents.map((agent, index) => {
    const own = timed.filter((call) => call.agent === agent);
    const places = rows(own), height = (Math.max(0, ...places) + 1) * LANE_ROW + 2;
    return el("div", { class: "lane" }, el("span", {}, prose("bdi", "", agent || "unknown")),
      svg("svg", { height, role: "img", "aria-label": `${agent}: ${plural(own.length, "call")}` }, pauses(height),
        own.flatMap((call, i) => bar(call, places[i], scale, `ag${Math.min(index, 5)}`, choose))));
  });
  const ticks = marks(detail.span).map((at) => svg("text", { x: `${at * scale}%`, y: 12, class: at === 0 ? "first" : "" }, `${at} s`));
  list.push(el("div", { class: "lane axis" }, el("span", {}, ""), svg("svg", { height: 16, "aria-hidden": "true" }, ticks)));
  const notes = detail.breaks.map((pause) => `${span(pause.seconds)} without calls are left out at ${seconds(pause.at)} (dashed line).`);
  if (timed.some((call) => call.outcome !== "answered")) notes.push("× and an outline: not answered.");
  if (timed.some((call) => call.replayed)) notes.push("Pale: replayed from the answer cache.");
  return el("div", { class: "lanes" }, list, notes.length ? el("p", { class: "sub" }, notes.join(" ")) : null);
}

function callBody(call) {
  const block = (heading, value) => {
    if (value === null || value === undefined || value === "") {
      const why = call.kept ? "(empty)" : `Left out to bound the size of this page: calls.jsonl, line ${call.line}.`;
      return [el("h4", {}, heading), el("p", { class: "empty" }, why)];
    }
    return [el("h4", {}, heading), prose("pre", "", value)];
  };
  const facts = { outcome: shown(call), detail: call.detail, model: call.model,
    "served as": call.served_model, "request": call.request_id, prompt: call.prompt,
    attempt: call.attempt, repair: call.repair || null, latency: seconds(call.latency_s),
    tokens: tokens(call, "not reported"), cost: money(call.cost_usd), line: `calls.jsonl:${call.line}` };
  return el("div", { class: "body" },
    el("dl", { class: "facts" }, Object.entries(facts).filter(([, value]) => value !== null && value !== undefined)
      .map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", { dir: "auto" }, String(value))))),
    block(call.sees_image ? "Asked, after the image and the system text" : "Asked, after the system text, without the image", call.asked),
    block("Answer", call.answer));
}

function callRow(call, agents) {
  const again = [call.attempt > 1 && `attempt ${call.attempt}`, call.repair > 0 && `repair ${call.repair}`, call.sample > 0 && `sample ${call.sample + 1}`];
  const row = el("details", { class: "call" }, el("summary", {},
    el("span", { class: `dot ag${Math.min(agents.indexOf(call.agent), 5)}` }),
    el("span", {}, el("b", {}, `${call.agent} ${call.step}`), " ", prose("bdi", "", call.object || ""),
      el("span", { class: "sub" }, again.filter(Boolean).map((words) => ` · ${words}`).join(""))),
    el("span", { class: `out-${call.outcome}` }, shown(call)),
    el("span", { class: "num sub extra" }, tokens(call)),
    el("span", { class: "num sub extra" }, money(call.cost_usd)),
    el("span", { class: "num extra" }, seconds(call.latency_s))));
  row.addEventListener("toggle", () => { if (row.open && row.children.length === 1) row.append(callBody(call)); });
  return row;
}

function callSection(detail, present) {
  if (!detail.calls.length) {
    const why = present ? "No call was recorded for this image." : "This run has no calls.jsonl: its calls were not recorded.";
    return el("p", { class: "empty" }, why);
  }
  const others = [...new Set(detail.calls.map((call) => call.agent))].filter((agent) => !FLOW.includes(agent));
  const own = [...FLOW, ...others].filter((agent) => detail.calls.some((call) => call.agent === agent));
  const made = detail.calls.map((call) => callRow(call, own));
  const choose = (call) => {
    const row = made[detail.calls.indexOf(call)];
    row.open = true;
    row.firstChild.focus();
    row.scrollIntoView({ block: "center" });
  };
  return el("div", {}, el("h3", {}, `Calls (${count(made.length)})`), lanes(detail, own, choose), el("div", {}, made));
}
