// Published records that wait for Kafka, what the relay has halted, and one record whole.
import {actButton, mayOrder} from "./act.js";
import {get, post} from "./api.js";
import {commandLine, look, order} from "./command.js";
import {address, bytes, duration, facts, h, link, payload, table, time} from "./dom.js";

const source = (row) => `${row.source_topic}/${row.source_partition}/${row.source_offset}`;
const plain = (key) => (key === null ? null : key.text ?? `base64 ${key.base64}`);

function haltAction(verb, which, reload) {
  const skip = verb === "skip";
  const send = (words) => post(`outbox/${verb}`, skip ? {ids: [which], ...words} : {which: String(which), ...words});
  return {
    title: skip ? `Never send record ${which}` : `Send ${which} again`,
    effect: skip ? "The record is removed and never sent; hapax.operator_log keeps it whole." : "The halt ends: the relay sends again within a second.",
    danger: skip,
    command: (by) => order(`outbox ${verb}`, {"--who": by.who, "--why": by.why, "--yes": skip}, which),
    check: async (by) => {
      const told = await send({...by, dry_run: true});
      return {seen: told.halts, lines: [`It would end ${told.halts.length} halts${skip ? ` and remove ${told.records} records` : ""}.`,
        ...told.halts.map((halt) => `${halt.record === null ? `topic ${halt.topic}` : `record ${halt.record}`} – ${halt.reason}: ${halt.detail}`)]};
    },
    run: async ({who, why, seen}) => {
      const told = await send({who, why, seen});
      return `Done: ${told.halts.length} halts ended${skip ? `, ${told.records} records removed` : ""}.`;
    },
    done: reload,
  };
}

function haltCard(halt, reload) {
  const which = halt.record ?? halt.topic;
  return h("article", {class: "card bad"},
    h("h3", null, h("span", {class: "bad"}, "Halted: "), halt.record === null ? `topic ${halt.topic}` : [link(address("record", {id: halt.record}), `record ${halt.record}`), ` of ${halt.topic}`], ` – ${halt.reason}`),
    h("p", {class: "sentence bad"}, halt.detail),
    facts({key: plain(halt.record_key), since: time(halt.since), by: halt.halted_by}),
    mayOrder("outbox") && h("div", {class: "row"}, actButton("Retry …", haltAction("retry", which, reload)),
      halt.record !== null && actButton("Skip …", haltAction("skip", which, reload), true)),
    commandLine(order("outbox retry", {"--why": "what was done"}, which)));
}

function topics(state, reload) {
  return [
    h("p", null, `${state.unsent.toLocaleString("en")} unsent`, state.oldest_seconds !== null && `, the oldest for ${duration(state.oldest_seconds)}`, "."),
    state.halts.map((halt) => haltCard(halt, reload)),
    state.topics.length > 0 && table("By topic; counted up to 10,000", [
      {label: "Topic", cell: (row) => link(address("outbox", {topic: row.topic}), row.topic)}, {label: "Unsent", cell: (row) => row.unsent.toLocaleString("en"), number: true},
      {label: "Oldest", cell: (row) => link(address("record", {id: row.oldest}), row.oldest)}, {label: "Age", cell: (row) => duration(row.oldest_seconds), short: true}], state.topics),
    commandLine(look("outbox list")),
  ];
}

const held = (value) => (value === null ? "" : value === "record" ? "refused" : `its ${value} waits`);

function records(words, {records: rows, next}) {
  return [
    h("p", null, link("#/outbox", "All topics")),
    rows.length === 0 ? h("p", null, `No unsent record for ${words.topic}.`) : table(`Unsent records for ${words.topic}, oldest first`, [
      {label: "Id", cell: (row) => link(address("record", {id: row.id}), row.id), short: true}, {label: "Since", cell: (row) => time(row.created_at), short: true},
      {label: "From", cell: (row) => link(address("explain", {which: source(row)}), source(row))}, {label: "Key", cell: (row) => plain(row.record_key)},
      {label: "Bytes", cell: (row) => row.payload_bytes, number: true}, {label: "Halted", cell: (row) => held(row.held), tell: (row) => (row.held ? "bad" : "")}], rows),
    next !== null && h("nav", {class: "row", "aria-label": "Pages"}, link(address("outbox", {topic: words.topic, above: next}), "Newer")),
    commandLine(look("outbox list", {"--topic": words.topic, "--above": words.above})),
  ];
}

export const outbox = {
  refresh: true,
  load: (words) => get("outbox", words),
  show: (words, data, _group, reload) => [h("h1", null, "Outbox"), words.topic ? records(words, data) : topics(data, reload)].flat(2).filter(Boolean),
};

export const record = {
  load: (words) => get("record", {id: words.id}),
  show: (_words, row) => [
    h("h1", null, `Record ${row.id} for ${row.topic}`),
    facts([["published", time(row.created_at)], ["by", link(address("explain", {which: source(row)}), source(row))], ["idempotency-key", row.idempotency_key],
      ["halted", held(row.held)], ["record key", bytes(row.record_key)]]),
    h("h2", null, "Payload"), payload(row.payload, `payload?record=${row.id}`),
    row.headers.length > 0 && table("Headers", [{label: "Name", cell: (one) => bytes(one.name)}, {label: "Value", cell: (one) => bytes(one.value)}], row.headers),
    commandLine(look("outbox show", {}, row.id)),
  ].filter(Boolean),
};
