"use strict";
// Writing items: what the form holds is checked by the server at every stroke, and saved when it is wanted.
(() => {
  const {one, all, base, post, say, rect, SVG} = uncanny;
  const go = address => location.assign(`${base}/${address}`);
  one("#items").addEventListener("change", event => go(`?at=${event.target.value}`));
  const help = () => one("#help").showModal();
  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button?.dataset.go) go(`?at=${button.dataset.go}`);
    else if (button?.dataset.page) go(button.dataset.page);
    else if (button?.id === "open-help") help();
  });

  const form = one("#item");
  if (!form) return;
  const LETTERS = ["A", "B", "C", "D"];
  const start = JSON.parse(form.dataset.fields);
  const boxes = Object.fromEntries(LETTERS.map(letter => [letter, start.q3[letter]]));
  let key = form.dataset.key || null, changed = false, drawing = null;

  // The form, filled and read

  for (const name of ["id", "split", "pair_id", "artifact_type", "image"]) form.elements[name].value = start[name];
  if (!form.elements.split.value) form.elements.split.selectedIndex = 0;
  form.elements.q1.value = start.q1;
  form.elements.draft.checked = start.draft;
  for (const question of ["q2", "q3", "q4"]) {
    form.elements[`${question}.answer`].value = start[question].answer;
    if (question !== "q3") for (const letter of LETTERS) form.elements[`${question}.${letter}`].value = start[question][letter];
  }

  function fields() {
    const value = name => form.elements[name].value.trim();
    const texts = question => ({...Object.fromEntries(LETTERS.map(letter => [letter, value(`${question}.${letter}`)])), answer: form.elements[`${question}.answer`].value});
    return {
      id: value("id"), image: form.elements.image.value, split: value("split"), pair_id: value("pair_id"),
      artifact_type: form.elements.artifact_type.value, q1: form.elements.q1.value,
      q2: texts("q2"), q3: {...boxes, answer: form.elements["q3.answer"].value}, q4: texts("q4"),
      draft: form.elements.draft.checked,
    };
  }

  const grow = area => { area.style.height = "auto"; area.style.height = `${area.scrollHeight + 2}px`; };
  function show() {
    for (const letter of LETTERS) {
      one(`#box-${letter}`).textContent = boxes[letter] ? boxes[letter].join(", ") : "no box";
      const button = one(`[data-box="${letter}"]`);
      button.textContent = boxes[letter] ? "Move" : "Draw";
      button.setAttribute("aria-label", `${boxes[letter] ? "Move" : "Draw"} box ${letter}`);
    }
    for (const area of all("textarea", form)) grow(area);
    stage.redraw();
  }

  // Checks, at every stroke

  let waiting = null, asked = 0;
  async function check() {
    const mine = ++asked, answer = await post("/check", {key, fields: fields()});
    if (mine !== asked) return;
    if (answer.ok) showProblems((await answer.json()).problems);
    else say(await answer.text());
  }
  function showProblems(problems) {
    const list = one("#problems");
    list.replaceChildren(...problems.map(problem => {
      const line = document.createElement("li");
      line.className = problem.severity;
      const field = document.createElement("b");
      field.textContent = problem.field ?? "";
      line.append(field, ` ${problem.message}`);
      return line;
    }));
    if (!problems.length) { const line = document.createElement("li"); line.textContent = "Nothing is wrong."; list.append(line); }
    const wrong = problems.filter(problem => problem.severity === "error").map(problem => problem.field ?? "");
    const marks = name => wrong.some(field => field === name || field.startsWith(`${name}.`));
    for (const name of ["id", "split", "pair_id", "artifact_type", "image"]) form.elements[name].setAttribute("aria-invalid", marks(name));
    for (const question of ["q2", "q4"]) for (const letter of LETTERS) {
      const area = form.elements[`${question}.${letter}`], missing = wrong.includes(`${question}.options`) && !area.value.trim();
      area.setAttribute("aria-invalid", missing || marks(`${question}.options.${letter}`));
    }
    for (const group of all("fieldset", form)) group.classList.toggle("faulty", marks(group.dataset.question));
  }
  function touched() {
    changed = true;
    one("#unsaved").textContent = "Not saved yet.";
    clearTimeout(waiting);
    waiting = setTimeout(check, 250);
  }
  form.addEventListener("input", event => { if (event.target.matches("textarea")) grow(event.target); touched(); });
  form.elements.image.addEventListener("change", () => present());
  addEventListener("beforeunload", event => { if (changed) event.preventDefault(); });

  async function save() {
    clearTimeout(waiting);
    asked++;
    const answer = await post("/save", {key, fields: fields()});
    if (!answer.ok) { say(`Not saved: ${await answer.text()}`); return; }
    const saved = await answer.json();
    changed = false;
    if (!key) { location.replace(`${base}/?at=${saved.key}`); return; }
    key = saved.key;
    history.replaceState(null, "", `${base}/?at=${key}`);
    const option = one("#items").selectedOptions[0], errors = saved.problems.filter(problem => problem.severity === "error").length;
    option.value = key;
    option.textContent = form.elements.id.value + (errors ? ` ✗ ${errors}` : "");
    one("#partner")?.setAttribute("data-page", `?partner=${key}`);
    one("#unsaved").textContent = "Saved.";
    showProblems(saved.problems);
  }
  form.addEventListener("submit", event => { event.preventDefault(); save(); });
  one("#remove")?.addEventListener("click", async () => {
    if (!confirm("Delete this item from the file?")) return;
    const answer = await post("/remove", {key});
    if (answer.ok) { changed = false; go(""); } else say(await answer.text());
  });

  // The picture with its boxes

  const stage = new uncanny.Stage({
    gone: "The picture cannot be shown.",
    draw: (svg, content) => {
      const scale = (content.width || 1000) / 1000;
      for (const letter of LETTERS) if (boxes[letter] && drawing?.letter !== letter) {
        const text = document.createElementNS(SVG, "text");
        text.textContent = letter;
        text.setAttribute("class", `letter ${letter}`);
        text.setAttribute("x", boxes[letter][0] + 8 * scale);
        text.setAttribute("y", boxes[letter][1] + 34 * scale);
        text.setAttribute("font-size", 34 * scale);
        svg.append(rect(boxes[letter], "edge"), rect(boxes[letter], `lettered ${letter}`), text);
      }
    },
  });
  async function present() {
    const image = form.elements.image.value, query = `image=${encodeURIComponent(image)}&v=${form.dataset.tag}`;
    if (!image) { stage.present(null); return; }
    const size = await fetch(`${base}/size?${query}`).then(answer => answer.json()).catch(() => null);
    if (form.elements.image.value !== image) return;  // another one was chosen meanwhile
    stage.present({key: image, image: `${base}/image?${query}`, preview: `${base}/preview?${query}`, next: null,
      width: size?.width, height: size?.height, alt: image, box: null});
  }

  async function draw(letter) {
    if (drawing || !stage.content || !stage.picture.naturalWidth) return;
    drawing = {letter, editor: null};
    drawing.editor = await uncanny.BoxEditor.open(stage, boxes[letter] ? [boxes[letter]] : []);
    if (!drawing.editor) { drawing = null; return; }
    one("#box-hint").textContent = `Box ${letter}: drag on the picture.`;
    one("[data-tool=box-remove]").hidden = !boxes[letter];
    one("#tools").hidden = true;
    one("#box-tools").hidden = false;
    stage.redraw();
    one("[data-tool=box-keep]").focus({preventScroll: true});
  }
  function end() {
    const {letter, editor} = drawing;
    editor.close();
    drawing = null;
    one("#tools").hidden = false;
    one("#box-tools").hidden = true;
    show();
    one(`[data-box="${letter}"]`).focus({preventScroll: true});
  }
  function keep() {
    const [box] = drawing.editor.read();
    if (!box) { say("There is no box yet: drag on the picture, or press an arrow key."); return; }
    say("");
    boxes[drawing.letter] = box;
    end();
    touched();
  }
  function remove() {
    boxes[drawing.letter] = null;
    end();
    touched();
  }
  const TOOLS = {zoom: () => stage.zoom(), "box-keep": keep, "box-remove": remove, "box-cancel": end};
  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button?.dataset.box) draw(button.dataset.box);
    else if (button?.dataset.tool === "zoom" || (button?.dataset.tool && drawing?.editor)) TOOLS[button.dataset.tool]();
  });
  document.addEventListener("keydown", event => {
    if (one("dialog[open]")) return;
    if (drawing?.editor) {
      if (event.key.startsWith("Arrow")) { event.preventDefault(); event.stopPropagation(); drawing.editor.nudge(event.key, event.shiftKey); }
      else if (event.key === "Escape") { event.preventDefault(); end(); }
      else if (event.key === "Delete") { event.preventDefault(); remove(); }
      else if (event.key === "Enter" && !event.target.closest("#box-tools button")) { event.preventDefault(); keep(); }
      else if (event.ctrlKey || event.metaKey) { event.preventDefault(); event.stopPropagation(); }
      return;
    }
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") { event.preventDefault(); save(); }
    else if (event.key === "F1") { event.preventDefault(); help(); }
    else if (event.altKey && LETTERS.includes(event.key.toUpperCase())) { event.preventDefault(); draw(event.key.toUpperCase()); }
    else if (event.altKey && event.key === "ArrowUp") { event.preventDefault(); one("#previous").click(); }
    else if (event.altKey && event.key === "ArrowDown") { event.preventDefault(); one("#next").click(); }
  }, true);

  show();
  present();
  check();
  uncanny.loadAnnotoriousSoon();
})();
