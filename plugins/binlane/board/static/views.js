// The pages of one channel, as nodes; no requests. fleet.js has the list, the databases and the records; app.js names them all.

import { bar, bars, bytes, chart, h, heat, moment, number, pill, plural, ratio, span } from "./draw.js";
import { finder, progress } from "./fleet.js";
import { meaning } from "./help.js";
import { cell, clipped, coded, empty, figure, head, panel, share } from "./parts.js";

// ---- one channel

export function channel(data, where, tools) {
  const { card } = data;
  const finished = data.history.filter((row) => row.finished_at !== null);
  return [
    channelTitle(data, tools),
    ...notices(data, tools),
    card.mark ? figures(data, finished) : null,
    data.lanes.length || card.progress || card.stage ? running(data, tools) : null,
    card.mark ? verifications(data) : null,
    data.history.length ? history(data, finished, where, tools) : card.mark ? h("section", { class: "panel" }, empty("No window yet", "The first run applies the log from the watermark on.")) : null,
    data.skips.length ? skips(data, tools) : null,
    card.mark || card.state === "new" ? h("p", { class: "links" }, h("a", { href: tools.href({ c: card.name, r: "all" }) }, "Repairs, first copy, restores and audit")) : null,
    data.errors.length ? errors(data, where, tools) : null,
  ].flat().filter(Boolean);
}

function channelTitle(data, tools) {
  const { card } = data;
  const api = `api/channels/${encodeURIComponent(card.name)}`;
  const actions = [h("button", { type: "button", onclick: () => tools.leave(`dags/${encodeURIComponent(card.dag_id)}`) }, "DAG in Airflow")];
  const halted = card.stopped !== null;
  if (card.may_act && card.progress?.planned) actions.push(h("button", { type: "button", onclick: () => skip(data, tools) }, "Skip …"));
  if (card.may_act && card.mark) {
    actions.push(h("button", { type: "button", onclick: () => tools.confirm({
      title: `Verify ${card.name}`, button: "Verify", path: `${api}/verify`,
      text: "Starts a run of the DAG that compares source and target and applies no window. The run waits for an active run; its result is shown below; drift makes it fail.",
      fields: [h("label", { class: "check" }, h("input", { type: "checkbox", name: "full" }), "All tables, not only the rows that the last window touched")],
      body: (values) => ({ full: values.full === "on" }) }) }, "Verify"));
  }
  if (card.may_act && card.mark && !halted) {
    actions.push(h("button", { type: "button", class: "danger", onclick: () => tools.confirm({
      title: `Stop ${card.name}`, button: "Stop", danger: true, path: `${api}/stop`,
      text: "All lanes continue to one seqno, the watermark moves there, and the tasks end. No run continues the channel until it is resumed.",
      fields: [h("label", { class: "check" }, h("input", { type: "checkbox", name: "now" }), "Now: each lane at its next block, at different seqnos")],
      body: (values) => ({ now: values.now === "on" }) }) }, "Stop"));
  }
  if (card.may_act && halted) {
    actions.push(h("button", { type: "button", class: "main", onclick: () => tools.confirm({
      title: `Resume ${card.name}`, button: "Resume", path: `${api}/resume`, body: () => ({}),
      text: "Cancels the stop request. The next run continues from the lanes' positions: trigger the DAG, or clear its failed tasks." }) }, "Resume"));
  }
  return h("div", { class: "title" },
    h("div", {}, h("h1", {}, card.name), pill(card.state), h("p", { class: "quiet" }, card.description),
      h("p", { class: "faint break" }, [card.schedule ? `windows end at ${card.schedule}` : "runs by hand", data.target ? `onto ${data.target}` : null, `owner ${card.owner}`].filter(Boolean).join(" · "))),
    h("div", { class: "actions" }, actions), card.mark ? finder("*", tools, card.name) : null);
}

/** Lines of a list that are shown at once, and servers of a GTID set. */
const LINES = 10, SERVERS = 2;

const TITLES = {
  unreachable: "The state is unknown", new: "Not on the target yet", failed: "Failed", drifted: "Source and target differ",
  behind: "Behind", stalled: "Airflow does not work", stopping: "Stopping", stopped: "Stopped", unverified: "Not verified", undrilled: "Restores not proved", unfinished: "Unfinished",
};

/** What holds of the channel and what to do, the most serious first. */
function notices(data, tools) {
  const { card } = data;
  const found = card.findings.filter((each) => each.next_step).map((each) => banner(each, data, tools));
  if (!card.may_act) found.push(h("div", { class: "notice", "data-key": "reader" }, h("p", {}, "You may read this channel's DAG and not edit it. So this page leaves out statements, values of rows, texts of errors and accounts, and has no buttons that act; who manages Airflow's roles can give the permission to edit ", h("code", {}, card.dag_id), ".")));
  if (card.is_paused) found.push(h("div", { class: "notice" }, h("p", {}, "The DAG is paused in Airflow: scheduled runs do not start.")));
  for (const question of data.undecided) found.push(undecided(question, card, tools));
  return found;
}

function banner(finding, data, tools) {
  const { card } = data;
  const kind = finding.severity === "critical" || finding.state === "unreachable" ? "bad" : "warn";
  return h("div", { class: `notice ${kind}`, "data-key": finding.state }, h("h2", {}, TITLES[finding.state] ?? finding.state), h("p", { class: "text" }, coded(finding.text)),
    h("p", { class: "break" }, h("strong", {}, "Next step: "), coded(finding.next_step)),
    finding.state === "stopped" && behindStop(card.progress) ? h("p", {}, "The next run brings lanes below that seqno, and the watermark, to it.") : null,
    finding.state === "failed" ? afterFailure(data, tools) : null);
}

function afterFailure(data, tools) {
  const { card } = data;
  const error = data.errors.find((each) => each.current);
  const buttons = [];
  if (error && card.progress?.planned && error.seqno) buttons.push(h("a", { class: "button", href: tools.href({ c: card.name, w: error.window_id, l: error.lane, s: error.seqno }) }, "Transaction and rows"));
  if (error && card.may_act && card.progress?.planned && error.seqno) buttons.push(h("button", { type: "button", onclick: () => skip(data, tools, error.seqno) }, "Skip a transaction of this block …"));
  if (card.run?.state === "failed") buttons.push(h("button", { type: "button", onclick: () => tools.leave(`dags/${encodeURIComponent(card.dag_id)}/runs/${encodeURIComponent(card.run.run_id)}`) }, "Run in Airflow"));
  return [data.skips.some((each) => each.state === "requested") ? h("p", {}, "A transaction is marked to be skipped (see below): the next run skips it.") : null,
    buttons.length ? h("div", { class: "row" }, buttons) : null];
}

const behindStop = (open) => open?.planned && open.stop_at > 0 && open.low_water < open.stop_at;

function undecided(question, card, tools) {
  const answer = (ran) => tools.confirm({
    title: ran ? "The DDL has run" : "The DDL has not run", button: ran ? "It has run" : "Run it again", danger: true,
    path: `api/channels/${encodeURIComponent(card.name)}/decide`, body: () => ({ seqno: question.seqno, ran }),
    text: `Look at the target first (SHOW CREATE TABLE). The answer for seqno ${number(question.seqno)} is recorded; you will not be asked again.` });
  return h("div", { class: "notice bad" }, h("h2", {}, `Has the DDL of seqno ${number(question.seqno)} run?`),
    question.statement ? h("pre", {}, question.statement) : null,
    h("p", {}, "A worker died while the DDL was running, and the target has no GTID that shows whether it finished. Lane ", question.lane, " waits for the answer."),
    card.may_act ? h("div", { class: "row" }, h("button", { type: "button", onclick: () => answer(true) }, "It has run"), h("button", { type: "button", onclick: () => answer(false) }, "It has not")) : null);
}

function figures(data, finished) {
  const { card } = data, { mark } = card, last = finished[0];
  const whole = finished.reduce((sums, row) => [sums[0] + (row.read ?? 0), sums[1] + (row.written ?? 0)], [0, 0]);
  const rate = last && last.seconds > 0 ? last.transactions / last.seconds : null;
  return h("dl", { class: "figures" },
    figure("Behind now", span(mark.behind), mark.source_time ? ["last applied commit ", h("span", { class: "nowrap" }, moment(mark.source_time))] : "nothing applied yet"),
    figure("Watermark", number(mark.seqno), `${mark.file}:${mark.offset}`),
    figure("GTID set", h("span", { class: "mono gtids", title: mark.gtid_set }, gtids(mark.gtid_set)), `source ${clipped(data.source_identity, 40)}`),
    figure("Last window", last ? number(last.transactions) : "–", last ? `transactions in #${last.number}, ${span(last.seconds)}${rate ? `, ${number(rate)}/s` : ""}` : "none has ended"),
    figure("Row changes written", whole[1] ? ratio(whole[0] / whole[1]) : "–", whole[1] ? `${number(whole[0])} read, ${number(whole[1])} written` : "nothing folded yet"),
    figure("Last run", card.run ? pill(card.run.state) : "–", card.run ? [card.run.started_at ? moment(card.run.started_at) : "not started", runBefore(card)] : "never"));
}

/** A failed run stays to be seen while the next one runs. */
const runBefore = ({ run_before: before }) => before === null ? null : h("span", { "data-key": "before" }, "; before it ", pill(before.state), before.failed_tasks.length ? ` at ${before.failed_tasks.join(", ")}` : null, before.ended_at === null ? null : [" ", h("span", { class: "nowrap" }, moment(before.ended_at))]);

/** The numbers of a GTID set: of each server the last characters of its UUID and what follows it. */
function gtids(text) {
  const all = text.split(",").map((each) => each.trim()).filter(Boolean);
  const brief = all.map((each) => each.replace(/^[0-9a-f]{8}-[0-9a-f-]{23}([0-9a-f]{4}):/i, "…$1:"));
  return brief.length === 0 ? "–" : [...brief.slice(0, SERVERS), brief.length > SERVERS ? `and ${brief.length - SERVERS} more` : null].filter(Boolean).map((each) => h("span", { class: "one" }, clipped(each, 40)));
}

function running(data, tools) {
  const { card } = data, open = card.progress;
  if (!open) return panel("Next window", "its log is being read", h("div", { class: "body" }, progress(card)));
  const note = `seqno ${number(open.first_seqno)} to ${number(open.last_seqno)}, open since ${moment(open.opened_at)}${open.stop_at === null ? "" : open.stop_at === 0 ? ", stopping at the next blocks" : `, stopping at seqno ${number(open.stop_at)}`}`;
  const name = h("a", { href: tools.href({ c: card.name, w: open.window_id }) }, `Window #${open.number}`);
  if (!open.planned) return panel(name, note, h("div", { class: "body" }, progress(card)));
  return panel(name, note,
    h("div", { class: "body" }, progress(card), h("p", { class: "faint" }, `every lane is past seqno ${number(open.low_water)}, none past ${number(open.high_water)}`)),
    h("div", { class: "scroll" }, h("table", { class: "cards" },
      head(["Lane"], ["Transactions"], ["Position", "num"], ["Row changes", "num"], ["Blocks", "num"], ["Holder"]),
      h("tbody", {}, data.lanes.map((lane) => laneRow(lane, card, tools))))));
}

function laneRow(lane, card, tools) {
  const kind = lane.done ? "done" : card.state === "failed" ? "bad" : "";
  const holder = lane.done ? "done" : lane.alive ? lane.holder : lane.holder ? `${lane.holder}, silent for ${span(lane.beat_age)}` : "nobody";
  return h("tr", { "data-key": lane.lane },
    h("th", { scope: "row" }, h("a", { href: tools.href({ c: card.name, w: card.progress.window_id, l: lane.lane }) }, lane.name)),
    cell("Transactions", "wide", `${number(lane.applied)} of ${number(lane.transactions)}`, bar(lane.done ? 1 : share(lane.applied, lane.transactions), kind)),
    cell("Position", "num", number(lane.seqno)),
    cell("Row changes", "num", `${number(lane.rows_applied)} / ${number(lane.rows)}`),
    cell("Blocks", "num", `${number(lane.blocks_applied)} / ${number(lane.blocks)}`),
    cell("Holder", "clip quiet", h("span", { title: holder }, holder)));
}

function history(data, finished, where, tools) {
  const oldest = [...finished].reverse();
  const open = (n) => tools.go({ c: where.c, w: oldest[n].window_id });
  const x = oldest.map((row) => row.number);
  const causes = {};
  for (const row of data.history) for (const [cause, count] of Object.entries(row.causes)) causes[cause] = (causes[cause] ?? 0) + count;
  const sorted = Object.entries(causes).sort((a, b) => b[1] - a[1]);
  const unplanned = empty("No plan yet", "The plan job has not written the plan, or the precheck has refused it.");
  const note = finished.length === 1 ? "the last window" : `the last ${finished.length} windows`;
  const figureChart = (key, title, hint, y, say, label) =>
    panel(title, hint, h("div", { class: "body" }, chart(`${where.c}/${key}`, { x, y, say, label, open }), h("p", { class: "read faint", "aria-hidden": "true" })));
  return [
    finished.length ? h("div", { class: "pair" },
      figureChart("behind", "Behind", "from the last commit to the window's end", oldest.map((row) => row.behind), span, `Seconds behind at the end of ${note}; the table below has the figures`),
      figureChart("rate", "Transactions a second", "from the window's opening to its end", oldest.map((row) => (row.seconds > 0 ? row.transactions / row.seconds : 0)), number, `Transactions a second of ${note}; the table below has the figures`)) : null,
    h("div", { class: "pair" },
      panel("Busiest shards", data.heat.shards.length ? `transactions by window, ${plural(data.heat.shards.length, "shard")}` : null, data.heat.shards.length
        ? h("div", { class: "scroll body", tabindex: 0, role: "region", "aria-label": "Transactions by shard and window" }, heat(data.heat, (id) => tools.href({ c: where.c, w: id })))
        : unplanned),
      panel("Barriers by cause", sorted.length ? "transactions that need a barrier, all windows shown" : null, sorted.length
        ? h("div", { class: "body" }, bars(sorted))
        : data.heat.shards.length ? empty("No barrier", "Every transaction stayed in its lane.") : unplanned)),
    panel("Windows", `the last ${data.history.length}`, ...folded("windows", data.history, "window", (rows) => h("div", { class: "scroll" }, windowTable(rows, where, tools)))),
  ];
}

function windowTable(rows, where, tools) {
  return h("table", { class: "cards" },
    head(["Window"], ["State"], ["Transactions", "num"], ["Row changes", "num"], ["Reduced", "num"], ["Barriers", "num"], ["Took", "num"], ["Behind", "num"], ["Up to (source, UTC)"]),
    h("tbody", {}, rows.map((row) => h("tr", { "data-key": row.window_id },
      h("th", { scope: "row", class: "nowrap" }, h("a", { href: tools.href({ c: where.c, w: row.window_id }) }, `#${row.number}`), h("span", { class: "faint" }, ` seqno ${number(row.first_seqno)}`)),
      cell("State", "", pill(row.state)),
      cell("Transactions", "num", number(row.transactions)),
      cell("Row changes", "num", number(row.written)),
      cell("Reduced", "num", ratio(row.reduction)),
      cell("Barriers", "num", number(row.barriers)),
      cell("Took", "num", span(row.seconds)),
      cell("Behind", "num", span(row.behind)),
      cell("Up to", "nowrap", moment(row.end_time))))));
}

// ---- source against target

const KINDS = { full: "all tables", window: "a window's rows" };

function verifications(data) {
  const { coverage } = data;
  const through = coverage.through ? `every change through seqno ${number(coverage.through)} compared` : "";
  if (data.verifications.length === 0) return panel("Verification", "never verified", h("p", { class: "body quiet" }, h("code", {}, `binlane verify ${data.card.name}`), " compares the rows that the last window touched; so do the button above and a run with Verify in the DAG's form."), drifted(data));
  return panel("Verification", through || "not every change compared", h("div", { class: "body" }, proved(coverage)), h("div", { class: "scroll" }, h("table", { class: "cards" },
    head(["Began (UTC)"], ["What"], ["Result"], ["Through seqno", "num"], ["Drift", "num"], ["Pending", "num"], ["Tables", "num"], ["Rows", "num"], ["Took", "num"]),
    h("tbody", {}, data.verifications.map((each) => h("tr", { "data-key": each.id },
      h("th", { scope: "row", class: "nowrap" }, moment(each.started_at)),
      cell("What", "", each.scope.length ? clipped(each.scope.join(", "), 60) : KINDS[each.kind] ?? each.kind),
      cell("Result", "", pill(each.state)),
      cell("Through seqno", "num", number(each.through_seqno)),
      cell("Drift", "num", number(each.drift)), cell("Pending", "num", number(each.pending)),
      cell("Tables", "num", number(each.tables)), cell("Rows", "num", number(each.rows)),
      cell("Took", "num", each.ended_at === null ? "–" : span(each.ended_at - each.started_at))))))), drifted(data), repairHint(data));
}

/** The rows that are known to differ, with the values of both servers. */
function drifted({ drifted: rows, more_drifted: more, card }) {
  const known = card.findings.some((each) => each.state === "drifted");
  if (rows === null) return known ? h("p", { class: "body quiet" }, "Which rows differ is shown to those who may edit the DAG.") : null;
  if (!rows.length) return null;
  return [h("div", { class: "head" }, h("h2", {}, "Known to differ"), more ? h("span", { class: "faint" }, `the first ${rows.length}`) : null),
    ...folded("drifted", rows.flatMap(driftedLines), "line", (lines) => h("div", { class: "scroll" }, h("table", { class: "cards" },
      head(["Table"], ["Key"], ["Column"], ["Source"], ["Target"]), h("tbody", {}, lines))))];
}

function driftedLines(row) {
  const key = row.key.map(([name, value]) => `${name} = ${value ?? "NULL"}`).join(", ") || "–";
  const first = (column) => [h("th", { scope: "row", class: "mono break" }, visible(row.table)), cell("Key", "mono break", visible(key)), cell("Column", "mono break", column)];
  const note = row.note ? [h("tr", {}, ...first("–"), h("td", { class: "text", "data-label": "What", colspan: 2 }, visible(row.note)))] : [];
  if (row.note && !row.columns.length) return note;
  const side = (where, value) => (row.missing_on === where ? h("em", { class: "faint" }, "no such row") : value === null ? h("em", { class: "faint" }, "NULL") : visible(value));
  const columns = row.columns.length ? row.columns : [{ name: "–", source: "", target: "" }];
  return [...columns.map((each) => h("tr", {}, ...first(visible(each.name)), cell("Source", "mono text value", side("source", each.source)), cell("Target", "mono text value", side("target", each.target)))), ...note];
}

/** Ten rows, and the others behind a line that opens them. */
const folded = (key, rows, what, shown) => [rows.length ? shown(rows.slice(0, LINES)) : null,
  rows.length > LINES ? h("details", { class: "more", "data-key": key }, h("summary", {}, plural(rows.length - LINES, `more ${what}`)), shown(rows.slice(LINES))) : null];

/** What verifications have proved, how old the oldest open question is, and how far the round over all rows is. */
function proved(found) {
  const { round } = found;
  const facts = [
    ["Last verification", `${plural(found.equal_rows, "row")} equal`],
    found.rows_through > found.through ? ["Rows of windows", `seqno ${number(found.rows_after + 1)} to ${number(found.rows_through)} compared; a full verification closes the gap before them`] : null,
    ["All tables", found.full_at === null ? "never" : `through seqno ${number(found.full_through)}, at ${moment(found.full_at)}`],
    found.pending ? ["Pending", `${plural(found.pending, "row")}${found.pending_without_key ? `, ${number(found.pending_without_key)} of them in tables without a primary key` : ""}, the oldest since ${moment(found.pending_since)}`] : null,
    ...found.unshown.slice(0, LINES).map((line) => ["Pending because", line]),
    found.unshown.length > LINES ? ["Pending because", h("details", { "data-key": "unshown" }, h("summary", {}, `${plural(found.unshown.length - LINES, "more reason")}`), found.unshown.slice(LINES).map((line) => h("p", {}, line)))] : null,
    round ? ["Full round", roundText(round)] : null,
    found.drilled ? ["Drills", `the last one ${found.drilled}; restores proved ${found.drilled_at === null ? "never" : `at ${moment(found.drilled_at)}`}`] : null,
  ].filter(Boolean);
  return h("dl", { class: "facts" }, facts.flatMap(([name, value]) => [h("dt", { title: meaning(name) }, name), h("dd", {}, value)]));
}

function roundText(round) {
  const times = [round.reading_left === null ? null : `${span(round.reading_left)} of reading left`, round.left === null ? null : `done in ${span(round.left)} at the pace since ${moment(round.begun_at)}`];
  const rows = round.share === null ? `${plural(round.rows, "row")} compared` : `${number(round.rows)} of about ${plural(round.expected, "row")} compared`;
  return [[rows, ...times].filter(Boolean).join(", "), bar(round.share ?? 0)];
}

function repairHint({ card, verifications: [last] }) {
  if (last.state !== "drift") return null;
  const command = `binlane verify ${card.name}${last.kind === "full" ? " --full" : ""} --repair`;
  return h("p", { class: "body quiet" }, h("code", {}, command), " shows the changes that would correct them, and asks first.");
}

// ---- skipped transactions

function skip(data, tools, seqno = "") {
  const { card } = data;
  tools.confirm({
    title: `Skip a transaction of ${card.name}`, button: "Skip it", danger: true, path: `api/channels/${encodeURIComponent(card.name)}/skip`,
    text: `The transaction must belong to window #${card.progress.number} and not be applied yet. This is the last resort: later transactions may need its rows. The target keeps who skipped it, when, why, and its events.`,
    fields: [h("label", {}, "Seqno", h("input", { type: "number", name: "seqno", required: true, min: card.progress.first_seqno, max: card.progress.last_seqno, value: seqno })),
      h("label", {}, "Reason", h("textarea", { name: "reason", required: true, rows: 3, maxlength: 2000, placeholder: "why it must not be applied" }))],
    body: (values) => ({ seqno: Number(values.seqno), reason: values.reason }) });
}

function skips(data, tools) {
  const { card } = data, api = `api/channels/${encodeURIComponent(card.name)}`;
  const back = (each) => tools.confirm({ title: `Apply seqno ${number(each.seqno)} instead of skipping it`, button: "Cancel the skip", path: `${api}/cancel-skip`,
    text: "The transaction will be applied with its block.", body: () => ({ seqno: each.seqno }) });
  return panel("Skipped transactions", data.more_skips ? "those with the highest seqnos; `binlane skip --list` has all" : "skipped by request", h("div", { class: "scroll" }, h("table", { class: "cards" },
    head(["Seqno"], ["State"], ["By, at (UTC)"], ["Reason"], ["What it changes"], ["Source"]),
    h("tbody", {}, data.skips.map((each) => h("tr", { "data-key": each.seqno },
      h("th", { scope: "row" }, number(each.seqno), each.gtid ? h("div", { class: "faint mono break" }, each.gtid) : null),
      cell("State", "", pill(each.state), each.state === "requested" && card.may_act ? h("div", {}, h("button", { type: "button", class: "small", onclick: () => back(each) }, "Cancel skip")) : null),
      cell("By, at", "break", each.by, h("div", { class: "faint" }, moment(each.at))),
      cell("Reason", "wide text", each.reason),
      cell("What it changes", "wide break", each.summary ?? h("span", { class: "faint" }, "only for users who may edit the DAG"),
        each.summary === null ? null : h("div", {}, h("a", { href: `${api}/skips/${each.seqno}/events`, download: true }, `events, ${bytes(each.bytes)}`))),
      cell("Source", "mono", `${each.file}:${each.offset}`)))))));
}

function errors(data, where, tools) {
  return panel("Errors that stopped a lane or a window", "newest first", ...errorLists(data, where, tools));
}

/** Errors of the open window, then those that are solved, closed. */
function errorLists(data, where, tools) {
  const open = data.errors.filter((each) => each.current), solved = data.errors.filter((each) => !each.current);
  return [...folded("errors", open, "error", (some) => errorTable(some, where, tools)),
    solved.length ? h("details", { class: "more", "data-key": "solved" }, h("summary", {}, plural(solved.length, "solved error")), errorTable(solved, where, tools)) : null];
}

function errorTable(rows, where, tools) {
  return h("div", { class: "scroll" }, h("table", { class: "cards" },
    head(["At (UTC)"], ["Lane", "num"], ["Seqno", "num"], ["Source"], ["Error and next step"]),
    h("tbody", {}, rows.map((error) => h("tr", { "data-key": error.id },
      cell("At", "nowrap", moment(error.at)),
      cell("Lane", "num", error.lane ?? "–"),
      cell("Seqno", "num", error.seqno ? h("a", { href: tools.href({ c: where.c, w: error.window_id, l: error.lane, s: error.seqno }), title: "the transaction and its rows" }, number(error.seqno)) : "–"),
      cell("Source", "nowrap mono", error.file ? `${error.file}:${error.offset}` : "–"),
      cell("Error", "wide break", coded(error.text), h("div", { class: "quiet" }, error.way_out)))))));
}

// ---- one window

export function window(data, where, tools) {
  const { row } = data;
  const kinds = Object.entries(data.kinds);
  return [
    h("div", { class: "title" }, h("div", {}, h("h1", {}, `Window #${row.number}`), pill(row.state), h("p", { class: "quiet break" }, data.summary ?? `seqno ${number(row.first_seqno)} to ${number(row.last_seqno)}`))),
    h("dl", { class: "figures" },
      figure("Transactions", number(row.transactions), `seqno ${number(row.first_seqno)} to ${number(row.last_seqno)}`),
      figure("Row changes", number(row.written), row.read === null ? "not planned yet" : `${number(row.read)} read`),
      figure("Reduction", ratio(row.reduction), "read for each one written"),
      figure("Barriers", number(row.barriers), row.serialized === null ? null : `${plural(row.serialized, "transaction")} serialized`),
      figure("Took", span(row.seconds), `opened ${moment(row.opened_at)}`),
      figure("Behind at its end", span(row.behind), `up to ${moment(row.end_time)}`)),
    data.size === null ? null : h("p", { class: "quiet break" }, `Blocks: ${data.size}`),
    row.serialization === null ? null : h("p", { class: "quiet break" }, `In series: ${row.serialization}`),
    data.lanes.length === 0 ? h("section", { class: "panel" }, empty("Not planned yet", "The plan job has not written the plan, or the precheck has refused it.")) : [
      panel("Lanes", row.has_files ? "a lane's name leads to its blocks" : "the window's files were removed: its blocks cannot be shown", h("div", { class: "scroll" }, h("table", { class: "cards" },
        head(["Lane"], ["Transactions"], ["Blocks", "num"], ["Row changes", "num"], ["Size", "num"]),
        h("tbody", {}, data.lanes.map((lane) => h("tr", {},
          h("th", { scope: "row" }, row.has_files ? h("a", { href: tools.href({ ...where, l: lane.lane }) }, lane.name) : lane.name),
          cell("Transactions", "wide", number(lane.transactions), bar(share(lane.transactions, row.transactions))),
          cell("Blocks", "num", number(lane.blocks)), cell("Row changes", "num", number(lane.rows)), cell("Size", "num", bytes(lane.bytes)))))))),
      h("div", { class: "pair" },
        panel("Busiest shards", data.more_shards ? `${plural(data.more_shards, "more shard")} not shown` : "transactions", h("div", { class: "body" }, bars(data.shards.slice(0, 24).map((shard) => [`${shard.name} (${shard.lane})`, shard.transactions])))),
        panel("Barriers by cause", "transactions that need a barrier", Object.keys(row.causes).length ? h("div", { class: "body" }, bars(Object.entries(row.causes))) : empty("No barrier", "Every transaction stayed in its lane."),
          h("div", { class: "head" }, h("h2", {}, "Kinds of transactions")), h("div", { class: "body" }, bars(kinds)))),
      panel("Busiest tables", data.more_tables ? `${plural(data.more_tables, "more table")} not shown` : "row changes", h("div", { class: "scroll" }, h("table", { class: "cards" },
        head(["Table"], ["Read", "num"], ["Folded away", "num"], ["Filtered", "num"], ["Written", "num"]),
        h("tbody", {}, data.tables.map((table) => h("tr", {}, h("th", { scope: "row", class: "mono" }, table.name),
          cell("Read", "num", number(table.read)), cell("Folded away", "num", number(table.folded)), cell("Filtered", "num", number(table.filtered)), cell("Written", "num", number(table.written))))))))],
    data.rules.length === 0 ? null : panel("Left out by the filter", "by rule of the channel's file", h("div", { class: "scroll" }, h("table", { class: "cards" },
      head(["Rule"], ["Row changes", "num"], ["Statements", "num"]),
      h("tbody", {}, data.rules.map((each) => h("tr", {}, h("th", { scope: "row", class: "mono break" }, each.rule),
        cell("Row changes", "num", number(each.rows)), cell("Statements", "num", number(each.statements)))))))),
    panel("Coordinates", null, h("div", { class: "body" }, h("dl", { class: "facts" },
      ...[["Window", row.window_id], ["Ends at", `${row.end_file}:${row.end_offset}`], ["GTID set", row.end_gtid_set || "–"], ["Plan", data.plan_digest ?? "none"], ["Plan job by", data.plan_engine || "–"]].flatMap(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono" }, value)])))),
  ].flat().filter(Boolean);
}

// ---- a lane's blocks, a block's transactions

export function lane(data, where, tools) {
  return [
    h("div", { class: "title" }, h("div", {}, h("h1", {}, data.name), h("p", { class: "quiet" }, "A block's transactions commit together on the target, with the lane's position."))),
    h("section", { class: "panel" }, data.blocks.length === 0 ? empty("No block", "This lane has no transactions in this window.") : h("div", { class: "scroll" }, h("table", { class: "cards" },
      head(["Block"], ["State"], ["Transactions", "num"], ["Inserts", "num"], ["Updates", "num"], ["Deletes", "num"], ["Holds"], ["Begins at (source)"], ["Last commit (UTC)"], ["Last GTID"]),
      h("tbody", {}, data.blocks.map((block) => h("tr", { "data-key": block.first_seqno },
        h("th", { scope: "row", class: "nowrap" }, h("a", { href: tools.href({ ...where, b: block.first_seqno }) }, block.first_seqno === block.last_seqno ? number(block.first_seqno) : `${number(block.first_seqno)} – ${number(block.last_seqno)}`)),
        cell("State", "", block.applied === null ? "–" : pill(block.applied ? "finished" : "open")),
        cell("Transactions", "num", number(block.transactions)),
        cell("Inserts", "num", number(block.inserts)), cell("Updates", "num", number(block.updates)), cell("Deletes", "num", number(block.deletes)),
        cell("Holds", "", block.kinds.join(", ")),
        cell("Begins at", "mono nowrap", `${block.file}:${block.offset}`),
        cell("Last commit", "nowrap", moment(block.commit_time)),
        cell("Last GTID", "mono break", block.gtid || "–")))))),
    more(data)),
  ];
}

const more = (data) => (data.more ? h("div", { class: "more" }, h("button", { type: "button", onclick: data.more }, "More")) : null);

export function block(data, where, tools) {
  return [
    h("div", { class: "title" }, h("div", {}, h("h1", {}, `Block at seqno ${number(Number(where.b))}`), h("p", { class: "quiet" }, "The source's transactions, from its log."))),
    h("section", { class: "panel" }, data.transactions.length === 0 ? empty("No transaction", "") : h("div", { class: "scroll" }, h("table", { class: "cards" },
      head(["Seqno"], ["GTID"], ["Source"], ["Commit (UTC)"], ["Shard"], ["Changes"], ["Size", "num"]),
      h("tbody", {}, data.transactions.map((each) => transactionRow(each, data.rows_shown ? tools.href({ ...where, t: each.seqno }) : null))))), more(data)),
  ];
}

function transactionRow(each, rows) {
  return h("tr", { "data-key": each.seqno },
    h("th", { scope: "row" }, rows && each.tables.length ? h("a", { href: rows }, number(each.seqno)) : number(each.seqno)),
    cell("GTID", "mono break", each.gtid || "–"),
    cell("Source", "mono nowrap", `${each.file}:${each.offset}`),
    cell("Commit", "nowrap", moment(each.commit_time)),
    cell("Shard", "mono break", each.shard, each.barrier ? h("div", { class: "faint" }, "at a barrier") : null),
    cell("Changes", "wide",
      each.shard === "#FILTERED " ? h("span", { class: "faint" }, "left out by the filter") : null,
      each.tables.map((table) => h("div", {}, h("span", { class: "mono" }, table.name), h("span", { class: "quiet" }, ` ${changes(table)}`))),
      each.statements.map((statement) => (statement.text === null
        ? h("div", {}, statement.kind, h("span", { class: "faint" }, " (only for users who may edit the DAG)"))
        : h("details", {}, h("summary", {}, statement.kind, " ", h("span", { class: "mono" }, clipped(visible(statement.text.replace(/\s+/g, " ")), 80))), h("pre", {}, visible(statement.text)))))),
    cell("Size", "num", bytes(each.bytes)));
}

const changes = (table) =>
  [["inserted", table.inserts], ["updated", table.updates], ["deleted", table.deletes]].filter(([, count]) => count).map(([word, count]) => `${number(count)} ${word}`).join(", ");

// ---- a transaction's rows

export function rows(data) {
  return [
    h("div", { class: "title" }, h("div", {}, h("h1", {}, `Transaction ${number(data.seqno)}`), h("p", { class: "quiet" }, data.rows.some((row) => row.columns[0]?.startsWith("@")) ? "The transaction's row changes from the source's log, which has column names only with binlog_row_metadata = FULL; the target's table is not defined as the rows were logged, so that its names are not taken." : data.target_names ? "The transaction's row changes with their values, from the source's log. The columns' names are those of the target's table today: the log has them only with binlog_row_metadata = FULL." : "The transaction's row changes with their values, from the source's log."),
      h("p", { class: "faint break" }, [data.gtid ? `GTID ${data.gtid}` : null, `shard ${data.shard}`].filter(Boolean).join(" · ")))),
    data.rows.length === 0 ? h("section", { class: "panel" }, empty("No row", "No row change for this channel: the filter leaves the rows out, or the transaction has none.")) : data.rows.map((row, n) => rowPanel(row, n)),
    more(data),
  ].flat();
}

function rowPanel(row, n) {
  const both = row.before !== null && row.after !== null;
  const shown = (values, at) => (values[at] === null ? h("em", { class: "faint" }, "NULL") : values[at] === "" ? h("span", { class: "faint" }, "not logged") : visible(values[at]));
  const value = (label, values, at, changed) => (values === null ? null : cell(label, `mono text value${changed ? " changed" : ""}`, shown(values, at)));
  return panel(h("span", {}, `${row.kind} `, h("span", { class: "mono" }, visible(row.table))), `row ${number(n + 1)}`, h("div", { class: "scroll" }, h("table", { class: "cards values" },
    head(["Column"], ...[row.before && ["Before"], row.after && ["After"]].filter(Boolean)),
    h("tbody", {}, row.columns.map((name, at) => {
      const changed = both && row.after[at] !== "" && row.before[at] !== row.after[at];
      return h("tr", {}, h("th", { scope: "row", class: "mono" }, visible(name)), value("Before", row.before, at, false), value("After", row.after, at, changed));
    })))));
}

// control and bidirectional characters become escapes
const visible = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

// ---- errors

export function problem(error, where, tools) {
  const title = error.status === 401 ? "You are signed out" : error.status === 404 ? "Not found" : error.status === 0 ? "Airflow does not answer" : "This page cannot be shown";
  return h("section", { class: "panel" }, h("div", { class: "empty" }, h("strong", {}, title), h("p", { class: "break" }, error.message),
    error.status === 401 ? h("p", {}, h("button", { type: "button", onclick: () => tools.leave("") }, "Sign in to Airflow")) : h("p", {}, h("a", { href: tools.href({}) }, "All channels"))));
}
