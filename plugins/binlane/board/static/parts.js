// Pieces that all pages share: panels, figures, tables with headings that explain themselves.

import { h } from "./draw.js";
import { meaning } from "./help.js";

export const panel = (title, note, ...body) =>
  h("section", { class: "panel" }, h("div", { class: "head" }, h("h2", { title: meaning(title) }, title), note ? h("span", { class: "faint" }, typeof note === "string" ? coded(note) : note) : null), ...body);
export const figure = (name, value, note) => h("div", { class: "figure" }, h("dt", { title: meaning(name) }, name), h("dd", {}, value, note ? h("small", { title: typeof note === "string" ? note : null }, note) : null));
export const cell = (label, kind, ...children) => h("td", { class: kind, "data-label": label }, ...children);
export const head = (...names) => h("thead", {}, h("tr", {}, names.filter(Boolean).map(([name, kind]) => h("th", { scope: "col", class: kind, title: meaning(name) }, name))));
export const empty = (title, text) => h("div", { class: "empty" }, h("strong", {}, title), coded(text));
export const share = (done, all) => (all > 0 ? done / all : 1);
export const clipped = (text, length = 26) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
export const wrong = (card) => card.findings.filter((each) => each.severity !== "ok");

/** Commands, which texts have between backquotes. */
export const coded = (text) => text.split("`").map((part, n) => (n % 2 ? h("code", {}, part) : part));
