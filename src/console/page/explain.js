// What became of a message, by its coordinates. By an operation's key, see keys.js.
import {get} from "./api.js";
import {commandLine, look} from "./command.js";
import {address, facts, h, link, place, time} from "./dom.js";

const form = (words) => h("form", {class: "row", role: "search", onsubmit: (event) => {
  event.preventDefault();
  location.hash = address("explain", Object.fromEntries(new FormData(event.target)));
}},
h("label", null, "Message", h("input", {name: "which", value: words.which ?? "", autocomplete: "off", "data-key": "explain which", placeholder: "topic/partition/offset", size: 30})),
h("button", {type: "submit", "data-key": "explain"}, "Explain"));

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
      ["key", identity?.key && link(address("keys", {key: identity.key, scope: identity.scope, tenant: identity.tenant}), identity.key)],
      ["no key", identity?.refused && `${identity.refused}: ${identity.detail}`],
      ["its key is", rest.key && `${rest.key.status}, by ${place(rest.key)} (group ${rest.key.group}, generation ${rest.key.generation}), expires ${time(rest.key.expires_at)}`],
      ["failed", rest.attempts && facts({...rest.attempts, last_at: time(rest.attempts.last_at), next_try: time(rest.attempts.next_try)})],
      ["dead letter", dead && link(address("letter", {which: dead.id}), `${dead.id}, ${dead.reason}${dead.ended_as ? `, ${dead.ended_as}` : ""}`)],
      ["left out", rest.left_out && facts(rest.left_out)], ["published", rest.published && facts(rest.published)],
    ]),
    rest.other_keys && h("p", {class: "sentence"}, "The group ran under another key, tenant or scope than this configuration's. What was settled then seems unaccounted now."),
  ];
}

export const explain = {
  // What is not there is an answer, too.
  load: async (words) => {
    if (!words.which) return null;
    try {
      return {told: await get("explain", words)};
    } catch (error) {
      return {nothing: error.message};
    }
  },
  show: (words, data) => [
    h("h1", null, "Explain a message"),
    form(words),
    data?.nothing && h("p", {class: "sentence"}, data.nothing),
    data?.told && messageStory(data.told),
    data ? commandLine(look("explain", {}, words.which)) : h("p", {class: "quiet"}, "Coordinates tell what became of one message. To see who completed an operation, look at its ", link("#/keys", "key"), "."),
  ].flat(3).filter(Boolean),
};

