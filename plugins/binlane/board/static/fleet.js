// Many channels and many databases: the list with its filters and actions, and where a database is.

import { bar, bytes, h, moment, number, pill, plural, span, spark } from "./draw.js";
import { cell, clipped, empty, head, panel, share, wrong } from "./parts.js";

const SEVERITY = ["unknown", "critical", "warning", "ok"];
const ORDERS = {
  health: { name: "Health", by: (a, b) => worst(a) - worst(b) },
  name: { name: "Name", by: () => 0 },
  behind: { name: "Behind", by: (a, b) => (b.mark?.behind ?? -1) - (a.mark?.behind ?? -1) },
};
const BATCH = 100;
/** What a reader has chosen, kept while the page is open. */
const chosen = { text: "", tag: "", state: "", order: "health", shown: BATCH };

const worst = (card) => Math.min(...card.findings.map((each) => SEVERITY.indexOf(each.severity)));

// ---- all channels

export function list(cards, where, tools) {
  const counts = {};
  for (const card of cards) counts[card.state] = (counts[card.state] ?? 0) + 1;
  const note = Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([state, count]) => `${count} ${state}`).join(", ");
  const title = h("div", { class: "title" }, h("div", {}, h("h1", {}, "Replication"), h("p", { class: "quiet" }, cards.length ? `${plural(cards.length, "channel")}: ${note}` : "")),
    cards.length ? finder("*", tools) : null);
  if (cards.length === 0) {
    return [title, h("section", { class: "panel" }, empty("No channel", "A channel is a file in dags/channels. This page lists the channels whose DAG you may read."))];
  }
  const found = cards.filter(matches).sort((a, b) => ORDERS[chosen.order].by(a, b) || (a.name < b.name ? -1 : 1));
  return [title, h("section", { class: "panel scroll" }, filters(cards, found, tools),
    found.length === 0 ? empty("No such channel", "No channel has this name, tag and state.") : h("table", { class: "cards" },
      head(["Channel"], ["State"], ["Behind", "num"], ["Last windows"], ["Watermark", "num"], ["Open window"]),
      h("tbody", {}, found.slice(0, chosen.shown).map((card) => channelRow(card, tools)))),
    found.length > chosen.shown ? h("div", { class: "more" }, h("button", { type: "button", onclick: () => change({ shown: chosen.shown + BATCH }, tools) }, `More: ${number(chosen.shown)} of ${number(found.length)} shown`)) : null)];
}

function matches(card) {
  const text = chosen.text.toLowerCase();
  return (!text || [card.name, card.description, card.owner].some((each) => each.toLowerCase().includes(text)))
    && (!chosen.tag || card.tags.includes(chosen.tag))
    && (!chosen.state || card.findings.some((each) => each.state === chosen.state));
}

function change(values, tools) {
  Object.assign(chosen, values);
  tools.redraw();
}

const choice = (label, name, values, tools) => h("label", {}, label, h("select", { onchange: (event) => change({ [name]: event.target.value, shown: BATCH }, tools) },
  values.map(([value, text]) => h("option", { value, selected: chosen[name] === value }, text))));

function filters(cards, found, tools) {
  const unique = (of) => [...new Set(cards.flatMap(of))].sort();
  const tags = unique((card) => card.tags), states = unique((card) => card.findings.map((each) => each.state));
  return h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    h("label", {}, "Channel", h("input", { type: "search", value: chosen.text, placeholder: "name, description, owner", oninput: (event) => change({ text: event.target.value, shown: BATCH }, tools) })),
    choice("Tag", "tag", [["", "all"], ...tags.map((tag) => [tag, tag])], tools),
    choice("State", "state", [["", "all"], ...states.map((state) => [state, state])], tools),
    choice("Order", "order", Object.entries(ORDERS).map(([key, { name }]) => [key, name]), tools),
    together(found, tools));
}

/** Actions on every channel of the list that the user may act on; the dialog names the others, and why they are left. */
function together(found, tools) {
  const mine = found.filter((card) => card.may_act && card.mark);
  if (found.length < 2 || mine.length === 0 || !(chosen.tag || chosen.text || chosen.state)) return null;
  const without = found.filter((card) => !mine.includes(card)).map((card) => [card.name, whyNot(card)]);
  const act = (verb, paths, text, fields, body) => tools.confirm({ title: `${verb} ${plural(paths.length, "channel")}`, button: verb, danger: verb === "Stop", text, fields, body, without,
    each: paths.map(({ name }) => [name, `api/channels/${encodeURIComponent(name)}/${verb.toLowerCase()}`]) });
  const running = mine.filter((card) => card.stopped === null), halted = mine.filter((card) => card.stopped !== null);
  const names = (cards) => `These channels, in turn: ${cards.map((card) => card.name).join(", ")}.`;
  return h("div", { class: "actions" },
    h("button", { type: "button", onclick: () => act("Verify", mine, `Starts a run of each DAG that compares source and target. ${names(mine)}`, [], () => ({ full: false })) }, `Verify ${mine.length} …`),
    running.length ? h("button", { type: "button", class: "danger", onclick: () => act("Stop", running, `All lanes of each channel continue to one seqno and end. ${names(running)}`, [], () => ({ now: false })) }, `Stop ${running.length} …`) : null,
    halted.length ? h("button", { type: "button", onclick: () => act("Resume", halted, `Cancels the stop requests. ${names(halted)}`, [], () => ({})) }, `Resume ${halted.length} …`) : null);
}

/** Why a channel gets no action: its target or file cannot be read, or the user may not act on it. */
function whyNot(card) {
  const [problem] = wrong(card);
  return card.mark === null && problem ? problem.text.split("\n")[0] : "Airflow does not let you edit its DAG";
}

function channelRow(card, tools) {
  return h("tr", { "data-key": card.name },
    h("th", { scope: "row" }, h("a", { href: tools.href({ c: card.name }) }, card.name),
      card.tags.length ? h("span", { class: "tags" }, card.tags.map((tag) => h("button", { type: "button", class: "tag", "aria-pressed": String(chosen.tag === tag), onclick: () => change({ tag: chosen.tag === tag ? "" : tag, shown: BATCH }, tools) }, tag))) : null,
      h("div", { class: "faint" }, card.description)),
    cell("State", "wide", pill(card.state), wrong(card).map((each) => h("div", { class: "faint break" }, clipped(`${each.state === card.state ? "" : `${each.state}: `}${each.text.split("\n")[0]}`, 120)))),
    cell("Behind", "num", card.mark ? span(card.mark.behind) : "–"),
    cell("Last windows", "", spark(card.behind, "seconds behind at the end of the last windows")),
    cell("Watermark", "num", card.mark ? number(card.mark.seqno) : "–"),
    cell("Open window", "wide", progress(card) ?? h("span", { class: "faint" }, card.mark ? "none" : "–")));
}

/** The step that takes time now, from the first byte of log on; else the open window; null: neither. */
export function progress(card) {
  const open = card.progress, stage = card.stage, name = open ? `#${open.number}: ` : "";
  const kind = card.state === "failed" ? "bad" : "";
  if (stage) return [`${name}${stage.text}`, stage.left === null ? null : h("span", { class: "faint nowrap" }, `, ${span(stage.left)} left`), bar(stage.share ?? 0, kind)];
  if (!open) return null;
  if (!open.planned) return [`#${open.number}, ${plural(open.transactions, "transaction")}: not planned yet`, bar(0)];
  return [`#${open.number}: ${number(open.applied)} of ${plural(open.transactions, "transaction")}`, bar(share(open.applied, open.transactions), kind)];
}

// ---- databases

/** A field that leads to the databases of a name or pattern: of a channel, or of all. */
export function finder(pattern, tools, channel) {
  const go = (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get("pattern").trim();
    const found = !text ? "*" : /[*?]/.test(text) ? text : `*${text}*`;
    tools.go(channel === undefined ? { f: found } : { c: channel, d: found });
  };
  return h("form", { class: "finder", role: "search", onsubmit: go },
    h("label", {}, channel === undefined ? "Find a database in all channels" : "Find a database", h("input", { type: "search", name: "pattern", value: pattern === "*" ? "" : pattern, placeholder: "tenant_217, tenant_2*", autocomplete: "off" })),
    h("button", { type: "submit" }, "Find"));
}

export const sorted = { order: "name", drifted: false };
const DATABASE_ORDERS = { name: "Name", rows: "Row changes", applied: "Last applied", lane: "Lane" };

export function databases(data, where, tools) {
  const pattern = where.d ?? where.f, channel = where.c;
  const pick = (values) => { Object.assign(sorted, values); tools.again(); };
  return [
    h("div", { class: "title" }, h("div", {}, h("h1", {}, "Databases"), h("p", { class: "quiet" }, `${plural(data.count, "database")}${pattern === "*" ? "" : [" named ", pattern].join("")}${channel === undefined ? " in all channels" : ` of ${channel}`}${data.databases.length < data.count ? `, ${number(data.databases.length)} shown` : ""}`)),
      finder(pattern, tools, channel)),
    data.problems.map((each) => h("div", { class: "notice bad" }, h("p", { class: "text" }, each))),
    h("section", { class: "panel scroll" },
      h("form", { class: "filters", onsubmit: (event) => event.preventDefault() },
        h("label", {}, "Order", h("select", { onchange: (event) => pick({ order: event.target.value }) }, Object.entries(DATABASE_ORDERS).map(([key, name]) => h("option", { value: key, selected: sorted.order === key }, name)))),
        h("label", { class: "check" }, h("input", { type: "checkbox", checked: sorted.drifted, onchange: (event) => pick({ drifted: event.target.checked }) }), "only those known to differ")),
      data.databases.length === 0 ? empty("No database", "A database is in the list from the first window on that changes it.") : h("table", { class: "cards" },
        head(channel === undefined ? ["Channel"] : null, ["Database"], ["Lane", "num"], ["Last applied"], ["Verified"], ["Row changes", "num"], ["Last windows"]),
        h("tbody", {}, data.databases.map((each) => databaseRow(each, channel === undefined, tools)))),
      data.more ? h("div", { class: "more" }, h("button", { type: "button", onclick: data.more }, "More")) : null),
  ].flat();
}

function databaseRow(each, named, tools) {
  const { applied, verified } = each;
  return h("tr", { "data-key": `${each.channel}/${each.name}` },
    named ? h("th", { scope: "row" }, h("a", { href: tools.href({ c: each.channel }) }, each.channel)) : null,
    h(named ? "td" : "th", named ? { class: "mono break", "data-label": "Database" } : { scope: "row", class: "mono break" }, each.name),
    cell("Lane", "num", each.lane === null ? h("span", { title: "serialized, or shared with other databases" }, "–") : each.lane),
    cell("Last applied", "", applied ? ["seqno ", number(applied.seqno), h("div", { class: "faint nowrap" }, moment(applied.time))] : "–",
      each.is_waiting ? h("div", { class: "faint" }, "more in the open window") : null),
    cell("Verified", "", each.drifted ? [pill("drifted"), h("div", { class: "faint" }, plural(each.drifted, "row or definition", "rows or definitions"))]
      : verified ? [verified.kind === "full" ? "every row" : `rows of window #${verified.number}`, h("div", { class: "faint nowrap" }, moment(verified.at))] : h("span", { class: "faint" }, "–"), each.pending ? h("div", { class: "faint" }, `${number(each.pending)} pending`) : null),
    cell("Row changes", "num", number(each.rows)),
    cell("Last windows", "", spark([...each.recent].reverse().map((one) => one.rows), "row changes in the last windows"),
      h("div", { class: "faint nowrap" }, each.recent.slice(0, 3).map((one) => `#${one.number} ${number(one.rows)}`).join(", "))));
}

// ---- repairs, the first copy and the audit

export function records(data, where) {
  return [
    h("div", { class: "title" }, h("div", {}, h("h1", {}, "Repairs, first copy, restores and audit"), h("p", { class: "quiet" }, where.c))),
    data.repairs.length === 0 ? h("section", { class: "panel" }, empty("No repair", "`binlane verify --repair` corrects drifted rows of the target by a plan."))
      : panel("Repairs", data.more_repairs ? "the newest" : "newest first", h("div", { class: "scroll" }, h("table", { class: "cards" },
        head(["Began (UTC)"], ["State"], ["By"], ["At seqno", "num"], ["Inserted", "num"], ["Updated", "num"], ["Deleted", "num"], ["Were equal", "num"], ["Left alone", "num"], ["Took", "num"], ["Plan"]),
        h("tbody", {}, data.repairs.map(repairRow))))),
    data.first_copy === null ? h("section", { class: "panel" }, empty("No first copy", "The channel was begun by `binlane init`, on a target that held the data.")) : copyPanel(data.first_copy),
    restores(data.restores),
    drills(data.drills),
    audit(data.commands),
  ];
}

function restores(found) {
  if (found.length === 0) return h("section", { class: "panel" }, empty("No restore", "`binlane restore` brings databases to a moment of the log, under names of their own."));
  return panel("Restores", "onto this target, of databases that the channel copies, newest first", h("div", { class: "scroll" }, h("table", { class: "cards" },
    head(["Restore"], ["Databases"], ["Base"], ["Ends at"], ["Stage"], ["Step"], ["Began (UTC)"], ["By"]),
    h("tbody", {}, found.map((each) => h("tr", { "data-key": each.name },
      h("th", { scope: "row", class: "break" }, each.name),
      cell("Databases", "break", each.databases.slice(0, NAMED).map((one) => h("div", {}, one.name, h("span", { class: "faint" }, ` as ${one.final}`))), each.databases.length > NAMED ? h("div", { class: "faint" }, `and ${number(each.databases.length - NAMED)} more`) : null, each.tables.length ? h("div", { class: "faint" }, `only ${each.tables.join(", ")}`) : null),
      cell("Base", "mono break", each.base === null ? "–" : each.base || "the log alone"),
      cell("Ends at", "mono break", each.end, each.asked ? h("div", { class: "faint" }, clipped(each.asked, 80)) : null),
      cell("Stage", "", pill(each.state), each.stage === each.state ? null : h("div", { class: "faint" }, each.stage)),
      cell("Step", "wide", restoreStep(each)),
      cell("Began", "nowrap", moment(each.began_at)), cell("By", "break", each.by || "–")))))));
}

/** Databases of a restore that are named. */
const NAMED = 5;

/** The step with its share and time left; of a restore that nobody works on the error, and what it has reached. */
function restoreStep(each) {
  if (each.step !== null) return [each.step, each.seconds_left === null ? null : h("span", { class: "faint nowrap" }, `, ${span(each.seconds_left)} left`), bar(each.share ?? 0)];
  const reached = each.reached === null ? "base not loaded yet" : `reached ${each.reached}`;
  return [h("span", { class: "break" }, reached), each.state === "interrupted" && each.error ? h("div", { class: "faint text" }, clipped(each.error, 300)) : null];
}

function drills(found) {
  if (found.length === 0) return h("section", { class: "panel" }, empty("No drill", "`binlane drill` restores random databases and compares them with the live copy."));
  return panel("Drills", "newest first", h("div", { class: "scroll" }, h("table", { class: "cards" },
    head(["Drill"], ["Result"], ["Equal", "num"], ["Age", "num"], ["Took", "num"], ["Log proved", "num"], ["By"]),
    h("tbody", {}, found.map((each) => h("tr", { "data-key": each.id },
      h("th", { scope: "row", class: "nowrap" }, `#${each.id}`, h("div", { class: "faint" }, moment(each.started_at))),
      cell("Result", "", pill(each.state), each.error ? h("div", { class: "faint text break" }, clipped(each.error, 300)) : null),
      cell("Equal", "num", `${number(each.equal)} of ${number(each.databases)}`),
      cell("Age", "num", each.age === null ? "–" : span(each.age)),
      cell("Took", "num", each.ended_at === null ? "–" : span(each.ended_at - each.started_at)),
      cell("Log proved", "num", bytes(each.log_bytes)), cell("By", "break", each.by)))))));
}

/** The newest commands that have changed data or decisions. */
function audit(commands) {
  if (commands === null) return h("section", { class: "panel" }, empty("Audit", "Commands and their arguments are shown to those who may edit the DAG."));
  if (commands.length === 0) return h("section", { class: "panel" }, empty("Audit", "No command has changed data or decisions."));
  return panel("Audit", "the newest commands that have changed data or decisions; `binlane audit` has all", h("div", { class: "scroll" }, h("table", { class: "cards" },
    head(["At (UTC)"], ["Command"], ["Arguments"], ["By"], ["Account on the target"], ["Result"]),
    h("tbody", {}, commands.map((each) => h("tr", { "data-key": each.id },
      h("th", { scope: "row", class: "nowrap" }, each.at),
      cell("Command", "", each.command), cell("Arguments", "wide break", each.arguments || "–"), cell("By", "break", each.by), cell("Account on the target", "break", each.account),
      cell("Result", "", pill(each.result === "done" ? "finished" : each.result), each.error ? h("div", { class: "faint" }, each.error) : null, each.digest ? h("div", { class: "faint mono" }, clipped(each.digest, 20)) : null)))))));
}

function repairRow(each) {
  return h("tr", { "data-key": each.id },
    h("th", { scope: "row", class: "nowrap" }, moment(each.started_at)),
    cell("State", "", pill(each.state === "done" ? "finished" : each.state), each.state === "done" ? null : h("div", { class: "faint" }, "running, or interrupted")),
    cell("By", "break", each.by), cell("At seqno", "num", number(each.seqno)),
    cell("Inserted", "num", number(each.inserted)), cell("Updated", "num", number(each.updated)), cell("Deleted", "num", number(each.deleted)),
    cell("Were equal", "num", number(each.equal)), cell("Left alone", "num", number(each.changed)),
    cell("Took", "num", each.ended_at === null ? "–" : span(each.ended_at - each.started_at)),
    cell("Plan", "wide break mono", each.plan, h("div", { class: "faint" }, clipped(each.digest, 20))));
}

function copyProgress(found) {
  const parts = [`${number(found.finished)} of ${plural(found.tables, "table")}`, `${bytes(found.bytes)} of about ${bytes(found.all_bytes)}`,
    found.bytes_per_second ? `${bytes(found.bytes_per_second)}/s` : null, found.seconds_left === null ? null : `${span(found.seconds_left)} left`];
  return h("div", { class: "copied" }, parts.filter(Boolean).join(", "), bar(found.all_bytes ? share(found.bytes, found.all_bytes) : 0, found.is_running ? "" : "bad"));
}

function copyPanel(copy) {
  const facts = [["State", copy.state], ["Databases", copy.databases.length > 12 ? `${copy.databases.slice(0, 12).join(", ")} and ${number(copy.databases.length - 12)} more` : copy.databases.join(", ")],
    ["Snapshot at", `${copy.file}:${copy.offset}`], ["GTID set", copy.gtid_set || "–"], ["Attempts", number(copy.attempts)], ["Last change (UTC)", moment(copy.updated_at)],
    ["Finished by", copy.state === "finished" ? copy.order || "the command line" : "–"],
    ...Object.entries(copy.outcome ?? {}).filter(([, value]) => typeof value === "number").map(([name, value]) => [name.replaceAll("_", " "), number(value)])];
  return panel("First copy", copy.state === "finished" ? "the channel begins at its snapshot" : copy.progress?.is_running ? "running" : "interrupted: a repeated run continues it", h("div", { class: "body" },
    copy.progress ? copyProgress(copy.progress) : null,
    h("dl", { class: "facts" }, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", { class: "break" }, value)]))),
    copy.objects.length ? h("div", { class: "scroll" }, h("table", { class: "cards" }, head(["Kind"], ["State"], ["Objects", "num"], ["Rows", "num"]),
      h("tbody", {}, copy.objects.map((each) => h("tr", { "data-key": `${each.kind}/${each.state}` }, h("th", { scope: "row" }, each.kind), cell("State", "", each.state), cell("Objects", "num", number(each.count)), cell("Rows", "num", number(each.rows))))))) : null);
}
