// The command line that shows or does the same, to be pasted into a shell.
import {h} from "./dom.js";

// A message may hold anything, so what is not plain is quoted; control characters in $'…'.
export function word(text) {
  const plain = String(text);
  if (/^[A-Za-z0-9_./:@%+=,-]+$/.test(plain)) return plain;
  if (!/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/.test(plain)) return `'${plain.replaceAll("'", "'\\''")}'`;
  const escaped = [...plain].map((c) => {
    const code = c.codePointAt(0);
    if (c === "'" || c === "\\") return `\\${c}`;
    if (code < 32 || code === 127) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code > 126 ? `\\U${code.toString(16).padStart(8, "0")}` : c;
  });
  return `$'${escaped.join("")}'`;
}

let config = "worker.json";
export function setConfig(path) { config = path; }

// "hapax dead list -c worker.json --topic a" of ("dead list", {"--topic": "a"}, "17"): options
// without a value are left out, of true the name alone is given.
export function look(verbs, options, ...rest) {
  const words = Object.entries(options ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
    .map(([name, value]) => (value === true ? name : `${name}${String(value).startsWith("-") ? "=" : " "}${word(value)}`));
  const dashed = rest.some((one) => String(one).startsWith("-"));
  return ["hapax", verbs, "-c", word(config), ...words, ...(dashed ? ["--"] : []), ...rest.map(word)].join(" ");
}

// The same for an order, which needs the operator's role.
export function order(verbs, options, ...rest) {
  return look(verbs, options, ...rest).replace(`-c ${word(config)}`, `-c ${word(config)} --url "$OPERATOR"`);
}

export function commandLine(text) {
  const copy = h("button", {type: "button", class: "copy", "data-key": `copy ${text}`, onclick: async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
  }}, "Copy");
  return h("p", {class: "cli"}, h("code", null, text), copy);
}
