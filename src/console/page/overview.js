// Where the group stands: what is halted first, then partitions, and what waits.
import {actButton, mayOrder} from "./act.js";
import {post} from "./api.js";
import {commandLine, look, order} from "./command.js";
import {address, duration, facts, h, link, place, table, time} from "./dom.js";
import {paceOf, plot} from "./pace.js";

const haltPlace = (halt) => (halt.whole_route ? halt.topic : `${halt.topic}/${halt.partition}`);
// For an order: it is refused if the partition is halted at another message by then.
const exactPlace = (halt) => (halt.whole_route || halt.offset === null ? haltPlace(halt) : place(halt));

function decisionAction(halt, choice, reload) {
  const where = exactPlace(halt);
  const send = (words) => post("resume", {place: where, decision: choice.name, ...words});
  return {
    title: `End the halt of ${where}: ${choice.name}`,
    effect: choice.effect,
    command: ({who, why}) => order("resume", {"--decision": choice.name, "--who": who, "--why": why, "--yes": choice.destructive}, where),
    check: async (named) => {
      const told = await send({...named, dry_run: true});
      // It may be halted for another reason by now.
      return {lines: told.effect === choice.effect ? told.lines : [`Then: ${told.effect}.`, ...told.lines], seen: told.halts};
    },
    run: async ({who, why, seen}) => {
      const told = await send({who, why, seen});
      return ["Resumed; workers notice within their checkpoint_interval.", ...told.lines].join("\n");
    },
    done: reload,
  };
}

export function haltCard(halt, reload) {
  const allowed = (choice) => mayOrder(choice.database ? "database" : "resume");
  return h("article", {class: "card bad"},
    h("h3", null, h("span", {class: "bad"}, "Halted: "), haltPlace(halt), halt.whole_route && " (whole route)", ` – ${halt.reason}`),
    h("p", {class: "sentence bad"}, halt.detail),
    facts({
      at: halt.offset === null ? null : link(address("explain", {which: place(halt)}), place(halt)),
      since: time(halt.since), by: halt.halted_by,
    }),
    h("h3", null, "Decisions that end it"),
    h("dl", null, halt.choices.map((choice) => [
      h("dt", null, allowed(choice) ? actButton(`${choice.name} …`, decisionAction(halt, choice, reload), choice.destructive) : choice.name),
      h("dd", null, choice.effect)])),
    commandLine(order("resume", {"--decision": halt.choices[0].name === "retry" ? "retry" : "DECISION", "--why": "what was done"}, exactPlace(halt))));
}

export function stateClass(row) {
  if (row.state === "running") return "good";
  return /^(halted|refused|owner is gone|taken)/.test(row.state) ? "bad" : "quiet";
}

function partitions(state) {
  if (state.partitions.length === 0) return h("p", null, "No partition was ever started.");
  const unknown = state.kafka_error || state.kafka_age_seconds === null ? "?" : "–";
  const number = (name) => (row) => row[name]?.toLocaleString("en") ?? unknown;
  return table(`${state.members === null ? "" : `${state.members} members, ${state.group_state}. `}Lag is Kafka's end minus the committed offset.`, [
    {label: "Partition", cell: (row) => link(address("partition", {topic: row.topic, partition: String(row.partition)}), `${row.topic}/${row.partition}`)},
    {label: "State", cell: (row) => row.state, tell: stateClass},
    {label: "Lag", cell: number("lag"), number: true},
    {label: "Checkpoint", cell: (row) => row.checkpoint?.toLocaleString("en") ?? "–", number: true},
    {label: "End", cell: number("end"), number: true},
    {label: "Moved", cell: (row) => (row.age_seconds === null ? "–" : `${duration(row.age_seconds)} ago`), short: true},
    {label: "Owner", cell: (row) => row.owner ?? "–"},
  ], state.partitions);
}

function notes(state) {
  return [
    ...state.refused_topics.map((topic) => h("p", {class: "sentence bad"}, `Topic ${topic.topic} of a route cannot be read: ${topic.error}`)),
    ...state.partitions.filter((row) => row.open_transaction_at !== null).map((row) => h("p", {class: "sentence"},
      `${row.topic}/${row.partition}: a producer's transaction is open since offset ${row.open_transaction_at}; workers read nothing from there on until it ends.`)),
  ];
}

export function waiting(rows) {
  return table(`${rows.length}${rows.length === 50 ? ", and perhaps more" : ""}, by their next try`, [
    {label: "Message", cell: (row) => link(address("explain", {which: place(row)}), place(row))},
    {label: "Failed", cell: (row) => `${row.count} times` + (row.crashes === 0 ? "" : `, ${row.crashes} with the process`), short: true},
    {label: "Next try", cell: (row) => (row.wait_seconds === 0 ? "now" : `in ${duration(row.wait_seconds)}`), short: true},
    {label: "Failing for", cell: (row) => time(row.first_at), short: true},
    {label: "Handler", cell: (row) => row.handler},
    {label: "Last error", cell: (row) => row.last_error},
  ], rows);
}

function deadLetters(counts) {
  if (counts.length === 0) return h("p", {class: "quiet"}, "None is open.");
  return table("Open ones, by reason; counted up to 10,000.", [
    {label: "Reason", cell: (row) => link(address("letters", {reason: row.reason}), row.reason)},
    {label: "Letters", cell: (row) => row.count.toLocaleString("en"), number: true},
    {label: "Completed since", cell: (row) => (row.completed_since === 0 ? "–" : row.completed_since.toLocaleString("en")), number: true},
  ], counts);
}

function outboxLine(state) {
  const {unsent, oldest_seconds: oldest, halts} = state.outbox;
  return h("p", null, link("#/outbox", "Outbox"), `: ${unsent.toLocaleString("en")} unsent`, oldest !== null && `, the oldest for ${duration(oldest)}`,
    halts.length > 0 && h("span", {class: "bad"}, `; ${halts.length} halted`));
}

function callsLine({calls}) {
  if (calls === null) return null;
  const open = calls.unknown + calls.abandoned > 0;
  return h("p", null, link("#/outside", "Outside calls"), ": ", h("span", {class: open ? "bad" : null}, `${calls.unknown} unknown, ${calls.abandoned} without a worker`),
    `, ${calls.started} started, ${calls.answered} answered`);
}

export const overview = {
  refresh: true,
  needs: (group) => group,
  show: (_words, _data, group, reload) => {
    const {state} = group;
    if (state === null)
      return [h("h1", null, "Overview"), h("p", {class: "sentence bad"}, `PostgreSQL does not answer: ${group.postgres_error}`),
        h("p", null, "The page asks again every 3 seconds."), commandLine(look("check"))];
    return [
      h("h1", null, state.halts.length > 0 ? "Something is halted" : "Overview"),
      state.halts.map((halt) => haltCard(halt, reload)),
      notes(state),
      h("section", null, h("h2", null, "Partitions"), partitions(state), state.partitions.length > 0 && plot(paceOf())),
      state.waiting.length > 0 && h("section", null, h("h2", null, "Messages that wait for a retry"), waiting(state.waiting)),
      h("section", null, h("h2", null, link("#/letters", "Dead letters")), deadLetters(state.dead_letters)),
      h("section", null, h("h2", null, "To Kafka and to other systems"), outboxLine(state), callsLine(state)),
      commandLine(look("status")),
    ].flat().filter(Boolean);
  },
};
