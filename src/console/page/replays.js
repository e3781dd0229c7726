// Replays of dead letters: which are open, which ended, and how.
import {get} from "./api.js";
import {commandLine, look} from "./command.js";
import {address, duration, h, link, place, table, time} from "./dom.js";

const STATES = ["", "open", "completed", "refused", "failed", "cancelled"];

function progress(row) {
  if (row.state !== "open") return `${row.state} ${time(row.ended_at)}`;
  if (row.claimed_by) return `runs on ${row.claimed_by}`;
  const again = row.runs === 0 ? "waits for a worker" : `failed ${row.runs} times`;
  return row.wait_seconds > 0 ? `${again}, next run in ${duration(row.wait_seconds)}` : again;
}

const tone = (row) => ({completed: "good", failed: "bad", refused: "bad"}[row.state] ?? "");

// A link for each state, with how many of the newest replays are in it.
function states(chosen, counts) {
  const label = (state) => (state === "" ? "all" : `${state} ${(counts.find((one) => one.state === state)?.count ?? 0).toLocaleString("en")}`);
  return h("nav", {class: "row", "aria-label": "Which replays"}, STATES.map((state) =>
    (state === chosen ? h("strong", null, label(state)) : link(address("replays", {state}), label(state)))));
}

export const replays = {
  refresh: true,
  load: (words) => get("replays", words),
  show: (words, {rows, next, counts}) => {
    const open = counts.find((one) => one.state === "open");
    return [
      h("h1", null, "Replays"),
      open && h("p", {class: "sentence"}, `${open.count.toLocaleString("en")} open, the oldest since ${time(open.oldest)}. A worker takes one at a time. If none is taken for 15 s, see whether a worker of this group runs, and whether its route is halted.`),
      states(words.state ?? "", counts),
      h("p", {class: "quiet"}, "Counted among the newest 10,000."),
      rows.length === 0 ? h("p", null, "None.") : table(`${rows.length} replays, newest first`, [
        {label: "Letter", cell: (row) => link(address("letter", {which: row.dead_letter}), row.dead_letter), short: true},
        {label: "Wanted", cell: (row) => time(row.wanted_at), short: true},
        {label: "Message", cell: (row) => link(address("explain", {which: place(row)}), place(row))},
        {label: "State", cell: progress, tell: tone},
        {label: "Detail", cell: (row) => row.detail},
        {label: "By", cell: (row) => row.who},
        {label: "Why", cell: (row) => `${row.why}${row.edited ? " (edited payload)" : ""}`},
      ], rows),
      h("nav", {class: "row", "aria-label": "Pages"},
        words.before && link(address("replays", {state: words.state}), "Newest"),
        next !== null && link(address("replays", {state: words.state, before: next}), "Older")),
      commandLine(look("dead show", {}, rows[0]?.dead_letter ?? "ID")),
    ].filter(Boolean);
  },
};
