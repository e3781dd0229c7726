// Chooses the view by the part of the address behind #, and keeps what is shown fresh.
import {get, takeToken} from "./api.js";
import {isOpen, setOperator} from "./act.js";
import {setConfig} from "./command.js";
import {duration, h} from "./dom.js";
import {overview} from "./overview.js";
import {observe} from "./pace.js";
import {partition} from "./partition.js";
import {audit} from "./audit.js";
import {letters} from "./letters.js";
import {letter} from "./letter.js";
import {replays} from "./replays.js";
import {history as operators} from "./history.js";
import {explain} from "./explain.js";
import {keys} from "./keys.js";
import {outbox, record} from "./outbox.js";
import {outside} from "./outside.js";

const REFRESH_MS = 3000;
const views = {overview, partition, audit, letters, letter, replays, explain, keys, outbox, record, outside, history: operators};
// A view without an entry in the menu: whose entry is marked.
const ENTRY = {partition: "overview", audit: "overview", letter: "letters", record: "outbox"};
const main = document.getElementById("main");
let turn = 0; // of the newest render: an older one that comes late is dropped
let owed = false; // a fresh render that another one overtook: that one is fresh, then
let shown = ""; // what the view was made of
let pressed = false; // a button that is replaced under the finger gets no click
addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { pressed = false; });

function route() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {name: name in views ? name : "overview", words: Object.fromEntries(new URLSearchParams(query ?? ""))};
}

function tellHealth(group) {
  const state = group?.state;
  const parts = [];
  const bad = (text) => h("span", {class: "bad"}, text);
  if (group?.postgres_error) parts.push(bad(`PostgreSQL does not answer: ${group.postgres_error}`));
  else if (state) {
    parts.push("PostgreSQL answers");
    if (state.kafka_age_seconds === null) parts.push("Kafka is being asked");
    else if (state.kafka_error) parts.push(bad(`Kafka does not answer: ${state.kafka_error}`));
    else parts.push("Kafka answers");
    if (state.kafka_age_seconds > 15) parts.push(`its numbers are ${duration(state.kafka_age_seconds)} old`);
    const acts = ["resume", "dead", "outbox", "outside"].some((what) => state.may[what]);
    parts.push(acts ? `you act as role ${state.may.role}`
      : `read-only: role ${state.may.role} may change nothing; start the console with --url and the operator's role`);
  }
  const line = h("span", null, parts.map((part, i) => [i > 0 && " · ", part]));
  const health = document.getElementById("health");
  if (health.textContent !== line.textContent) health.replaceChildren(line);
}

async function group() {
  const told = await get("overview");
  setConfig(told.config);
  setOperator(told.who, told.state?.may);
  observe(told.state);
  document.getElementById("group").textContent = `group ${told.group}`;
  document.title = `${told.state?.halts.length ? "HALTED " : ""}${told.group} – hapax console`;
  tellHealth(told);
  return told;
}

// Without losing the place of a reader: the focus stays, and nothing moves if nothing changed.
function put(content, key, fresh) {
  if (!fresh && (key === shown || pressed || isOpen() || !getSelection().isCollapsed)) return;
  const focused = document.activeElement;
  if (!fresh && main.contains(focused) && /^(INPUT|SELECT|TEXTAREA)$/.test(focused.tagName)) return;
  shown = key;
  const focus = focused?.dataset?.key;
  main.replaceChildren(...content());
  if (fresh) {
    const heading = main.querySelector("h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus();
  } else if (focus) {
    main.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  }
}

async function render(fresh) {
  const mine = ++turn;
  owed ||= fresh;
  const {name, words} = route();
  for (const anchor of document.querySelectorAll("nav a")) {
    const here = anchor.hash === `#/${ENTRY[name] ?? name}`;
    here ? anchor.setAttribute("aria-current", "page") : anchor.removeAttribute("aria-current");
  }
  let content;
  let key;
  try {
    const view = views[name];
    const [told, data] = await Promise.all([group(), view.load?.(words)]);
    content = () => view.show(words, data, told, () => render(true));
    key = JSON.stringify([name, words, data, view.needs?.(told)]);
  } catch (error) {
    content = () => [h("h1", null, "No answer"), h("p", {class: "sentence bad"}, error.message)];
    key = `error ${error.message}`;
  }
  if (mine !== turn) return;
  put(content, key, owed);
  owed = false;
}

async function keepFresh() {
  const view = views[route().name];
  if (!document.hidden && !isOpen() && view.refresh) await render(false);
  setTimeout(keepFresh, REFRESH_MS);
}

addEventListener("hashchange", () => {
  takeToken(); // of a console that was started again: its URL is of the same page
  render(true);
});
takeToken();
if (!location.hash) history.replaceState(null, "", "/#/overview");
render(true).then(() => setTimeout(keepFresh, REFRESH_MS));
