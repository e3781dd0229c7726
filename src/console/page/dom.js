// Elements from text. Nothing here or elsewhere makes HTML out of a string.
import {download} from "./api.js";

// Control characters and what reorders text come out as \u{NN}, as the commands print them.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

export function visible(text) {
  return String(text).replace(UNSAFE, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}

// h("a", {href: "#/x", class: "bad"}, "text", element, [more]): null and false are left out.
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
  return element;
}

export function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// `columns`: {label, cell: row → text or element, number, short, tell: row → class}.
export function table(caption, columns, rows) {
  const shown = (row, column) => {
    const content = column.cell(row);
    const empty = content === null || content === undefined || content === "";
    const kind = [column.number && "number", column.short && "short", empty && "empty", column.tell?.(row)];
    return h("td", {"data-label": column.label, class: kind.filter(Boolean).join(" ") || null}, h("span", null, content));
  };
  return h("table", null, h("caption", null, caption),
    h("thead", null, h("tr", null, columns.map((column) =>
      h("th", {scope: "col", class: column.number && "number"}, column.label)))),
    h("tbody", null, rows.map((row) => h("tr", null, columns.map((column) => shown(row, column))))));
}

// Pairs of a name and a text, an element or an object of facts; those without a value are left out.
export function facts(pairs) {
  const list = Array.isArray(pairs) ? pairs : Object.entries(pairs);
  return h("dl", null, list.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => [h("dt", null, name.replaceAll("_", " ")), h("dd", null, fact(value))]));
}

function fact(value) {
  if (value instanceof Node || typeof value === "string") return value;
  if (Array.isArray(value)) return value.length ? value.map((one) => h("div", null, fact(one))) : "none";
  if (typeof value === "object") return facts(value);
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

// "2026-11-21 09:55:33" of PostgreSQL's ISO 8601, as the commands print it.
export function time(text) {
  if (!text) return "";
  const zone = /[+-]\d\d:\d\d$|Z$/.exec(text)?.[0] ?? "";
  return `${text.slice(0, 10)} ${text.slice(11, 19)}${zone === "+00:00" || zone === "Z" ? "" : zone}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const unit = units.find(([, size]) => seconds >= 2 * size);
  return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]}` : `${seconds} s`;
}

export const place = (row) => `${row.topic}/${row.partition}/${row.kafka_offset ?? row.offset}`;

export function link(href, ...children) { return h("a", {href, "data-key": href}, ...children); }

// "#/letters?topic=a" of {topic: "a"}; empty words are left out.
export function address(view, words) {
  const query = new URLSearchParams(Object.entries(words ?? {}).filter(([, value]) => value)).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

const HEX_WIDTH = 16;

function hexDump(hex) {
  const lines = [];
  for (let at = 0; at < hex.length; at += 2 * HEX_WIDTH) {
    const pairs = hex.slice(at, at + 2 * HEX_WIDTH).match(/../g);
    const letters = pairs.map((pair) => {
      const code = parseInt(pair, 16);
      return code >= 32 && code < 127 ? String.fromCharCode(code) : "·";
    });
    lines.push(`${(at / 2).toString(16).padStart(8, "0")}  ${pairs.join(" ").padEnd(3 * HEX_WIDTH)} ${letters.join("")}`);
  }
  return lines.join("\n");
}

// Of shown_bytes(): a short one in a line.
export function bytes(shown) {
  if (shown === null) return h("span", {class: "quiet"}, "null");
  const text = shown.text ?? `hex ${shown.hex}`;
  return h("span", {class: "bytes"}, text, shown.cut && ` … ${shown.bytes} bytes`);
}

export const NOT_KEPT = "The message is not kept (more than PostgreSQL takes, or erased): neither key, headers nor payload. Read it from Kafka.";

// The same as a block. `path`: of all of it, as a file. `kept`: false if null is no tombstone.
export function payload(shown, path, kept = true) {
  if (!kept) return h("p", {class: "bad"}, NOT_KEPT);
  if (shown === null) return h("p", {class: "quiet"}, "null (a tombstone)");
  if (shown.masked && shown.text === undefined && shown.hex === undefined)
    return h("p", {class: "quiet"}, `${shown.bytes} bytes, not shown, because they are not JSON and console.mask is set`);
  const how = shown.masked ? "without what console.mask hides; the rest in canonical form" : shown.text === undefined ? "as hex, because it is not all printable text" : "as text";
  const told = h("span", {role: "status", class: "bad"});
  const fetchAll = () => download(path, "payload.bin").catch((error) => { told.textContent = ` ${error.message}`; });
  return h("div", null,
    h("p", {class: "quiet"}, `${shown.bytes} bytes, ${how}`, shown.cut && ", the first 64 KiB", ". ",
      !shown.masked && h("button", {type: "button", class: "copy", "data-key": path, onclick: fetchAll}, "Download all of it"), told),
    h("pre", {tabindex: 0, "aria-label": "payload"}, shown.text ?? hexDump(shown.hex)));
}
