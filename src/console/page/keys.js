// Idempotency keys: one looked up, with what became of its operation; or all in their order, 50 a page.
import {get} from "./api.js";
import {commandLine, look, word} from "./command.js";
import {address, facts, h, link, place, table, time} from "./dom.js";

const STATUSES = ["", "completed", "failed", "forgotten", "started", "answered", "unknown"];
const FILTER = {from: "--from", status: "--status", scope: "--scope", tenant: "--tenant", older_than: "--older-than"};

function form(words) {
  const field = (name, label, more) => h("label", null, label, h("input", {name, value: words[name] ?? "", autocomplete: "off", size: 14, "data-key": `keys ${name}`, ...more}));
  const status = h("select", {name: "status", "data-key": "keys status"}, STATUSES.map((one) => h("option", {value: one, selected: one === (words.status ?? "")}, one || "any")));
  return h("form", {class: "row", role: "search", onsubmit: (event) => {
    event.preventDefault();
    location.hash = address("keys", Object.fromEntries(new FormData(event.target)));
  }},
  field("key", "Key", {size: 30}), field("scope", "Scope"), field("tenant", "Tenant"),
  field("from", "or list from this key on"), h("label", null, "Status", status), field("older_than", "Unchanged for", {placeholder: "2h, 7d", size: 8}),
  h("button", {type: "submit", "data-key": "keys"}, "Show"));
}

const tone = (row) => ({completed: "good", failed: "bad", unknown: "bad"}[row.status] ?? "");
const ofMessage = (row) => (row.generation === 0 ? `a request to ${row.topic}` : link(address("explain", {which: place(row)}), place(row)));

const card = (row) => h("article", {class: "card"},
  h("h3", null, h("span", {class: tone(row)}, row.status)),
  h("p", {class: "sentence"}, row.story),
  facts([["scope", row.scope], ["tenant", row.tenant], ["message", ofMessage(row)], ["group", `${row.group_id}, generation ${row.generation}`],
    ["error", row.error], ["result", row.result], ["fingerprint", row.fingerprint && `${row.fingerprint_rule} ${row.fingerprint}`], ["duplicates", String(row.duplicates)],
    ["created", time(row.created_at)], ["updated", time(row.updated_at)], ["expires", time(row.expires_at)],
    ["its record", row.record && link(address("keys", {key: row.record.idempotency_key}), row.record.idempotency_key)]]));

const letters = (rows) => table("Dead letters under it, newest first", [
  {label: "Id", cell: (row) => link(address("letter", {which: row.id}), row.id), short: true}, {label: "Since", cell: (row) => time(row.created_at), short: true},
  {label: "Message", cell: place}, {label: "State", cell: (row) => row.state}, {label: "Reason", cell: (row) => row.reason},
  {label: "Attempts", cell: (row) => row.attempts, number: true}, {label: "Replays", cell: (row) => row.replays.map((one) => one.outcome ?? "open").join(", ")},
  {label: "Error", cell: (row) => row.error}], rows);

function story(words, {told, nothing}) {
  const narrow = {"--scope": words.scope, "--tenant": words.tenant};
  return [
    nothing ? h("p", {class: "sentence"}, nothing) : [
      h("h2", null, `Key ${told.key}`),
      told.keys.length === 0 && h("p", null, "No key row: nothing took effect under it, or retention has removed it."),
      told.keys.map(card),
      told.dead_letters.length > 0 && letters(told.dead_letters)],
    commandLine(look("explain", {"--key": words.key, ...narrow})), commandLine(look("keys show", narrow, words.key)),
  ];
}

function listCommand(words) {
  const behind = words.behind_scope && !words.from?.startsWith("-");
  const options = Object.fromEntries(Object.entries(FILTER).map(([name, option]) => [option, behind && name === "from" ? null : words[name]]));
  const after = behind ? ` --after ${[words.from, words.behind_scope, words.behind_tenant ?? ""].map(word).join(" ")}` : "";
  return commandLine(look("keys list", options) + after);
}

function list(words, {keys: rows, next, after}) {
  const {from, behind_scope: _scope, behind_tenant: _tenant, ...filter} = words;
  const behind = after ? {behind_scope: after[1], behind_tenant: after[2]} : {};
  return [
    rows.length === 0 ? h("p", null, "No key fits.") : table(`${rows.length} keys, in their order`, [
      {label: "Key", cell: (row) => link(address("keys", {key: row.key, scope: row.scope, tenant: row.tenant}), row.key)},
      {label: "Scope", cell: (row) => row.scope},
      ...(rows.some((row) => row.tenant) ? [{label: "Tenant", cell: (row) => row.tenant}] : []),
      {label: "Status", cell: (row) => (row.answered ? `${row.status}, answered ${row.answered}` : row.status), tell: tone},
      {label: "Message", cell: ofMessage}, {label: "Updated", cell: (row) => time(row.updated_at), short: true}, {label: "Error", cell: (row) => row.error}], rows),
    next !== null && !after && h("p", {class: "quiet"}, "Looked at 100,000 keys; later ones may fit, too."),
    h("nav", {class: "row", "aria-label": "Pages"},
      from && link(address("keys", filter), "First"),
      next !== null && link(address("keys", {...filter, from: next, ...behind}), "Later")),
    listCommand(words),
  ];
}

export const keys = {
  // What is not there is an answer, too.
  load: async (words) => {
    if (!words.key) return get("keys", words);
    try {
      return {told: await get("explain", {key: words.key, scope: words.scope, tenant: words.tenant})};
    } catch (error) {
      return {nothing: error.message};
    }
  },
  show: (words, data) => [
    h("h1", null, "Keys"),
    form(words),
    words.key ? story(words, data) : list(words, data),
  ].flat(4).filter(Boolean),
};
