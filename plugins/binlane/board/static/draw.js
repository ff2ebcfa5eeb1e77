// Elements, figures and charts. Data becomes text nodes and attributes, never markup.

// control characters and invisible ones that change the text around them: the list of binlane/safe_text.py
const ACTIVE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Text that is safe to show: control and bidirectional characters become escapes. */
export const plain = (text) => String(text).replace(ACTIVE, (one) => {
  const number = one.codePointAt(0), digits = number.toString(16);
  return number < 0x100 ? `\\x${digits.padStart(2, "0")}` : number < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
});

const SVG = "http://www.w3.org/2000/svg";

const SHOWN = new Set(["title", "aria-label", "alt", "placeholder"]);

/** An element: attributes by name, `on` handlers, children as nodes or text. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element[name] = value;
    else element.setAttribute(name, value === true ? "" : SHOWN.has(name) ? plain(value) : String(value));
  }
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
  return element;
}

/** Update `old` to equal `fresh`, reusing equal elements: focus, scroll position and charts survive a refresh. */
export function patch(old, fresh) {
  const olds = [...old.childNodes], news = [...fresh.childNodes];
  news.forEach((want, n) => {
    const have = olds[n];
    if (have === undefined) old.append(want);
    else if (!alike(have, want)) have.replaceWith(want);
    else if (have.nodeType === Node.TEXT_NODE) { if (have.data !== want.data) have.data = want.data; }
    else {
      renew(have, want);
      if (!have.hasAttribute("data-keep")) patch(have, want);
    }
  });
  olds.slice(news.length).forEach((node) => node.remove());
}

function alike(a, b) {
  return a.nodeName === b.nodeName && (a.nodeType !== Node.ELEMENT_NODE || a.getAttribute("data-key") === b.getAttribute("data-key"));
}

function renew(have, want) {
  for (const { name } of [...have.attributes]) {
    // opened <details> stay open
    if (!want.hasAttribute(name) && name !== "open" && name !== "style") have.removeAttribute(name);
  }
  for (const { name, value } of [...want.attributes]) if (have.getAttribute(name) !== value && name !== "style") have.setAttribute(name, value);
  if (have.style && want.style) for (const name of ["width", "background-color"]) have.style.setProperty(name, want.style.getPropertyValue(name));
  have.onclick = want.onclick;
  have.onmouseover = want.onmouseover;
  have.oninput = want.oninput;
  have.onchange = want.onchange;
  have.onsubmit = want.onsubmit;
}

// ---- words

export const number = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US"));
export const short = (value) =>
  value < 1000 ? String(value) : value < 1e6 ? `${(value / 1e3).toFixed(value < 1e4 ? 1 : 0)}k` : `${(value / 1e6).toFixed(1)}M`;
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
export const ratio = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(value < 10 ? 2 : 1)} : 1`);

/** Seconds as text, in at most two units. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let rest = Math.round(seconds);
  const parts = [];
  for (const [name, size] of units) {
    if (rest >= size || (name === "s" && parts.length === 0)) {
      parts.push(`${Math.floor(rest / size)} ${name}`);
      rest %= size;
    } else if (parts.length) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/** A moment in UTC, to the second. */
export const moment = (seconds) =>
  seconds ? new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) : "–";
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
  return `${(value / 1024 ** unit).toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

// ---- pieces

export const pill = (word) => h("span", { class: `pill ${word}` }, word);

export function bar(share, kind = "") {
  const inner = h("i");
  inner.style.width = `${Math.min(100, Math.max(0, share * 100)).toFixed(2)}%`;
  return h("div", { class: `bar ${kind}`, role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.floor(share * 100) }, inner);
}

/** Names with bars and numbers, the largest first. */
export function bars(entries) {
  const most = Math.max(1, ...entries.map(([, value]) => value));
  return h("dl", { class: "bars" }, entries.map(([name, value]) => {
    const inner = h("i");
    inner.style.width = `${(100 * value) / most}%`;
    return [h("dt", { title: name }, name), h("dd", { "aria-hidden": "true" }, h("div", { class: "bar" }, inner)), h("dd", { class: "num" }, number(value))];
  }));
}

/** A line without axes, for a row of a list. */
export function spark(values, label) {
  if (values.length < 2) return h("span", { class: "faint" }, "–");
  const most = Math.max(...values, 1e-9);
  const points = values.map((value, n) => [2 + (n * 104) / (values.length - 1), 21 - (value / most) * 18]);
  const [x, y] = points.at(-1);
  return svg("svg", { class: "spark", viewBox: "0 0 110 24", role: "img", "aria-label": label },
    svg("path", { d: points.map(([px, py], n) => `${n ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("") }),
    svg("circle", { cx: x, cy: y, r: 2 }));
}

const charts = new Map();
// steps of an axis of seconds: those that are whole in the units of `span`
const DURATIONS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((days) => days * 86400)];

/** A chart over windows. `key` names it across refreshes; `say` words a value; a click opens the window. */
export function chart(key, { x, y, say, label, open, colour = "--accent", fillTo = true }) {
  const holder = h("div", { class: "chart", "data-keep": true, "data-key": key, role: "img", "aria-label": label });
  queueMicrotask(() => draw(key, { x, y, say, open, colour, fillTo }));
  return holder;
}

function draw(key, given) {
  const holder = document.querySelector(`.chart[data-key="${CSS.escape(key)}"]`);
  if (!holder) return;
  const known = charts.get(key);
  const theme = document.documentElement.dataset.theme;
  if (known && known.holder === holder && known.theme === theme) {
    known.given.open = given.open;
    known.given.x = given.x;
    known.plot.setData([given.x, given.y]);
    return;
  }
  if (known) known.plot.destroy();
  holder.replaceChildren();
  const style = getComputedStyle(document.documentElement);
  const tone = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: tone("--faint"), grid: { stroke: tone("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const only = given.x.length === 1;
  const plot = new uPlot({
    width: holder.clientWidth, height: holder.clientHeight, padding: [10, 20, 0, 0], // half of the last label is behind the plot
    legend: { show: false }, cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false, range: (u, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) }, y: { range: (u, low, high) => [0, (high || 1) * 1.1] } },
    axes: [
      { ...axis, size: 26, space: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (u, ticks) => ticks.map((tick) => (u.data[0].includes(tick) ? `#${tick}` : "")) },
      { ...axis, size: 62, space: 34, ...(given.say === span ? { incrs: DURATIONS } : {}), values: (u, ticks) => ticks.map((tick) => (tick ? given.say(tick) : "0")) },
    ],
    series: [{}, { stroke: tone(given.colour), width: 1.75, fill: given.fillTo ? `rgb(${tone("--heat")} / 0.10)` : undefined, points: { show: only || given.x.length < 30, size: 5, fill: tone("--panel") } }],
  }, [given.x, given.y], holder);
  const read = holder.parentElement.querySelector(".read");
  plot.over.addEventListener("mousemove", () => {
    const at = plot.cursor.idx;
    if (read && at !== null && at !== undefined) read.textContent = `window #${plot.data[0][at]}: ${given.say(plot.data[1][at])}`;
  });
  plot.over.addEventListener("mouseleave", () => { if (read) read.textContent = ""; });
  plot.over.addEventListener("click", () => { if (plot.cursor.idx !== null && given.open) given.open(plot.cursor.idx); });
  charts.set(key, { plot, holder, theme, given });
}

/** Charts follow their panels' width. */
export function resize() {
  for (const [key, { plot, holder }] of charts) {
    if (!holder.isConnected) { plot.destroy(); charts.delete(key); }
    else plot.setSize({ width: holder.clientWidth, height: holder.clientHeight });
  }
}

/** Shards by window; a cell's colour is its share of the busiest cell, on a square-root scale so that small ones show. */
export function heat(table, link) {
  const most = Math.max(1, ...table.transactions.flat().map((value) => value ?? 0));
  const head = table.windows.map((id, n) => h("th", { scope: "col" }, h("a", { href: link(table.window_ids[n]) }, `#${id}`)));
  const rows = table.shards.map((shard, row) =>
    h("tr", {}, h("th", { scope: "row", class: "mono", title: shard }, shard), table.transactions[row].map((value, n) => {
      const share = value ? Math.sqrt(value / most) : 0;
      const cell = h("td", { class: value === null ? "none" : "", title: `${shard}, window #${table.windows[n]}: ${value === null ? "not among the busiest" : plural(value, "transaction")}` }, value ? short(value) : "");
      if (value) cell.style.backgroundColor = `rgb(var(--heat) / ${(0.08 + 0.92 * share).toFixed(3)})`;
      return cell;
    })));
  return h("table", { class: "heat" }, h("thead", {}, h("tr", {}, h("td"), head)), h("tbody", {}, rows));
}
