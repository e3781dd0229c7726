// One dead letter, whole: why, what it holds, what became of it, and orders about it.
import {actButton, mayOrder} from "./act.js";
import {get, post} from "./api.js";
import {commandLine, look, order} from "./command.js";
import {NOT_KEPT, address, bytes, facts, h, link, payload, place, table, time} from "./dom.js";
import {endResult, replayResult} from "./letters.js";

const isOpenReplay = (replay) => replay.outcome === null;

function replayAction(row, reload) {
  return {
    title: `Replay dead letter ${row.id}`,
    effect: "A worker runs it once more, through the same handler and key rules. It is refused if the operation has completed meanwhile.",
    command: (by) => order("dead replay", {"--who": by.who, "--why": by.why, "--yes": true}, row.id),
    run: async (by) => replayResult(await post("replay", {ids: [row.id], ...by})),
    done: reload,
  };
}

// Nothing, or why the page cannot edit the payload. A browser's text field makes LF of each CR.
function uneditable({payload: shown, without_bytes: unkept}) {
  if (unkept) return NOT_KEPT;
  if (shown === null) return "There is no payload to edit.";
  if (shown.masked) return "The setting console.mask hides a part of the payload.";
  if (shown.text === undefined) return "The payload is not all printable text.";
  if (shown.cut) return "The payload is longer than 64 KiB.";
  return shown.text.includes("\r") ? "The payload holds a carriage return, which a browser's text field would change." : null;
}

function editAction(row, reload) {
  const why = uneditable(row);
  const text = h("textarea", {name: "payload", spellcheck: "false", value: row.payload?.text ?? ""});
  const edited = {
    title: `Replay dead letter ${row.id} with an edited payload`,
    effect: "The edited payload runs in place of the letter's own, which the letter keeps. The command reads it from a file.",
    command: (by) => order("dead replay", {"--payload": "edited.json", "--who": by.who, "--why": by.why, "--yes": true}, row.id),
  };
  if (why) return {...edited, effect: `${why} Write the edited payload to a file, and use the command. ${edited.effect}`};
  return {
    ...replayAction(row, reload),
    ...edited,
    fields: [h("label", null, "Payload", text)],
    run: async (by) => replayResult(await post("replay", {ids: [row.id], payload: text.value, ...by})),
  };
}

function endAction(row, reload, verb) {
  const cancel = verb === "cancel";
  return {
    title: cancel ? `Cancel the replay of dead letter ${row.id}` : `Discard dead letter ${row.id}`,
    effect: cancel ? "The replay that no worker has taken yet ends. The letter stays open."
      : "The letter shall never run; an open replay of it is cancelled. The row stays, so that a redelivery is known.",
    danger: !cancel,
    command: (by) => order(cancel ? "dead replay" : "dead discard", {"--cancel": cancel, "--who": by.who, "--why": by.why, "--yes": true}, row.id),
    run: async (by) => endResult(await post(verb, {ids: [row.id], ...by}), cancel ? "cancelled" : "discarded"),
    done: reload,
  };
}

function buttons(row, reload) {
  const wanted = row.replays.some(isOpenReplay);
  return h("div", {class: "row"},
    !wanted && !row.without_bytes && actButton("Replay …", replayAction(row, reload)),
    !wanted && actButton("Edit and replay …", editAction(row, reload)),
    wanted && actButton("Cancel the replay …", endAction(row, reload, "cancel")),
    actButton("Discard …", endAction(row, reload, "discard"), true));
}

// Producers write what they like: a number that is no time is shown as it is.
function moment(milliseconds, type) {
  const date = new Date(milliseconds);
  return `${Number.isNaN(date.valueOf()) ? `${milliseconds} ms` : time(date.toISOString())} (${type})`;
}

function since(row) {
  const parts = [];
  if (row.ended_at) parts.push(h("p", null, `${row.state} at ${time(row.ended_at)} by ${row.ended_by}: ${row.ended_why}`));
  if (row.completed_by) parts.push(h("p", {class: "sentence"}, "The operation was completed since, by ", link(address("explain", {which: row.completed_by}), row.completed_by), ". A replay would be refused; discard the letter."));
  if (row.failed_again) parts.push(h("p", {class: "sentence bad"}, `Failed again at ${time(row.failed_again.last_at)}: ${row.failed_again.last_error}`));
  return parts;
}

function replays(rows) {
  return table("Replays", [
    {label: "Wanted", cell: (replay) => time(replay.wanted_at), short: true},
    {label: "By", cell: (replay) => replay.who},
    {label: "Why", cell: (replay) => `${replay.why}${replay.edited ? " (edited payload)" : ""}`},
    {label: "Outcome", cell: (replay) => (isOpenReplay(replay) ? `open, runs: ${replay.runs}` : `${replay.outcome} ${time(replay.ended_at)}`), tell: (replay) => (replay.outcome === "completed" ? "good" : "")},
    {label: "Detail", cell: (replay) => replay.detail ?? replay.last_error},
  ], rows);
}

export const letter = {
  refresh: true,
  load: (words) => get("letter", {which: words.which}),
  show: (_words, row, _group, reload) => [
    h("h1", null, `Dead letter ${row.id}`),
    h("p", null, h("strong", {class: row.state === "open" ? "bad" : ""}, row.state), ` – ${row.reason}`),
    h("p", {class: "sentence bad"}, row.error),
    since(row),
    row.replays.length > 0 && replays(row.replays),
    row.state === "open" && mayOrder("dead") && buttons(row, reload),
    h("h2", null, "What was given up on"),
    facts([
      ["message", link(address("explain", {which: place(row)}), place(row))], ["group", `${row.group_id}, generation ${row.generation}`],
      ["attempts", `${row.attempts}, from ${time(row.first_at)} to ${time(row.created_at)}`], ["handler", `${row.handler} ${row.handler_version}`],
      ["key", row.key && link(address("keys", {key: row.key, scope: row.scope, tenant: row.tenant}), row.key)], ["scope", row.scope], ["tenant", row.tenant],
      ["sqlstate", row.sqlstate], ["fingerprint", row.fingerprint && `${row.fingerprint_rule} ${row.fingerprint}`], ["other", row.other],
      ["timestamp", row.message_timestamp === null ? null : moment(row.message_timestamp, row.timestamp_type)], ["record key", row.without_bytes ? "not kept" : bytes(row.message_key)],
    ]),
    h("h2", null, "Payload"), payload(row.payload, `payload?letter=${row.id}`, !row.without_bytes),
    h("h2", null, !row.without_bytes ? `Headers (${row.header_count})` : row.header_count > 0 ? "Headers: only this is kept" : "Headers: not kept"),
    row.headers.length > 0 && table(row.header_count > row.headers.length ? `The first ${row.headers.length}` : "In their order", [
      {label: "Name", cell: (one) => bytes(one.name)}, {label: "Value", cell: (one) => bytes(one.value)}], row.headers),
    commandLine(look("dead show", {}, row.id)),
  ].flat().filter(Boolean),
};
