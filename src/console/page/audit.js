// What became of each offset of a stretch of a partition: a picture, the counts, and what is open.
import {get} from "./api.js";
import {commandLine, look} from "./command.js";
import {address, h, link, svg, table, time} from "./dom.js";

const STRETCH = 1000; // kAuditedOffsets of views.hpp
const COLUMNS = 50;
const LISTED = 50; // runs
const MEANINGS = {
  completed: "this message took effect",
  duplicate: "another message of its operation took effect",
  dead_letter: "given up on, and kept",
  waiting: "failed, and is tried again",
  in_flight: "at or above the checkpoint, and nothing is known of it yet",
  not_a_message: "Kafka has no record here: a transaction's end, an aborted or a compacted record",
  skipped: "left out on purpose, by an operator, the group's start or the route",
  expired: "below the checkpoint; retention may have removed its key",
  forgotten: "below the checkpoint; its key was failed or forgotten, and taken over since",
  deleted: "Kafka has deleted it, and PostgreSQL knows nothing of it",
  not_written: "at or above the end of the log",
  unaccounted: "below the checkpoint, and nothing explains it",
};
const CALM = ["completed", "duplicate", "not_a_message", "in_flight", "not_written"];
const number = (value) => value.toLocaleString("en");
const name = (verdict) => verdict.replaceAll("_", " ");

// A square an offset, line by line. A run that goes over the end of a line goes on in the next.
function picture(from, to, runs) {
  const squares = runs.flatMap((run) => {
    const parts = [];
    for (let at = run.from - from; at < run.to - from;) {
      const end = Math.min(run.to - from, at - at % COLUMNS + COLUMNS);
      parts.push(svg("rect", {class: `fate ${run.verdict}`, x: at % COLUMNS, y: Math.floor(at / COLUMNS) + 0.05, width: end - at, height: 0.9}));
      at = end;
    }
    return parts;
  });
  return h("figure", {class: "fates"},
    svg("svg", {viewBox: `0 0 ${COLUMNS} ${Math.ceil((to - from) / COLUMNS)}`, role: "img", "aria-label": `Offsets ${from} to ${to - 1}, each in the colour of its fate; the table has the counts`}, ...squares),
    h("figcaption", {class: "quiet"}, `Offsets ${number(from)} to ${number(to - 1)}, ${COLUMNS} in a line`));
}

const swatch = (verdict) => svg("svg", {class: "swatch", viewBox: "0 0 1 1", "aria-hidden": "true"}, svg("rect", {class: `fate ${verdict}`, width: 1, height: 1}));

const counts = (told) => table("Fates", [
  {label: "Fate", cell: ([verdict]) => h("span", {class: verdict === "unaccounted" ? "bad" : null}, swatch(verdict), " ", name(verdict)), short: true},
  {label: "Offsets", cell: ([, count]) => number(count), number: true},
  {label: "Meaning", cell: ([verdict]) => MEANINGS[verdict]}], Object.entries(told.counts).filter(([, count]) => count > 0));

function remarkable(told, where) {
  const runs = told.runs.filter((run) => !CALM.includes(run.verdict));
  if (runs.length === 0) return null;
  const why = (run) => told.unaccounted.find((one) => one.offset >= run.from && one.offset < run.to)?.why;
  return table(`Neither settled nor on its way, ${runs.length > LISTED ? `the first ${LISTED} of ${runs.length} runs` : "by offset"}`, [
    {label: "From", cell: (run) => link(address("explain", {which: `${where}/${run.from}`}), `${where}/${run.from}`)},
    {label: "Offsets", cell: (run) => number(run.to - run.from), number: true},
    {label: "Fate", cell: (run) => name(run.verdict), tell: (run) => (run.verdict === "unaccounted" ? "bad" : null)},
    {label: "Why", cell: why}], runs.slice(0, LISTED));
}

function verdict(told) {
  const sentence = (text, bad) => h("p", {class: `sentence ${bad ? "bad" : ""}`}, text);
  return [
    told.checkpoint === null && sentence("The group has never started here, so this proves nothing. Is group.id right, and postgres.url?", true),
    told.other_keys && sentence("The group ran under another key, tenant or scope than this configuration's. What was settled then seems unaccounted now.", true),
    told.deleted_unsettled > 0 && sentence(`Kafka deleted ${number(told.deleted_unsettled)} of these offsets before they were settled.`, true),
    told.counts.unaccounted > 0 ? sentence(`Nothing explains ${number(told.counts.unaccounted)} of these offsets.`, true)
      : told.checkpoint !== null && told.from < told.to && sentence("Nothing here is unaccounted. Only these offsets were looked at."),
    ...told.left_out.map((gap) => h("p", null, `${number(gap.from)} to ${number(gap.to - 1)} were left out by ${gap.who} at ${time(gap.at)} (${gap.cause.replaceAll("_", " ")}): ${gap.why}`)),
  ];
}

function form(words, from) {
  return h("form", {class: "row", onsubmit: (event) => {
    event.preventDefault();
    location.hash = address("audit", {...words, from: new FormData(event.target).get("from")});
  }},
  h("label", null, "From offset", h("input", {name: "from", inputmode: "numeric", pattern: "[0-9]+", value: String(from), autocomplete: "off", "data-key": "audit from"})),
  h("button", {type: "submit", "data-key": "audit"}, `Read ${number(STRETCH)} offsets`),
  from > 0 && link(address("audit", {...words, from: String(Math.max(0, from - STRETCH))}), "Before these"),
  link(address("audit", {...words, from: String(from + STRETCH)}), "After these"));
}

export const audit = {
  load: (words) => get("audit", words),
  show: (words, told) => {
    const where = `${words.topic}/${words.partition}`;
    const from = Number(words.from ?? 0);
    const bounds = {"--topic": words.topic, "--partition": words.partition};
    return [
      h("h1", null, `What became of the offsets of ${where}`),
      form(words, from),
      told.from > from && h("p", {class: "sentence"}, `Kafka's log begins at ${number(told.from)}.`),
      told.from < from && h("p", {class: "sentence"}, `Kafka's log ends at ${number(told.from)}.`),
      verdict(told),
      told.from < told.to && [picture(told.from, told.to, told.runs), counts(told)],
      remarkable(told, where),
      h("p", {class: "quiet"}, "A picture of the moment, of this stretch alone. All offsets of the partition, without --from and --to:"),
      commandLine(look("audit", {...bounds, "--from": from, "--to": from + STRETCH})),
    ].flat(2).filter(Boolean);
  },
};
