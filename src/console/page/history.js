// What operators did, who and why: the rows of hapax.operator_log.
import {get} from "./api.js";
import {commandLine, word} from "./command.js";
import {address, h, link, table, time} from "./dom.js";

const COLUMNS = "at, who, action, target, why, facts";

function filterForm(words) {
  return h("form", {class: "row", role: "search", onsubmit: (event) => {
    event.preventDefault();
    location.hash = address("history", Object.fromEntries(new FormData(event.target)));
  }},
  h("label", null, "Text in who, action, target or why", h("input", {name: "text", value: words.text ?? "", autocomplete: "off", size: 30, "data-key": "history text"})),
  h("button", {type: "submit", "data-key": "history"}, "Filter"));
}

const facts = (row) => (row.facts === null ? "not shown: console.mask is set" : h("details", null, h("summary", {"data-key": `facts ${row.id}`}, "Facts"), h("pre", null, row.facts, row.cut && " …")));

// No command lists them, so psql does.
function statement({text, before}) {
  const quoted = text && `'${text.replaceAll("'", "''")}'`;
  const narrow = [before && `id < ${Number(before)}`, quoted && `position(${quoted} IN concat_ws(E'\\n', who, action, target, why)) > 0`].filter(Boolean);
  return `SELECT ${COLUMNS} FROM hapax.operator_log${narrow.length > 0 ? ` WHERE ${narrow.join(" AND ")}` : ""} ORDER BY id DESC LIMIT 50`;
}

export const history = {
  load: (words) => get("log", words),
  show: (words, {rows, next}) => [
    h("h1", null, "What operators did"),
    h("p", {class: "quiet"}, "Orders of all groups in this database, by this page or by a command. A decision cannot be taken out of this list."),
    filterForm(words),
    rows.length === 0 ? h("p", null, "Nothing fits.") : table(`${rows.length} orders, newest first`, [
      {label: "At", cell: (row) => time(row.at), short: true}, {label: "Who", cell: (row) => row.who}, {label: "Action", cell: (row) => row.action},
      {label: "Target", cell: (row) => row.target}, {label: "Why", cell: (row) => row.why}, {label: "Facts", cell: facts}], rows),
    h("nav", {class: "row", "aria-label": "Pages"},
      words.before && link(address("history", {text: words.text}), "Newest"),
      next !== null && link(address("history", {text: words.text, before: next}), "Older")),
    commandLine(`psql "$OPERATOR" -c ${word(statement(words))}`),
  ].filter(Boolean),
};
