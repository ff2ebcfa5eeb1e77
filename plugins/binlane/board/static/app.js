// The board: routes in the address's hash, one view at a time, refreshed while it is visible.

import { h, patch, plural, resize } from "./draw.js";
import * as fleet from "./fleet.js";
import { glossary } from "./help.js";
import * as views from "./views.js";

const FAST = 2000, SLOW = 15000;
const root = new URL("../", import.meta.url);
const main = document.getElementById("main");
const trail = document.getElementById("trail");
const live = document.getElementById("live");
const said = document.getElementById("said");
const ask = document.getElementById("ask");

let session = null;
let shown = null; // the route on the page
let timer = 0;
let turn = 0; // answers of an older turn are dropped
let pages = new Map(); // further pages that a reader has asked for, by address

// ---- Airflow's theme, or the system's

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
function setTheme() {
  let wanted = null;
  try { wanted = localStorage.getItem("theme"); } catch { /* storage may be closed to us */ }
  const theme = wanted === "dark" || wanted === "light" ? wanted : prefersDark.matches ? "dark" : "light";
  if (document.documentElement.dataset.theme !== theme) {
    document.documentElement.dataset.theme = theme;
    if (shown) refresh();
  }
}
prefersDark.addEventListener("change", setTheme);
window.addEventListener("storage", setTheme);
setTheme();

// ---- the API

export class Refused extends Error {
  constructor(status, detail) { super(detail); this.status = status; }
}

async function call(path, options = {}) {
  let answer;
  try { answer = await fetch(new URL(path, root), { credentials: "same-origin", ...options }); }
  catch { throw new Refused(0, "Airflow does not answer"); }
  let body = null;
  try { body = await answer.json(); } catch { /* an error page of a proxy */ }
  if (!answer.ok) throw new Refused(answer.status, words(body) ?? `${answer.status} ${answer.statusText}`);
  return body;
}

function words(body) {
  if (body === null || body.detail === undefined) return null;
  return typeof body.detail === "string" ? body.detail : body.detail.map((each) => each.msg).join("; ");
}

async function act(path, body, again = true) {
  session ??= await call("api/session");
  const headers = { "Content-Type": "application/json", "X-Binlane-Token": session.token };
  try { return await call(path, { method: "POST", headers, body: JSON.stringify(body ?? {}) }); }
  catch (error) {
    // Airflow renews its cookie now and then, and the token with it
    if (error.status !== 403 || !again) throw error;
    session = null;
    return act(path, body, false);
  }
}

// ---- routes: #/c/<channel>/w/<window>/l/<lane>/b/<block>/t/<transaction>; .../l/<lane>/s/<seqno> looks for the block;
// #/c/<channel>/d/<pattern> and #/f/<pattern>: databases; #/c/<channel>/r/all: repairs, the first copy, restores

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const found = {};
  for (let n = 0; n + 1 < parts.length; n += 2) found[parts[n]] = parts[n + 1];
  return found;
}

export function href(at) {
  return "#/" + ["f", "c", "d", "r", "w", "l", "s", "b", "t"].filter((key) => at[key] !== undefined).map((key) => `${key}/${encodeURIComponent(at[key])}`).join("/");
}

const at = (...names) => names.map(encodeURIComponent).join("/");

async function load(where) {
  if (where.f !== undefined) return [fleet.databases, { ...await call(`api/databases?${wanted(where.f)}&limit=100`), more: null }];
  if (where.c === undefined) return [fleet.list, await call("api/channels")];
  const channel = `api/channels/${at(where.c)}`;
  if (where.d !== undefined) return [fleet.databases, await paged(`${channel}/databases`, "databases", wanted(where.d))];
  if (where.r !== undefined) return [fleet.records, await call(`${channel}/records`)];
  if (where.w === undefined) return [views.channel, await call(channel)];
  const page = `${channel}/windows/${at(where.w)}`;
  if (where.l === undefined) return [views.window, await call(page)];
  if (where.s !== undefined) return locate(where, await call(`${page}/lanes/${at(where.l)}/transactions/${at(where.s)}`));
  const blocks = `${page}/lanes/${at(where.l)}/blocks`;
  if (where.b === undefined) return [views.lane, await paged(blocks, "blocks")];
  const transactions = `${blocks}/${at(where.b)}/transactions`;
  return where.t === undefined
    ? [views.block, await paged(transactions, "transactions")]
    : [views.rows, await paged(`${transactions}/${at(where.t)}/rows`, "rows")];
}

const wanted = (pattern) => `pattern=${encodeURIComponent(pattern)}&sort=${fleet.sorted.order}&drifted=${fleet.sorted.drifted}`;

/** To the rows of a transaction, or to its block for those who may not see rows. */
function locate(where, { first_seqno: block, rows_shown: rows }) {
  const { s: seqno, ...lane } = where;
  location.replace(href({ ...lane, b: block, ...(rows ? { t: seqno } : {}) }));
  return [() => [h("p", { class: "quiet" }, "Loading …")], {}];
}

/** The requested pages of a list, as one list. */
async function paged(path, key, query = "") {
  const many = pages.get(path) ?? 1;
  let all = null, after = 0;
  for (let n = 0; n < many && after !== null; n += 1) {
    const page = await call(`${path}?after=${after}&limit=100&${query}`);
    all = all === null ? page : { ...page, [key]: [...all[key], ...page[key]] };
    after = page.next_after;
  }
  return { ...all, more: after === null ? null : () => { pages.set(path, many + 1); refresh(); } };
}

// ---- the page

let redraw = () => {};
export const tools = {
  href, go: (where) => { location.hash = href(where); }, confirm, leave, windowsBefore,
  /** Draw what is known once more, with what a reader has chosen since. */
  redraw: () => redraw(),
  /** Ask once more, from the first page on. */
  again: () => { pages.clear(); refresh(); },
};

async function refresh() {
  clearTimeout(timer);
  const mine = ++turn;
  const where = route();
  const name = href(where);
  let fast = false;
  try {
    const [view, data] = await load(where);
    if (mine !== turn) return;
    redraw = () => show(name, where, [...view(data, where, tools), glossary()].filter(Boolean));
    redraw();
    fast = isMoving(where, data);
    live.textContent = `as of ${new Date().toISOString().slice(11, 19)} UTC`;
    live.className = "";
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (mine !== turn) return;
    // the earlier answer stays visible, marked as old
    const gone = shown !== name || error.status === 404;
    if (gone) show(name, where, [views.problem(error, where, tools)]);
    live.textContent = error.status === 401 ? "signed out" : gone ? "nothing to show" : error.message;
    live.className = "late";
  }
  main.setAttribute("aria-busy", "false");
  if (!document.hidden) timer = setTimeout(refresh, fast ? FAST : SLOW);
}

const MOVING = ["running", "stopping", "unfinished"];
function isMoving(where, data) {
  const cards = Array.isArray(data) ? data : data.card ? [data.card] : [];
  return cards.some((card) => card.findings.some((each) => MOVING.includes(each.state))) || data.row?.state === "open" || Boolean(data.first_copy?.progress?.is_running) || Boolean(data.restores?.some((each) => each.state === "running"));
}

function show(name, where, nodes) {
  const fresh = h("main", {}, nodes);
  if (shown === name) patch(main, fresh);
  else {
    main.replaceChildren(...fresh.childNodes);
    scrollTo(0, 0);
    if (shown !== null) main.focus({ preventScroll: true });
    shown = name;
  }
  const steps = [["Replication", {}]];
  if (where.c !== undefined) steps.push([where.c, { c: where.c }]);
  if (where.f !== undefined) steps.push(["databases", where]);
  if (where.d !== undefined) steps.push(["databases", where]);
  if (where.r !== undefined) steps.push(["repairs, copies, restores and audit", where]);
  if (where.w !== undefined) steps.push([`window ${where.w}`, { c: where.c, w: where.w }]);
  if (where.l !== undefined) steps.push([`lane ${where.l}`, { c: where.c, w: where.w, l: where.l }]);
  if (where.b !== undefined) steps.push([`block ${where.b}`, { c: where.c, w: where.w, l: where.l, b: where.b }]);
  if (where.t !== undefined) steps.push([`transaction ${where.t}`, where]);
  patch(trail, h("nav", {}, steps.map(([text, to], n) => [
    n ? h("span", { class: "sep", "aria-hidden": "true" }, "/") : null,
    n === steps.length - 1 ? h("span", { "aria-current": "page" }, text) : h("a", { href: href(to) }, text),
  ])));
  document.title = where.c === undefined ? "Replication" : `${where.c} – Replication`;
}

/** Confirm an action, send it, show its result. `fields`: nodes of a form, read by name. `each`: names and paths of
 * several actions instead of `path`, sent in turn until somebody cancels; `without`: names that get no action, and why. */
function confirm({ title, text, button, danger, path, body, fields = [], each = null, without = [] }) {
  const close = () => ask.close();
  const cancel = h("button", { type: "button", onclick: close }, "Cancel");
  const send = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    const go = ask.querySelector("button.go"), refused = ask.querySelector(".refused");
    go.disabled = true;
    refused.replaceChildren();
    if (each !== null) { go.remove(); await inTurn(each, body(values), refused, cancel); refresh(); return; }
    try { say((await act(path, body(values))).message); }
    catch (error) {
      // the input stays, with the reason of the refusal beside it
      refused.replaceChildren(h("div", { class: "notice bad" }, h("p", { class: "text" }, error instanceof Refused ? error.message : String(error))));
      go.disabled = false;
      go.focus();
      return;
    }
    close();
    refresh();
  };
  ask.replaceChildren(h("form", { onsubmit: send, method: "dialog" },
    h("h2", { id: "ask-title" }, title), h("p", { class: "quiet" }, text), fields,
    without.length ? h("div", { class: "without" }, h("p", {}, `Not done for ${plural(without.length, "channel")}:`), without.map(([name, why]) => h("div", { class: "notice warn" }, h("p", { class: "text" }, `${name}: ${why}`)))) : null,
    h("div", { class: "refused", role: "alert" }),
    h("div", { class: "actions" }, cancel,
      h("button", { type: "submit", class: danger ? "go danger" : "go main" }, button))));
  ask.showModal();
  const first = ask.querySelector("input, textarea");
  if (first) { first.focus(); first.select?.(); }
}

/** Send an action for each name; the result of each is listed as it comes, whatever the others' are. `cancel`, and the
 * Escape key, end it: nothing more is sent, and the names that are left are listed. */
async function inTurn(each, body, place, cancel) {
  const list = (kind, line) => place.append(h("div", { class: `notice ${kind}` }, h("p", { class: "text" }, line)));
  const left = [...each];
  let cancelled = false;
  const end = () => { cancelled = true; };
  const close = cancel.onclick;
  cancel.onclick = end;
  ask.addEventListener("close", end, { once: true });
  while (left.length && !cancelled) {
    const [name, path] = left.shift();
    try { list("", (await act(path, body)).message); }
    catch (error) { list("bad", `${name}: ${error.message}`); }
  }
  if (left.length) list("warn", `Cancelled. Not sent for ${plural(left.length, "channel")}: ${left.map(([name]) => name).join(", ")}`);
  if (left.length && !ask.open) say(`Cancelled: sent for ${each.length - left.length} of ${plural(each.length, "channel")}`);
  ask.removeEventListener("close", end);
  cancel.onclick = close;
  cancel.textContent = "Close";
}

let quieten = 0;
function say(message) {
  said.textContent = message;
  clearTimeout(quieten);
  quieten = setTimeout(() => { said.textContent = ""; }, 10000);
}

/** Go to a page of Airflow. Inside Airflow's frame only the outer page can navigate, by an element of its own. */
function leave(path) {
  const outer = window.parent === window ? window : window.parent;
  const link = outer.document.createElement("a");
  link.href = new URL(`../${path}`, root).pathname;
  link.click();
}

async function windowsBefore(channel, before) {
  return call(`api/channels/${at(channel)}/windows?before=${before}&limit=50`);
}

window.addEventListener("hashchange", refresh);
window.addEventListener("resize", resize);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); else clearTimeout(timer); });
refresh();
