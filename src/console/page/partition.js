// One partition: what holds it up, how far it is, and what to type.
import {get} from "./api.js";
import {commandLine, look} from "./command.js";
import {address, duration, facts, h, link, table, time} from "./dom.js";
import {haltCard, stateClass, waiting} from "./overview.js";
import {paceOf, plot} from "./pace.js";

const STALLED_SECONDS = 60;
const BEFORE = 900; // of the 1,000 offsets that one look at fates takes

// What a state means and what follows, for somebody who did not build this.
function meaning(row) {
  const state = row.state;
  if (state.startsWith("halted")) return "Nothing of it is settled until an operator decides. Its messages stay in Kafka.";
  if (state === "refused") return "Kafka does not let the user of kafka.* read the topic. hapax check names what is missing.";
  if (state === "not started") return "No worker of this group has started it. It has no checkpoint.";
  if (state === "left") return "Its worker gave it back, and none has taken it since. Start a worker, or see why none starts.";
  if (state === "owner is gone") return "Its worker died. Kafka gives it to another worker after session.timeout.ms, 45 s by default. If it stays so, start a worker.";
  if (state.startsWith("taken")) return "Workers that took it ended before they settled anything. The message at the checkpoint is the likely cause; the workers' logs tell how they ended.";
  if (row.lag > 0 && row.age_seconds > STALLED_SECONDS)
    return `Its checkpoint has not moved for ${duration(row.age_seconds)} though messages are there. A message that waits for a retry, or a slow handler, holds it.`;
  return row.lag === 0 ? "A worker has it, and all is settled." : "A worker has it.";
}

function way(row, where) {
  const number = (value) => value?.toLocaleString("en") ?? null;
  return facts([
    ["Kafka's end", number(row.end)],
    ["committed to Kafka", number(row.committed)],
    ["lag", number(row.lag)],
    ["checkpoint", row.checkpoint === null ? null : h("span", null, `${number(row.checkpoint)}; all below is settled`)],
    ["next to settle", row.lag !== 0 && row.checkpoint !== null && link(address("explain", {which: `${where}/${row.checkpoint}`}), `${where}/${row.checkpoint}`)],
    ["moved", row.age_seconds === null ? null : `${duration(row.age_seconds)} ago`],
    ["owner", row.owner], ["epoch", row.epoch], ["generation", row.generation], ["starts next as", row.start_as],
    ["open transaction", row.open_transaction_at === null ? null : `since offset ${row.open_transaction_at}; workers read nothing from there on until its producer ends it`],
  ].filter(([, value]) => value !== false));
}

const changes = (rows) => table("Jumps of its position, newest first", [
  {label: "At", cell: (row) => time(row.at), short: true}, {label: "From", cell: (row) => row.from_offset?.toLocaleString("en"), number: true},
  {label: "To", cell: (row) => row.to_offset.toLocaleString("en"), number: true}, {label: "Cause", cell: (row) => row.cause.replaceAll("_", " ")},
  {label: "Who", cell: (row) => row.who}, {label: "Why", cell: (row) => row.why}], rows);

export const partition = {
  refresh: true,
  load: (words) => get("partition", words),
  needs: (group) => group,
  show: (words, told, {state}, reload) => {
    const where = `${words.topic}/${words.partition}`;
    const row = state?.partitions.find((one) => `${one.topic}/${one.partition}` === where);
    if (!row) return [h("h1", null, where), h("p", null, "This group knows no such partition."), commandLine(look("status"))];
    const halts = state.halts.filter((halt) => halt.topic === row.topic && (halt.whole_route || halt.partition === row.partition));
    return [
      h("h1", null, where, " – ", h("span", {class: stateClass(row)}, row.state)),
      h("p", {class: `sentence ${stateClass(row) === "bad" ? "bad" : ""}`}, meaning(row)),
      halts.map((halt) => haltCard(halt, reload)),
      h("h2", null, "How far it is"), way(row, where), plot(paceOf(where)),
      told.waiting.length > 0 && [h("h2", null, "Messages that wait for a retry"), waiting(told.waiting)],
      told.changes.length > 0 && [h("h2", null, "Jumps"), changes(told.changes)],
      h("h2", null, "What to type"),
      row.checkpoint !== null && row.lag !== 0 && commandLine(look("explain", {}, `${where}/${row.checkpoint}`)),
      commandLine(look("offsets show", {}, where)),
      row.checkpoint !== null && h("p", null, link(address("audit", {topic: row.topic, partition: String(row.partition), from: String(Math.max(0, row.checkpoint - BEFORE))}), "What became of its offsets around the checkpoint")),
      commandLine(look("audit", {"--topic": row.topic, "--partition": row.partition})),
    ].flat(2).filter(Boolean);
  },
};
