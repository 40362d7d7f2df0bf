"use strict";
// What all pages share: keys, questions before something is ended, signing in and out, the list of jobs.
// Everything that changes something goes through the HTTP interface, as a program would do it.
const service = (() => {
  const one = (query, within = document) => within.querySelector(query);
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const base = document.body.dataset.base;
  const message = one("#message");

  function say(text) {
    message.textContent = text;
    message.hidden = !text;
  }

  // The answer of the interface, or an error with its own words.
  const api = (verb, path, body, headers) => send(verb, `/api/v1${path}`, body, headers);
  async function send(verb, path, body, headers = {}) {
    let answer;
    try {
      answer = await fetch(base + path, {
        method: verb,
        headers: {...(body === undefined ? {} : {"Content-Type": "application/json"}), ...headers},
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch {
      throw new Error("The server does not answer. Is it still running?");
    }
    if (answer.status === 401 && !location.pathname.endsWith("/login")) {
      location.assign(`${base}/login?next=${encodeURIComponent(location.pathname.slice(base.length) + location.search)}`);
      throw new Error("Sign in first.");
    }
    const content = answer.status === 204 ? null : await answer.json().catch(() => null);
    if (!answer.ok) {
      const error = new Error(content?.error?.message ?? `The server answered ${answer.status}.`);
      error.field = content?.error?.field;
      throw error;
    }
    return content;
  }

  function ask(title, text, yes) {
    const dialog = one("#confirm");
    one("#confirm-title").textContent = title;
    one("#confirm-text").textContent = text;
    one("#confirm-yes").textContent = yes;
    dialog.returnValue = "no";
    dialog.showModal();
    return new Promise(done => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), {once: true}));
  }

  // Signing in and out

  const login = one("#login");
  login?.addEventListener("submit", async event => {
    event.preventDefault();
    const wrong = one("#login-wrong"), field = login.elements.token;
    wrong.textContent = "";
    try {
      await send("POST", "/login", {token: field.value.trim()});
    } catch (error) {
      wrong.textContent = error.message;
      field.setAttribute("aria-invalid", "true");
      field.select();
      return;
    }
    const next = new URLSearchParams(location.search).get("next") ?? "/";
    // Only within this service.
    location.assign(base + (/^\/(?![/\\])/.test(next) ? next : "/"));
  });
  one("#log-out")?.addEventListener("click", async () => {
    try { await send("POST", "/logout"); location.assign(`${base}/login`); } catch (error) { say(error.message); }
  });

  // Copying

  document.addEventListener("click", async event => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const from = one(`#${button.dataset.copy}`);
    try {
      await navigator.clipboard.writeText(from.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(from);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  // Where a request of the page itself fails

  document.body.addEventListener("htmx:responseError", event => {
    if (event.detail.xhr.status === 401) location.assign(`${base}/login`);
    else if (!event.detail.target?.closest?.("#rows")) say(`The server answered ${event.detail.xhr.status}.`);
  });

  // The list: one row after the other by keys

  const rows = () => all("#rows .open");
  function step(by) {
    const links = rows(), at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? 0 : Math.max(0, Math.min(links.length - 1, at + by))];
    next?.focus();
    next?.closest("tr").scrollIntoView({block: "nearest"});
  }
  one("#filters")?.addEventListener("change", () => one("#filters").requestSubmit());
  one("#filters")?.addEventListener("formdata", event => {
    for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
  });

  // Keys

  const keys = new Map([
    ["h", () => location.assign(`${base}/`)],
    ["n", () => document.body.dataset.role === "operator" && location.assign(`${base}/new`)],
    ["?", () => one("#keys")?.showModal()],
  ]);
  if (one("#rows")) {
    keys.set("j", () => step(1));
    keys.set("k", () => step(-1));
    keys.set("/", () => one("#filters input:checked")?.focus());
    keys.set(">", () => one("#older")?.click());
    keys.set("<", () => one("#newest")?.click());
  }
  one("#open-keys")?.addEventListener("click", () => one("#keys").showModal());
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || one("dialog[open]")) return;
    if (event.target.closest?.("textarea, select, input:not([type=radio], [type=checkbox], [type=button])")) return;
    const act = keys.get(event.key);
    if (!act) return;
    event.preventDefault();
    act();
  });

  return {one, all, base, say, send, api, ask, keys};
})();
