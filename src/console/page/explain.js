// What became of a message, by its coordinates, or of an operation, by its key.
import {get} from "./api.js";
import {commandLine, look} from "./command.js";
import {address, facts, h, link, place, table, time} from "./dom.js";

function form(words) {
  const field = (name, label, more) => h("label", null, label, h("input", {name, value: words[name] ?? "", autocomplete: "off", "data-key": `explain ${name}`, ...more}));
  return h("form", {class: "row", role: "search", onsubmit: (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    location.hash = address("explain", given.which ? {which: given.which} : {key: given.key, scope: given.scope, tenant: given.tenant});
  }},
  field("which", "Message", {placeholder: "topic/partition/offset", size: 30}), field("key", "or idempotency key", {size: 30}),
  field("scope", "in scope"), field("tenant", "of tenant"), h("button", {type: "submit", "data-key": "explain"}, "Explain"));
}

// {"text"} or {"base64"} of the commands.
const plain = (value) => (value === null ? null : value.text ?? `base64 ${value.base64}`);

function messageStory({which, story, published_by: publishedBy, untold}) {
  const head = publishedBy && h("p", null, `${which} is a record that was published by ${publishedBy}.`);
  if (story === null) return [head, h("p", {class: "sentence"}, untold)];
  const {verdict, message, dead_letter: dead, identity, ...rest} = story;
  const alarming = ["unaccounted", "dead_letter", "waiting"].includes(verdict);
  return [
    head,
    h("h2", null, `${place(story)}: `, h("span", {class: alarming ? "bad" : "good"}, verdict.replaceAll("_", " "))),
    h("p", {class: "sentence"}, rest.story),
    facts([
      ["in Kafka", message === null ? `no; the log holds ${rest.log.from} to ${rest.log.to}, the last not included` : `yes, ${message.payload_bytes === null ? "a tombstone" : `${message.payload_bytes} bytes`}, record key ${plain(message.record_key) ?? "null"}`],
      ["checkpoint", rest.checkpoint === null ? "none" : String(rest.checkpoint)], ["generation", String(rest.generation)], ["halted", rest.halt],
      ["key", identity?.key && link(address("explain", {key: identity.key, scope: identity.scope, tenant: identity.tenant}), identity.key)],
      ["no key", identity?.refused && `${identity.refused}: ${identity.detail}`],
      ["its key is", rest.key && `${rest.key.status}, by ${place(rest.key)} (group ${rest.key.group}, generation ${rest.key.generation}), expires ${time(rest.key.expires_at)}`],
      ["failed", rest.attempts && facts({...rest.attempts, last_at: time(rest.attempts.last_at), next_try: time(rest.attempts.next_try)})],
      ["dead letter", dead && link(address("letter", {which: dead.id}), `${dead.id}, ${dead.reason}${dead.ended_as ? `, ${dead.ended_as}` : ""}`)],
      ["left out", rest.left_out && facts(rest.left_out)], ["published", rest.published && facts(rest.published)],
    ]),
    rest.other_keys && h("p", {class: "sentence"}, "The group ran under another key, tenant or scope than this configuration's. What was settled then seems unaccounted now."),
  ];
}

function keyStory({key, keys, dead_letters: dead}) {
  return [
    h("h2", null, `Key ${key}`),
    keys.length === 0 && h("p", null, "No key row: nothing took effect under it, or retention has removed it."),
    keys.map((row) => h("article", {class: "card"},
      h("h3", null, h("span", {class: row.status === "completed" ? "good" : row.status === "failed" || row.status === "unknown" ? "bad" : ""}, row.status)),
      facts([["scope", row.scope], ["tenant", row.tenant], ["message", link(address("explain", {which: place(row)}), place(row))], ["group", `${row.group_id}, generation ${row.generation}`],
        ["error", row.error], ["result", row.result], ["fingerprint", row.fingerprint && `${row.fingerprint_rule} ${row.fingerprint}`], ["duplicates", String(row.duplicates)],
        ["created", time(row.created_at)], ["updated", time(row.updated_at)], ["expires", time(row.expires_at)],
        ["its record", row.record && link(address("explain", {key: row.record.idempotency_key}), row.record.idempotency_key)]]))),
    dead.length > 0 && table("Dead letters under it", [
      {label: "Id", cell: (row) => link(address("letter", {which: row.id}), row.id), short: true}, {label: "Since", cell: (row) => time(row.created_at), short: true},
      {label: "Message", cell: place}, {label: "State", cell: (row) => row.state}, {label: "Reason", cell: (row) => row.reason}, {label: "Error", cell: (row) => row.error}], dead),
  ];
}

function commands(words) {
  if (words.which) return [commandLine(look("explain", {}, words.which))];
  const narrow = {"--scope": words.scope, "--tenant": words.tenant};
  return [commandLine(look("explain", {"--key": words.key, ...narrow})), commandLine(look("keys show", narrow, words.key))];
}

export const explain = {
  // What is not there is an answer, too.
  load: async (words) => {
    if (!words.which && !words.key) return null;
    try {
      return {told: await get("explain", words)};
    } catch (error) {
      return {nothing: error.message};
    }
  },
  show: (words, data) => [
    h("h1", null, "Explain a message or a key"),
    form(words),
    data?.nothing && h("p", {class: "sentence"}, data.nothing),
    data?.told && (words.which ? messageStory(data.told) : keyStory(data.told)),
    data ? commands(words) : h("p", {class: "quiet"}, "Coordinates tell what became of one message. A key tells who completed the operation."),
  ].flat(3).filter(Boolean),
};

