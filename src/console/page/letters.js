// Dead letters: a filter, pages of 50, and orders about all that match.
import {act, mayOrder} from "./act.js";
import {get, post} from "./api.js";
import {commandLine, look, order} from "./command.js";
import {address, h, link, place, table, time} from "./dom.js";

const STATES = ["open", "replayed", "discarded", "all"];
const FILTER = ["topic", "handler", "reason", "error", "key", "scope", "tenant", "since", "until"];
const LISTED_IDS = 50; // in a command line; more are named by their filter

const filterOf = (words) => Object.fromEntries(FILTER.filter((name) => words[name]).map((name) => [name, words[name]]));
const options = (words) => Object.fromEntries(Object.entries(filterOf(words)).map(([name, value]) => [`--${name}`, value]));

function filterForm(words, topics, reasons) {
  const field = (name, label, more) => h("label", null, label, h("input", {name, value: words[name] ?? "", autocomplete: "off", size: 14, "data-key": `filter ${name}`, ...more}));
  const state = h("select", {name: "state", "data-key": "filter state"}, STATES.map((one) => h("option", {value: one, selected: one === (words.state ?? "open")}, one)));
  return h("form", {class: "row", role: "search", onsubmit: (event) => {
    event.preventDefault();
    location.hash = address("letters", Object.fromEntries(new FormData(event.target)));
  }},
  field("topic", "Topic", {list: "topics"}), field("reason", "Reason", {list: "reasons"}), h("label", null, "State", state),
  field("error", "Text in the error"), field("key", "Idempotency key"), field("scope", "Scope"), field("tenant", "Tenant"), field("since", "Not older than", {placeholder: "2h, 7d", size: 8}), field("until", "Not newer than", {placeholder: "2h, 7d", size: 8}), field("handler", "Handler"),
  h("button", {type: "submit", "data-key": "filter"}, "Filter"),
  h("datalist", {id: "topics"}, topics.map((topic) => h("option", {value: topic}))),
  h("datalist", {id: "reasons"}, reasons.map((reason) => h("option", {value: reason}))));
}

const stateOf = (row) => (row.replay_wanted ? "replay wanted" : row.completed_by ? "completed since" : row.state);

function rowsTable(rows) {
  return table(`${rows.length} letters, newest first`, [
    {label: "Id", cell: (row) => link(address("letter", {which: row.id}), row.id), short: true},
    {label: "Since", cell: (row) => time(row.created_at), short: true},
    {label: "Message", cell: place},
    {label: "State", cell: stateOf, short: true},
    {label: "Reason", cell: (row) => row.reason},
    {label: "Key", cell: (row) => row.key},
    ...(rows.some((row) => row.tenant) ? [{label: "Tenant", cell: (row) => row.tenant}] : []),
    {label: "Error", cell: (row) => row.error},
  ], rows);
}

export function replayResult(told) {
  const parts = [`Wanted: ${told.wanted} of ${told.named}. A worker runs each within seconds, if one is running.`];
  if (told.wanted_before) parts.push(`${told.wanted_before} were wanted already; each runs once.`);
  if (told.without_bytes)
    parts.push(`${told.without_bytes} were left alone: their messages were not kept. Replay each with its payload (hapax dead replay --payload), or discard them.`);
  const gone = told.named - told.wanted - told.wanted_before - told.without_bytes;
  if (gone > 0) parts.push(`${gone} are not open any more.`);
  return parts.join("\n");
}

export function endResult(told, name) {
  const parts = [`${name[0].toUpperCase()}${name.slice(1)}: ${told[name]} of ${told.named}.`];
  if (told.running) parts.push(`${told.running} were left alone, as a worker runs their replay now.`);
  parts.push(...told.lines);
  return parts.join("\n");
}

// Fixed to ids before the operator is asked, so that letters which come later are left out.
async function actOnAll(words, verb, reload, failed) {
  let ids, skipped;
  try {
    ({ids, skipped} = await get("matching", filterOf(words)));
  } catch (error) {
    failed(error.message);
    return;
  }
  const left = skipped > 0 && `${skipped} that an operator has decided to skip are left out. To order these, filter by their reason, or open one.`;
  if (ids.length === 0) {
    failed(["No open dead letter matches.", left].filter(Boolean).join(" "));
    return;
  }
  const all = Object.keys(filterOf(words)).length === 0 && ids.length > LISTED_IDS;
  const named = ids.length <= LISTED_IDS ? ids : [];
  const filter = named.length > 0 ? {} : {...options(words), "--all": all};
  act({
    title: `${verb === "replay" ? "Replay" : "Discard"} ${ids.length} dead letters`,
    effect: verb === "replay"
      ? "Dry run: the letters are looked up and nothing was changed. Workers run each once, through the same handler and key rules. A letter whose operation has completed meanwhile is refused."
      : "Dry run: the letters are looked up and nothing was changed. They shall never run; open replays of them are cancelled. The rows stay.",
    danger: verb === "discard",
    fields: [
      h("p", null, h("strong", null, `${ids.length} letters`), `, ids ${ids[0]} to ${ids.at(-1)}. Letters that come from now on are left out.`),
      left && h("p", null, left),
      named.length === 0 && h("p", {class: "quiet"}, "The command looks them up again when it starts."),
    ],
    command: ({who, why}) => order(`dead ${verb}`, {...filter, "--who": who, "--why": why, "--yes": true}, ...named),
    run: async (by) => {
      const told = await post(verb, {ids, ...by});
      return verb === "replay" ? replayResult(told) : endResult(told, "discarded");
    },
    done: reload,
  });
}

function allButtons(words, reload) {
  const told = h("p", {role: "status", class: "bad"});
  const button = (verb, label) => h("button", {type: "button", class: verb === "discard" ? "danger" : null, "data-key": `all ${verb}`,
    onclick: () => actOnAll(words, verb, reload, (text) => { told.textContent = text; })}, label);
  return [h("div", {class: "row"}, button("replay", "Replay all that match …"), button("discard", "Discard all that match …")), told];
}

export const letters = {
  refresh: true,
  load: (words) => get("letters", words),
  show: (words, {rows, next, looked_at: looked}, group, reload) => {
    const open = !words.state || words.state === "open";
    return [
      h("h1", null, "Dead letters"),
      h("p", null, link("#/replays", "Replays and their outcomes")),
      filterForm(words, group.topics, (group.state?.dead_letters ?? []).map((row) => row.reason)),
      open && rows.length > 0 && mayOrder("dead") && allButtons(words, reload),
      rows.length > 0 ? rowsTable(rows) : h("p", null, "No dead letter fits."),
      looked && h("p", {class: "quiet"}, `Looked at ${looked.toLocaleString("en")} letters; older ones may fit, too.`),
      h("nav", {class: "row", "aria-label": "Pages"},
        words.before && link(address("letters", {...words, before: ""}), "Newest"),
        next !== null && link(address("letters", {...words, before: next}), "Older")),
      commandLine(look("dead list", {...options(words), "--state": words.state, "--before": words.before})),
    ].flat(2).filter(Boolean);
  },
};
