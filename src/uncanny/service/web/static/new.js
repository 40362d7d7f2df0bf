"use strict";
// A new job: what is filled in is checked as it is filled in, and shown as the command it becomes.
(() => {
  const {one, all, base, say, send, api, keys} = service;
  const form = one("#job"), start = one("#start"), wrong = one("#wrong");
  // A repeated click, or a connection that broke, starts nothing twice.
  const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, "0")).join("");
  const key = newKey();
  let uploading = 0, tried = false;

  const values = () => [...new FormData(form)].filter(([name, value]) => typeof value === "string" && !name.startsWith("-"));

  function show(errors) {
    for (const place of all("[data-wrong]", form)) {
      const name = place.dataset.wrong, text = errors[name] ?? "";
      // Nobody is told that something is missing before they had a chance to give it.
      const shown = tried || text !== "This is needed." ? text : "";
      place.textContent = shown;
      const control = document.getElementById(`f-${name}`)?.matches("input, select, textarea") ? document.getElementById(`f-${name}`) : document.getElementById(`v-${name}`);
      if (control) { if (shown) control.setAttribute("aria-invalid", "true"); else control.removeAttribute("aria-invalid"); }
    }
    wrong.textContent = errors[""] ?? "";
  }

  // What is no number a field keeps to itself: its value is empty, as if nothing stood in it.
  const noNumbers = () => Object.fromEntries(
    all("input[type=number]", form).filter(input => input.validity.badInput).map(input => [input.name, "This is no number. Write it as 10 or 0.5."]));

  let asked = 0;
  async function check() {
    const number = ++asked;
    const answer = await send("POST", form.dataset.check.slice(base.length), {values: values()});
    const errors = {...answer.wrong, ...noNumbers()};
    // An answer that was overtaken says nothing about what stands in the fields now.
    if (number === asked) {
      show(errors);
      one("#command code").textContent = answer.command;
    }
    return Object.keys(errors).length ? null : answer;
  }
  let timer = 0;
  function soon() {
    clearTimeout(timer);
    timer = setTimeout(() => check().catch(error => say(error.message)), 250);
  }
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);

  for (const choice of all("[data-fill]", form)) choice.addEventListener("click", () => {
    const field = document.getElementById(choice.dataset.fill);
    field.value = choice.dataset.value;
    field.focus();
    field.dispatchEvent(new Event("input", {bubbles: true}));
  });

  function toFirstError() {
    const place = all("[data-wrong]", form).find(each => each.textContent);
    if (!place) return;
    const details = place.closest("details");
    if (details) details.open = true;
    const name = place.dataset.wrong;
    const field = document.getElementById(`v-${name}`) ?? document.getElementById(`f-${name}`);
    (field?.matches("fieldset") ? one("input", field) : field)?.focus();
  }

  form.addEventListener("submit", async event => {
    event.preventDefault();
    say("");
    if (uploading) { wrong.textContent = "Wait until everything is uploaded."; return; }
    start.disabled = true;
    tried = true;
    clearTimeout(timer);
    try {
      const sound = await check();
      if (!sound) { toFirstError(); return; }
      const name = form.elements["-name"].value.trim();
      const job = await api("POST", "/jobs", {kind: form.dataset.kind, params: sound.params, ...(name ? {name} : {})}, {"Idempotency-Key": key});
      location.assign(`${base}/jobs/${job.id}`);
    } catch (error) {
      const field = (error.field ?? "").replace(/^params\./, "").split(".")[0];
      if (one(`[data-wrong="${CSS.escape(field)}"]`, form)) { show({[field]: error.message}); toFirstError(); }
      else wrong.textContent = error.message;
    } finally {
      start.disabled = false;
    }
  });
  // A file that is dropped beside its place would be opened instead of the page.
  for (const kind of ["dragover", "drop"]) document.addEventListener(kind, event => event.preventDefault());
  // From wherever the focus is: a button that was pressed and is at work has none.
  document.addEventListener("keydown", event => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || one("dialog[open]")) return;
    event.preventDefault();
    form.requestSubmit(start);
  });
  form.addEventListener("keydown", event => {
    // Enter in a field would start a job that nobody has looked over.
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && event.target.matches("input:not([type=checkbox])")) event.preventDefault();
  });

  // "Images   6, 6 to do": a figure and its name. Other lines are sentences.
  function forecastLine(line) {
    const [, name, figure] = /^(\S+(?: \S+)*) {2,}(.+)$/.exec(line) ?? [];
    const parts = name ? [["b", name], ["span", figure]] : [["p", line.replaceAll("`", "")]];
    return parts.map(([tag, text]) => { const part = document.createElement(tag); part.textContent = text; return part; });
  }

  one("#forecast")?.addEventListener("click", async event => {
    const result = one("#forecast-result");
    event.target.disabled = true;
    tried = true;
    clearTimeout(timer);
    try {
      if (!await check()) { toFirstError(); return; }
      result.textContent = "Counting…";
      const answer = await send("POST", form.dataset.forecast.slice(base.length), {values: values()});
      result.replaceChildren(...answer.text.split("\n").filter(Boolean).flatMap(forecastLine));
    } catch (error) {
      result.textContent = error.message;
    } finally {
      event.target.disabled = false;
    }
  });

  // Choosing what a job works on

  const SHOWN = 12; // thumbnails of one upload

  for (const picker of all("[data-picker]", form)) {
    const name = picker.dataset.picker, many = picker.dataset.widget !== "input", named = picker.dataset.named !== undefined, images = picker.dataset.widget === "images";
    const field = one(`#v-${CSS.escape(name)}`, picker), status = one("[data-uploaded]", picker);
    let set = null;
    const inSet = new Set();

    function take(reference, called) {
      const lines = many ? field.value.split("\n").map(line => line.trim()).filter(Boolean) : [];
      const line = named ? `${nameFor(called, lines)}=${reference}` : reference;
      if (!lines.includes(line)) lines.push(line);
      field.value = lines.join("\n");
      field.dispatchEvent(new Event("input", {bubbles: true}));
    }

    one("[data-result]", picker)?.addEventListener("change", event => {
      if (event.target.value) take(event.target.value, event.target.selectedOptions[0].dataset.name);
      event.target.value = "";
    });

    // Folders of the server
    const browser = one("[data-browser]", picker), browse = one("[data-browse]", picker);
    async function look(path) {
      const answer = await fetch(`${form.dataset.folder}?${new URLSearchParams({path})}`);
      if (!answer.ok) { say(answer.status === 404 ? "There is no such folder here." : `The server answered ${answer.status}.`); return; }
      browser.innerHTML = await answer.text();
      browser.hidden = false;
      one("button", browser)?.focus();
    }
    browse?.addEventListener("click", () => {
      const open = browser.hidden;
      browse.setAttribute("aria-expanded", String(open));
      if (open) look(""); else browser.hidden = true;
    });
    browser?.addEventListener("click", event => {
      const button = event.target.closest("button");
      if (button?.dataset.look !== undefined) look(button.dataset.look);
      else if (button?.dataset.take !== undefined) {
        take(button.dataset.take, button.dataset.take.split("/").filter(Boolean).pop());
        browser.hidden = true;
        browse.setAttribute("aria-expanded", "false");
        browse.focus();
      }
    });

    // Uploads
    const files = one("[data-files]", picker), folders = one("[data-folders]", picker);
    for (const button of all("[data-choose]", picker))
      button.addEventListener("click", () => (button.dataset.choose === "folder" ? folders : files).click());
    for (const input of [files, folders])
      input?.addEventListener("change", () => {
        const chosen = [...input.files].map(file => ({file, name: file.webkitRelativePath || file.name}));
        input.value = "";
        if (images) uploadImages(chosen); else uploadFile(chosen[0]);
      });
    const drop = one("[data-drop]", picker) ?? picker;
    if (drop) {
      for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, event => { event.preventDefault(); drop.classList.add("over"); });
      for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
      drop.addEventListener("drop", async event => {
        event.preventDefault();
        const chosen = await dropped(event.dataTransfer);
        if (images) uploadImages(chosen); else if (chosen.length > 1) say("One file at a time."); else uploadFile(chosen[0]);
      });
    }

    function progress(text, share) {
      status.hidden = false;
      let bar = one("progress", status), line = one("p", status);
      if (!bar) {
        bar = document.createElement("progress");
        bar.max = 1;
        bar.setAttribute("aria-label", "Uploaded");
        line = document.createElement("p");
        line.className = "sub";
        status.replaceChildren(bar, line);
      }
      bar.value = share;
      line.textContent = text;
    }

    function show(sent) {
      if (!sent) return;
      let shown = one(".thumbs", status);
      if (!shown) {
        shown = document.createElement("div");
        shown.className = "thumbs";
        status.append(shown);
      }
      if (shown.childElementCount === SHOWN) return;
      const picture = new Image();
      picture.alt = picture.title = sent.name;
      picture.onload = () => URL.revokeObjectURL(picture.src);
      picture.onerror = () => picture.remove(); // a format that this browser does not show
      picture.src = URL.createObjectURL(sent.file);
      shown.append(picture);
    }

    function refuse(list) {
      if (!list.length) return;
      let shown = one(".refused", status);
      if (!shown) {
        const about = document.createElement("p");
        about.textContent = "Not taken:";
        about.className = "bad";
        shown = document.createElement("ul");
        shown.className = "refused";
        shown.tabIndex = 0;
        status.append(about, shown);
      }
      for (const each of list) {
        const line = document.createElement("li"), who = document.createElement("b");
        who.textContent = each.name;
        line.append(who, ` ${each.reason}`);
        shown.append(line);
      }
    }

    async function uploadImages(chosen) {
      if (!chosen.length) return;
      if (uploading) { say("One upload at a time."); return; }
      uploading += 1;
      one(".refused", status)?.previousElementSibling.remove();
      one(".refused", status)?.remove();
      const total = chosen.reduce((sum, each) => sum + each.file.size, 0) || 1;
      let sent = 0, same = 0, refused = 0;
      const counted = (number, what) => number ? `, ${number.toLocaleString("en")} ${what}` : "";
      const words = () => `${inSet.size.toLocaleString("en")} uploaded${counted(same, "more the same as others")}${counted(refused, "not taken")}`;
      try {
        for (const batch of batches(chosen)) {
          const size = batch.reduce((sum, each) => sum + each.file.size, 0);
          const share = loaded => Math.min(1, (sent + Math.min(loaded, size)) / total);
          const answer = await postPatiently(set ? `/images/${set}` : "/images", batch, loaded => progress(words(), share(loaded)), text => progress(text, share(0)));
          sent += size;
          set = answer.id;
          const outcome = outcomes(answer);
          for (const name of outcome.kept) { if (inSet.has(name)) same += 1; else { inSet.add(name); show(batch.find(each => each.name === name)); } }
          refused += outcome.refused.length;
          progress(words(), sent / total);
          refuse(outcome.refused);
        }
        if (inSet.size) take(`upload:${set}`, "images");
        else say("None of these is an image that can be used.");
      } catch (error) {
        if (inSet.size) progress(`${words()}, and not the rest`, sent / total);
        say(`${error.message} Choose the same again: what is there is not kept twice.`);
      } finally {
        uploading -= 1;
      }
    }

    async function uploadFile(chosen) {
      if (!chosen) return;
      uploading += 1;
      try {
        const answer = await postPatiently("/files", [chosen], loaded => progress(chosen.name, loaded / (chosen.file.size || 1)), text => progress(text, 0), "file");
        progress(`${chosen.name} uploaded`, 1);
        take(`upload:${answer.id}`, chosen.name.replace(/\.[^.]*$/, ""));
      } catch (error) {
        say(error.message);
      } finally {
        uploading -= 1;
      }
    }
  }

  // What stands before the equals sign: a name nobody else has here.
  function nameFor(text, lines) {
    const plain = (text ?? "").normalize("NFKC").replace(/[^\p{L}\p{N}_ .()+-]+/gu, "-").replace(/^[^\p{L}\p{N}_]+/u, "").slice(0, 40).trim() || "run";
    const taken = new Set(lines.map(line => line.split("=")[0].trim()));
    let name = plain;
    for (let number = 2; taken.has(name); number++) name = `${plain} ${number}`;
    return name;
  }

  // Files that were dropped, those in folders too.
  async function dropped(data) {
    const entries = [...data.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean);
    if (!entries.length) return [...data.files].map(file => ({file, name: file.name}));
    const found = [];
    async function walk(entry, path) {
      if (entry.isFile) {
        const file = await new Promise((done, failed) => entry.file(done, failed));
        found.push({file, name: path + file.name});
      } else {
        const reader = entry.createReader();
        for (;;) {
          const some = await new Promise((done, failed) => reader.readEntries(done, failed));
          if (!some.length) break;
          for (const each of some) await walk(each, `${path}${entry.name}/`);
        }
      }
    }
    for (const entry of entries) await walk(entry, "");
    return found.filter(each => !each.name.split("/").pop().startsWith("."));
  }

  // Small requests: one that breaks off costs little, and progress is seen.
  function* batches(chosen) {
    let batch = [], size = 0;
    for (const each of chosen) {
      if (batch.length && (batch.length >= 100 || size + each.file.size > 64e6)) { yield batch; batch = []; size = 0; }
      batch.push(each);
      size += each.file.size;
    }
    if (batch.length) yield batch;
  }

  const outcomes = answer => ({
    kept: answer.images.map(each => each.name),
    refused: answer.refused.map(each => ({name: each.name, reason: each.message})),
  });

  // A server that is away for a moment, as for a new version, is waited for.
  const PATIENCE_MS = 60_000, AGAIN_MS = 1000;
  async function postPatiently(path, batch, loaded, waiting, part) {
    const until = performance.now() + PATIENCE_MS, key = newKey();
    for (;;) {
      try {
        return await post(path, batch, loaded, key, part);
      } catch (error) {
        if (!error.lost || performance.now() > until) throw error;
        waiting("The server does not answer. Trying again…");
        await new Promise(done => setTimeout(done, AGAIN_MS));
      }
    }
  }

  function post(path, batch, loaded, key, name = "files") {
    const body = new FormData();
    for (const each of batch) body.append(name, each.file, each.name);
    const request = new XMLHttpRequest();
    return new Promise((done, failed) => {
      request.upload.addEventListener("progress", event => loaded(event.loaded));
      request.addEventListener("load", () => {
        let content = null;
        try { content = JSON.parse(request.responseText); } catch { /* said below */ }
        if (request.status < 300 && content) done(content);
        else failed(Object.assign(new Error(content?.error?.message ?? `The server answered ${request.status}.`), {lost: request.status === 502 || request.status === 503}));
      });
      request.addEventListener("error", () => failed(Object.assign(new Error("The upload broke off: the server does not answer."), {lost: true})));
      request.open("POST", `${base}/api/v1${path}`);
      request.setRequestHeader("Idempotency-Key", key);
      request.send(body);
    });
  }

  check().catch(error => say(error.message));
})();
