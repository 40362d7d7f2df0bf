"use strict";
// What pages with a picture share: how they ask the server, the picture on its stage, and boxes on it.
const uncanny = (() => {
  const one = (query, within = document) => within.querySelector(query);
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const SVG = "http://www.w3.org/2000/svg";
  const base = document.body.dataset.base;

  // Bodies are JSON: a form of another site cannot send that.
  htmx.defineExtension("json", {
    onEvent(name, event) {
      if (name === "htmx:configRequest" && event.detail.verb !== "get")
        event.detail.headers["Content-Type"] = "application/json";
    },
    encodeParameters: (request, parameters) => parameters.get("body"),
  });

  const AWAY = "The server does not answer. Is it still running?";
  // Always an answer, with words: also where none comes.
  const post = (path, body) => fetch(base + path, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body),
  }).catch(() => ({ok: false, text: async () => AWAY}));

  // Where the page asks who is there it does nothing else.
  const asksName = path => {
    const who = one("#who");
    who?.addEventListener("submit", async event => {
      event.preventDefault();
      const answer = await post(path, {name: who.elements.name.value});
      if (answer.ok) location.reload(); else one(".wrong", who).textContent = await answer.text();
    });
    return Boolean(who);
  };
  const rename = async (path, question) => {
    const name = prompt(question);
    if (!name || !name.trim()) return;
    const answer = await post(path, {name});
    if (answer.ok) location.assign(`${base}/`); else say(await answer.text());
  };

  function say(text) {
    const message = one("#message");
    message.textContent = text;
    message.hidden = !text;
  }

  // One step at a time, so that no key is about something that nobody has seen.
  let busy = false;
  // The status of the answer, 0 where none came; false while another question is out.
  async function ask(verb, path, values) {
    if (busy) return false;
    busy = true;
    say("");
    document.body.classList.add("busy");
    let status = 0;
    document.body.addEventListener("htmx:afterRequest", event => { status = event.detail.xhr.status; }, {once: true});
    try {
      // Forms know only text: what is sent goes through htmx in one piece.
      const sent = verb === "GET" ? values : {body: JSON.stringify(values)};
      await htmx.ajax(verb, base + path, {source: document.body, target: "#panel", swap: "outerHTML", values: sent});
    } finally {
      busy = false;
      document.body.classList.remove("busy");
    }
    return status;
  }

  // The interface of the service answers in JSON, the page's own application in plain words.
  function wordsOf(text) {
    try { return JSON.parse(text)?.error?.message ?? text; } catch { return text; }
  }

  // `present` is called with each new panel; `refused` may take what the server says in place of the line.
  function listen(present, refused = () => false) {
    document.body.addEventListener("htmx:afterSwap", event => {
      if (event.detail.target.id !== "panel") return;
      present();
      one("#name", one("#panel"))?.focus({preventScroll: true});
      if (innerWidth < 760) scrollTo(0, 0);
    });
    document.body.addEventListener("htmx:responseError", event => {
      const text = wordsOf(event.detail.xhr.responseText).slice(0, 400);
      if (!refused(text)) say(`Not kept: ${text}`);
    });
    for (const name of ["htmx:sendError", "htmx:timeout"])
      document.body.addEventListener(name, () => {
        if (!refused(AWAY)) say(`Not kept: ${AWAY}`);
      });
  }

  // Single keys. `held` has the keys first, as while boxes are drawn; it says whether it took one.
  function keys(table, held = () => false) {
    const keysOn = one("#keys-on");
    if (keysOn) {
      keysOn.checked = localStorage.getItem("uncanny-keys") !== "off";
      keysOn.addEventListener("change", () => localStorage.setItem("uncanny-keys", keysOn.checked ? "on" : "off"));
    }
    document.addEventListener("keydown", event => {
      if (one("dialog[open]") || event.altKey || held(event)) return;
      if (event.ctrlKey || event.metaKey || event.repeat || keysOn?.checked === false) return;
      if (event.target.closest("input, textarea, select")) return;
      const step = table()[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      // Enter on a button presses it.
      if (!step || (event.key === "Enter" && event.target.closest("button, a, summary"))) return;
      event.preventDefault();
      if (!busy) step();
    }, true);
  }

  // Seconds from `start`, without those in which the page was not to be seen.
  function clock() {
    let spent = 0, since = null, running = false;
    const pause = () => { if (since !== null) spent += performance.now() - since; since = null; };
    const go = () => { if (running && since === null && !document.hidden) since = performance.now(); };
    document.addEventListener("visibilitychange", () => document.hidden ? pause() : go());
    return {
      start() { running = true; go(); },
      reset() { spent = 0; since = null; running = false; },
      seconds() { return Math.round(spent + (since === null ? 0 : performance.now() - since)) / 1000; },
    };
  }

  // Loaded and decoded, so that it can be put on the page within a frame.
  function load(url) {
    const image = new Image();
    image.src = url;
    const ready = image.decode();
    ready.catch(() => {});
    return {url, image, ready};
  }

  function rect(box, kind) {
    const shape = document.createElementNS(SVG, "rect");
    const [x0, y0, x1, y1] = box;
    for (const [name, value] of Object.entries({x: x0, y: y0, width: x1 - x0, height: y1 - y0, class: kind}))
      shape.setAttribute(name, value);
    return shape;
  }

  // The picture, as large as there is room or in full size. `draw` puts shapes on it, in pixels of its file;
  // `shown` is called when it can be seen.
  class Stage {
    constructor({draw = () => {}, shown = () => {}, gone = "The picture cannot be shown."}) {
      Object.assign(this, {draw, shown, gone});
      this.view = one("#view");
      this.frame = one("#frame");
      this.drawing = one("svg", this.frame);
      this.problem = one("#picture-problem");
      this.picture = one("img", this.frame);
      this.content = null;
      this.zoomed = false;
      this.url = "";
      this.ahead = null;
      new ResizeObserver(() => this.fit()).observe(this.view);
    }

    // Boxes count in pixels of the file, the picture on the page may be a smaller copy.
    get size() {
      return {width: this.content?.width || this.picture.naturalWidth, height: this.content?.height || this.picture.naturalHeight};
    }
    get wanted() { return this.zoomed ? this.content.image : this.content.preview; }

    // `content`: image and preview are addresses, next that of the preview after this one; width, height, alt,
    // and `box`, what is to be seen at full size.
    present(content) {
      this.content = content;
      one("#stage").classList.toggle("empty", !content);
      for (const tool of all("#tools button")) tool.disabled = !content;
      if (!content) { this.url = ""; this.picture.removeAttribute("src"); this.redraw(); return; }
      this.picture.alt = content.alt;
      this.fit();
      this.redraw();
      if (this.wanted === this.url) { this.toBox(); this.seen(); }
      else this.load();
    }

    redraw() {
      this.drawing.replaceChildren();
      if (!this.content) return;
      const {width, height} = this.size;
      this.drawing.setAttribute("viewBox", `0 0 ${width || 1} ${height || 1}`);
      this.drawing.setAttribute("preserveAspectRatio", "none");
      this.draw(this.drawing, this.content);
    }

    fit() {
      if (!this.content) return;
      const {view, zoomed} = this, {width, height} = this.size;
      if (!width || !height) return;
      const room = Math.min(view.clientWidth / width, view.clientHeight / height);
      // Small pictures are enlarged somewhat, so that a person sees what is meant.
      const scale = zoomed ? Math.max(1, room) : Math.min(room, Math.max(1, Math.min(3, 640 / Math.max(width, height))));
      const [w, h] = [Math.max(1, Math.floor(width * scale)), Math.max(1, Math.floor(height * scale))];
      this.frame.style.width = `${w}px`;
      this.frame.style.height = `${h}px`;
      view.classList.toggle("zoomed", zoomed && (w > view.clientWidth || h > view.clientHeight));
    }

    toBox() {
      const box = this.content?.box;
      if (!box || !this.zoomed) return;
      const scale = this.frame.clientWidth / this.size.width, [x0, y0, x1, y1] = box;
      this.view.scrollTo((x0 + x1) / 2 * scale - this.view.clientWidth / 2, (y0 + y1) / 2 * scale - this.view.clientHeight / 2);
    }

    async load() {
      const {wanted} = this;
      if (wanted === this.url) return;
      this.url = wanted;
      this.problem.hidden = true;
      // The old picture under the new boxes would be judged.
      this.frame.classList.add("loading");
      const loading = this.ahead?.url === wanted ? this.ahead : load(wanted);
      let text = "";
      try {
        await loading.ready;
      } catch {
        text = this.gone;
      }
      if (this.url !== wanted) return;
      this.problem.textContent = text;
      this.problem.hidden = !text;
      const image = text ? new Image() : loading.image;
      image.alt = this.content.alt;
      this.picture.replaceWith(image);
      this.picture = image;
      this.frame.classList.toggle("loading", Boolean(text));
      this.fit();
      this.redraw();
      this.toBox();
      this.seen();
    }

    // For whoever waits for it, and to measure.
    seen() {
      document.body.dataset.shown = this.content.key;
      performance.mark("shown");
      this.shown();
      const {next} = this.content;
      if (next && this.ahead?.url !== next) this.ahead = load(next);
    }

    zoom() {
      this.zoomed = !this.zoomed;
      one("[data-tool=zoom]").setAttribute("aria-pressed", this.zoomed);
      if (!this.content) return;
      this.fit();
      this.load();
      this.redraw();
      this.toBox();
    }
  }

  // Boxes under the hand, with Annotorious, which is loaded when it is first needed

  let annotorious = null;
  function loadAnnotorious() {
    const style = Object.assign(document.createElement("link"), {rel: "stylesheet", href: document.body.dataset.annotoriousStyle});
    const script = Object.assign(document.createElement("script"), {src: document.body.dataset.annotorious});
    const loaded = element => new Promise((done, failed) => {
      element.onload = done;
      element.onerror = () => failed(new Error(AWAY));
    });
    if (!annotorious) {
      annotorious = Promise.all([loaded(style), loaded(script)]);
      // Whoever needs it next tries again.
      annotorious.catch(() => { annotorious = null; });
      // Before our own styles, which have the last word.
      one("link[rel=stylesheet]").before(style);
      document.head.append(script);
    }
    return annotorious;
  }
  // It is wanted soon, but not before the picture is there.
  const loadAnnotoriousSoon = () => (window.requestIdleCallback ?? setTimeout)(() => loadAnnotorious().catch(() => {}));

  // Of one box, a new one takes the place of the old; of `many`, each stays until it is removed.
  class BoxEditor {
    // Null, and said, where it cannot be loaded; null also where another picture has come meanwhile.
    static async open(stage, boxes, {many = false} = {}) {
      const {content} = stage;
      try {
        await loadAnnotorious();
      } catch (error) {
        say(error.message);
        return null;
      }
      return stage.content === content ? new BoxEditor(stage, boxes, many) : null;
    }

    constructor(stage, boxes, many) {
      // `changed` is called when a box was drawn or moved by hand.
      Object.assign(this, {stage, many, boxes: new Map(), current: null, made: 0, changed: () => {}});
      this.tool = Annotorious.createImageAnnotator(stage.picture, {
        adapter: Annotorious.W3CImageFormat("picture"), autoSave: true, drawingEnabled: true, theme: "light",
      });
      // A drag beside the chosen box draws at once; Annotorious would take the first one to let go of it.
      this.tool.element.addEventListener("pointerdown", event => {
        if (!event.target.closest(".a9s-annotation")) this.tool.setSelected();
      }, true);
      this.named = new MutationObserver(() => this.name());
      this.named.observe(this.tool.element, {childList: true, subtree: true});
      this.tool.on("createAnnotation", drawn => { this.keep(asBox(drawn, stage), drawn.id); this.changed(); });
      this.tool.on("updateAnnotation", moved => this.boxes.set(moved.id, asBox(moved, stage) ?? this.boxes.get(moved.id)));
      this.tool.on("selectionChanged", chosen => { if (chosen.length) this.current = chosen[0].id; });
      for (const box of boxes) this.put(box, `box-${++this.made}`);
      document.body.classList.add("boxing");
      this.name();
    }

    name() {
      for (const handle of all("[role=button]:not([aria-label])", this.tool.element)) handle.setAttribute("aria-label", "handle of the box");
      one(".a9s-annotationlayer", this.tool.element)?.setAttribute("aria-label", this.many ? "Draw boxes here" : "Draw the box here");
    }

    keep(box, id) {
      if (!box) { this.tool.removeAnnotation(id); return; }
      if (!this.many) for (const each of [...this.boxes.keys()]) if (each !== id) this.drop(each);
      this.boxes.set(id, box);
      this.current = id;
      // While one is under the hand, the next drag would only let go of it.
      if (this.many) this.tool.cancelSelected(); else this.tool.setSelected(id, true);
    }

    put(box, id) {
      if (this.boxes.has(id)) this.tool.removeAnnotation(id);
      this.boxes.set(id, box);
      this.current = id;
      this.tool.addAnnotation(asAnnotation(box, id, this.stage));
      this.tool.setSelected(id, true);
    }

    drop(id) {
      this.boxes.delete(id);
      this.tool.removeAnnotation(id);
    }

    read() {
      for (const each of this.tool.getAnnotations()) {
        const box = asBox(each, this.stage);
        if (!box) continue;
        // Annotorious reports a new box a moment after it is drawn; a fast key comes first.
        if (this.boxes.has(each.id)) this.boxes.set(each.id, box); else this.keep(box, each.id);
      }
      return [...this.boxes.values()];
    }

    // Another box, in the middle of the picture.
    add() {
      const {width, height} = this.stage.size;
      if (!this.many) for (const each of [...this.boxes.keys()]) this.drop(each);
      this.put([width * .375, height * .375, width * .625, height * .625].map(Math.round), `box-${++this.made}`);
    }

    remove() {
      if (!this.boxes.has(this.current)) return;
      this.drop(this.current);
      this.current = null;
      this.step();
    }

    // The next box is the one that keys move.
    step() {
      const ids = [...this.boxes.keys()];
      if (!ids.length) return;
      this.current = ids[(ids.indexOf(this.current) + 1) % ids.length];
      this.tool.setSelected(this.current, true);
    }

    // An arrow key moves the current box, with Shift its lower right corner.
    nudge(key, sizes) {
      this.read();
      const old = this.boxes.get(this.current);
      if (!old) { this.add(); return; }
      const {width, height} = this.stage.size, by = Math.max(1, Math.round(Math.max(width, height) / 100));
      const [dx, dy] = {ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by]}[key];
      let [x0, y0, x1, y1] = old;
      if (sizes) {
        x1 = Math.max(x0 + 1, Math.min(width, x1 + dx));
        y1 = Math.max(y0 + 1, Math.min(height, y1 + dy));
      } else {
        const [mx, my] = [Math.max(-x0, Math.min(width - x1, dx)), Math.max(-y0, Math.min(height - y1, dy))];
        [x0, y0, x1, y1] = [x0 + mx, y0 + my, x1 + mx, y1 + my];
      }
      this.put([x0, y0, x1, y1], this.current);
    }

    close() {
      this.named.disconnect();
      this.tool.destroy();
      document.body.classList.remove("boxing");
    }
  }

  const scales = stage => [stage.picture.naturalWidth / stage.size.width, stage.picture.naturalHeight / stage.size.height];

  function asAnnotation(box, id, stage) {
    const [x0, y0, x1, y1] = box, [sx, sy] = scales(stage);
    const [x, y, w, h] = [x0 * sx, y0 * sy, (x1 - x0) * sx, (y1 - y0) * sy];
    return {
      "@context": "http://www.w3.org/ns/anno.jsonld", id, type: "Annotation", body: [],
      target: {source: "picture", selector: {type: "FragmentSelector",
        conformsTo: "http://www.w3.org/TR/media-frags/", value: `xywh=pixel:${x},${y},${w},${h}`}},
    };
  }

  function asBox(annotation, stage) {
    const found = /^xywh=pixel:([^,]+),([^,]+),([^,]+),([^,]+)$/.exec(annotation?.target?.selector?.value ?? "");
    if (!found) return null;  // rotated ones come as SVG
    const [x, y, w, h] = found.slice(1).map(Number), {width, height} = stage.size, [sx, sy] = scales(stage);
    const within = (value, most) => Math.max(0, Math.min(most, Math.round(value)));
    const box = [within(x / sx, width), within(y / sy, height), within((x + w) / sx, width), within((y + h) / sy, height)];
    return box[0] < box[2] && box[1] < box[3] ? box : null;
  }

  return {one, all, SVG, base, post, asksName, rename, say, ask, listen, keys, rect, clock, Stage, BoxEditor, loadAnnotoriousSoon,
    isBusy: () => busy};
})();
