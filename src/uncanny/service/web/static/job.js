"use strict";
// A job as it runs. Events say that something is new; the page then fetches the piece that shows it, so that
// figures are written in one place, on the server, and what models said is escaped there.
(() => {
  const {one, base, say, api, ask, keys} = service;
  const live = () => one("#live"), records = one("#records");
  const id = live().dataset.job;
  // How often at most pieces are fetched, however fast events come.
  const PACE_MS = 500;
  // A page of thousands of pictures helps nobody: earlier ones are shown when somebody asks.
  const MOST_CARDS = 120;

  // Pieces

  async function piece(address) {
    const answer = await fetch(address, {headers: {"X-Part": "1"}});
    if (answer.status === 401) { location.assign(`${base}/login`); return ""; }
    if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
    return answer.text();
  }

  async function showState() {
    const was = live().dataset.state;
    await htmx.ajax("GET", live().dataset.address, {target: "#live", swap: "outerHTML"});
    if (live().dataset.state !== was) document.title = document.title.replace(/^[^·]*·/, `${live().dataset.state.replace("_", " ")} ·`);
  }

  // The latest come first. Numbers count in one file (`of`), which a run puts in order when it ends.
  async function showCards(earlier = false) {
    if (!records) return;
    const {first, next, of} = records.dataset, list = one("#cards");
    const html = await piece(`${records.dataset.address}?` + new URLSearchParams(earlier ? {before: first} : {after: next, of}));
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const ends = one("#cards-ends", holder.content);
    if (!ends) return;
    ends.remove();
    if (ends.dataset.anew) {
      list.replaceChildren(holder.content);
      Object.assign(records.dataset, ends.dataset);
    } else if (earlier) {
      list.append(holder.content);
      records.dataset.first = ends.dataset.first;
    } else {
      list.prepend(holder.content);
      records.dataset.next = ends.dataset.next;
      // More have come than one piece holds: what lies between is asked for like earlier ones.
      if (Number(ends.dataset.first) > Number(next)) {
        while (list.childElementCount > MOST_CARDS) list.lastElementChild.remove();
        records.dataset.first = ends.dataset.first;
      }
      while (list.childElementCount > MOST_CARDS) {
        list.lastElementChild.remove();
        records.dataset.first = Number(records.dataset.next) - list.childElementCount;
      }
    }
    one("#more-cards").hidden = Number(records.dataset.first) <= 0;
    one("#no-cards").hidden = list.childElementCount > 0;
  }
  one("#more-cards")?.addEventListener("click", () => showCards(true).catch(error => say(error.message)));

  let stale = {state: false, cards: false}, busy = false, last = 0;
  async function refresh() {
    if (busy) return;
    busy = true;
    try {
      while (stale.state || stale.cards) {
        await new Promise(done => setTimeout(done, Math.max(0, last + PACE_MS - performance.now())));
        last = performance.now();
        const now = stale;
        stale = {state: false, cards: false};
        if (now.cards) await showCards();
        if (now.state) await showState();
      }
    } catch (error) {
      say(error.message);
    } finally {
      busy = false;
    }
  }
  function wants(what) {
    for (const each of what) stale[each] = true;
    refresh();
  }

  // Events

  let source = null;
  function listen() {
    source?.close();
    source = null;
    const address = live().dataset.events;
    if (!address) return;
    source = new EventSource(address);
    source.addEventListener("open", () => { say(""); wants(["state", "cards"]); });
    for (const kind of ["progress", "state"]) source.addEventListener(kind, () => wants(["state", "cards"]));
    source.addEventListener("error", () => {
      // The browser tries again by itself, unless the answer was none it could use.
      if (source?.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
    });
  }
  let ending = false;
  function showEnding() {
    const button = one("#a-cancel");
    if (!ending || !button) return;
    button.disabled = true;
    button.textContent = "Ending…";
  }
  document.body.addEventListener("htmx:afterSwap", event => {
    if (event.detail.target.id !== "live") return;
    showEnding();
    if (!live().dataset.events) { source?.close(); source = null; wants(["cards"]); }
  });
  listen();
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", event => { if (event.persisted) listen(); });

  // What a person does

  const QUESTIONS = {
    cancel: ["Cancel this job?", "It ends in good order: what is done stays, and it can go on later. Answers under way may still be billed.", "Cancel the job"],
    delete: ["Delete this job?", "Its records, report, verdicts and exports are deleted for everybody. This cannot be undone.", "Delete it"],
  };
  document.addEventListener("click", async event => {
    const button = event.target.closest?.("[data-do]");
    if (!button) return;
    const what = button.dataset.do;
    if (QUESTIONS[what] && !await ask(...QUESTIONS[what])) return;
    button.disabled = true;
    say("");
    try {
      if (what === "delete") {
        await api("DELETE", `/jobs/${id}`);
        location.assign(`${base}/`);
        return;
      }
      await api("POST", `/jobs/${id}/${what}`);
      ending = what === "cancel";
      await showState();
      if (!source) listen();
    } catch (error) {
      button.disabled = false;
      say(error.message);
    }
  });

  // A job that came to its budget goes on with a higher one.
  document.addEventListener("submit", async event => {
    const form = event.target.closest?.("#limits");
    if (!form) return;
    event.preventDefault();
    const wrong = one("#w-limits"), button = one("button", form), limits = {};
    wrong.textContent = "";
    for (const field of form.querySelectorAll("input")) {
      if (field.validity.badInput) { wrong.textContent = "This is no number. Write it as 10 or 0.5."; field.focus(); return; }
      limits[field.name] = field.value === "" ? null : Number(field.value);
    }
    button.disabled = true;
    try {
      await api("POST", `/jobs/${id}/limits`, limits);
      await api("POST", `/jobs/${id}/retry`);
      location.reload();  // the command line, too, is another one now
    } catch (error) {
      wrong.textContent = error.message;
      button.disabled = false;
    }
  });

  const follow = name => () => one(`#a-${name}`)?.click();
  keys.set("o", follow("report"));
  keys.set("r", follow("review"));
  keys.set("e", follow("export"));
  keys.set("l", () => { const log = one("#log"); log.open = !log.open; one("summary", log).focus(); });
})();
