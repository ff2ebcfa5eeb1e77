// What the numbers mean, where they are shown: a title on each heading, and the list at the end of a page.

import { h } from "./draw.js";

const WORDS = {
  "Behind": "Time since the last applied transaction was committed on the source. It grows while the source is idle, although nothing is missing.",
  "Behind now": "Time since the last applied transaction was committed on the source. It grows while the source is idle, although nothing is missing.",
  "Behind at its end": "Time between the window's last commit on the source and the end of the window.",
  "Watermark": "The seqno up to which the target holds everything. Seqnos number the channel's transactions: 1, 2, 3 … in the source's commit order.",
  "Barriers": "A barrier is a range of transactions that one lane applies alone, after all lanes it concerns have reached it: transactions over several lanes, DDL, accounts. Neighbouring barriers become one, so one barrier can serialize more transactions than need it.",
  "Barriers by cause": "Transactions that need a barrier. Their number differs from that of the barriers, which can hold several of them, and from that of the serialized transactions, which also counts those between them.",
  "Reduction": "Row changes in the source's log for each one written on the target: several changes of the same row in a block become one.",
  "Reduced": "Row changes in the source's log for each one written on the target: several changes of the same row in a block become one.",
  "Row changes written": "Row changes in the source's log for each one written on the target, over the windows shown.",
  "Row changes": "Rows inserted, updated or deleted. Of a window or lane: as written on the target, after folding.",
  "Blocks": "A block is a number of transactions of one lane that commit together on the target, with the lane's position.",
  "Position": "The last seqno that the lane has applied.",
  "Transactions": "Transactions of the source, counted as its log has them.",
  "Lane": "An ordered queue of blocks, applied by one task. The serialized lane applies what belongs to no single lane.",
  "Read": "Row changes in the source's log.",
  "Folded away": "Row changes that later ones of the same row have made unnecessary; below zero where updates that exchange values of a unique key are written as deletes and inserts.",
  "Filtered": "Row changes that the channel's filter leaves out.",
  "Written": "Row changes that the target gets: read, less folded away, less filtered.",
  "Took": "From the window's opening to its end, or from the beginning of a verification to its end.",
  "Through seqno": "The watermark when the verification began: its result holds up to there.",
  "Drift": "Rows or definitions that differ although the source has not changed them since the watermark.",
  "Pending because": "Why rows stay pending, and what settles them.",
  "Pending": "Rows that differed and that the source has changed meanwhile: the next verification compares them again.",
  "Last applied": "The last transaction with a change of the database that is on the target: its seqno and its commit time on the source.",
  "Verified": "The newest verification that found the database equal: every row, or the rows of one window that changes it. None if a later verification may have found it different.",
  "Full round": "A verification of every row of every table that has not ended. It may be read in slices, between windows; its time left counts the pauses between them.",
  "Last windows": "Of the channel: seconds behind at the end of each. Of a database: row changes in the newest windows that change it.",
  "Ends at": "The place of the log at which the restored databases stop, between two transactions.",
  "Step": "What takes time now: the load of the dump, the log that is read, the plan, the transactions that are applied. The time left is that of this step, at its rate so far.",
  "Age": "Time since the drill ended. A channel whose last good drill is older than alert.max_drill_age is undrilled.",
  "Log proved": "Bytes of the archive that the drill has read to the end, and found whole.",
  "Left alone": "Rows that the source has changed since the plan was made; the next verification compares them again.",
};

const used = new Set();

/** The meaning of a heading, as its title; the page's list will have it, too. */
export function meaning(name) {
  if (typeof name !== "string" || WORDS[name] === undefined) return null;
  used.add(name);
  return WORDS[name];
}

/** The list of what the page shows, closed at first. */
export function glossary() {
  const names = [...used].sort();
  used.clear();
  if (names.length === 0) return null;
  return h("details", { class: "glossary", "data-key": "glossary" }, h("summary", {}, "What these numbers mean"),
    h("dl", {}, names.map((name) => h("div", { "data-key": name }, h("dt", {}, name), h("dd", {}, WORDS[name])))));
}
