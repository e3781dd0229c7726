// Calls to other systems that are not done, and decisions about those whose outcome is unknown.
import {actButton, mayOrder} from "./act.js";
import {get, post} from "./api.js";
import {commandLine, look, order} from "./command.js";
import {address, facts, h, link, place, time} from "./dom.js";

const STATUSES = [["", "that wait for a decision"], ["started", "started"], ["answered", "answered"], ["unknown", "unknown"], ["all", "all that are open"]];
const OPTIONS = {happened: "--happened", did_not_happen: "--did-not-happen", give_up: "--give-up"};
const LABELS = {happened: "It happened …", did_not_happen: "It did not happen …", give_up: "Give up …"};
const EFFECTS = {
  happened: "A worker books the answer, and does not call.",
  did_not_happen: "A worker calls the other side again.",
  give_up: "The operation is closed: it is neither called nor booked.",
};

function decision(call, name, scopes, reload) {
  // Of a masked answer the page has no bytes to book: the one that is kept is booked, or none.
  const asks = name === "happened" && !call.answer_masked;
  const answer = h("textarea", {name: "answer", spellcheck: "false", value: call.answer ?? ""});
  const words = (by) => ({key: call.key, scope: call.scope, tenant: call.tenant, decision: name, token: call.token, ...by,
    ...(asks ? {answer: answer.value} : {})});
  return {
    title: `${LABELS[name].replace(" …", "")}: ${call.key}`,
    effect: EFFECTS[name],
    danger: name !== "happened",
    fields: asks ? [h("label", null, "The other side's answer, as JSON", answer)] : null,
    command: ({who, why}) => order("outside decide", {"--scope": scopes.length > 1 ? call.scope : "", "--tenant": call.tenant, "--token": call.token,
      [OPTIONS[name]]: asks ? answer.value || "{…}" : true, "--who": who, "--why": why, "--yes": true}, call.key),
    check: async (by) => {
      const told = await post("decide", words({...by, dry_run: true}));
      return {lines: [`The key is ${told.status}. Then ${told.effect}.`, name === "happened" && `The answer: ${told.answer}`].filter(Boolean)};
    },
    run: async ({who, why}) => `Decided: ${(await post("decide", words({who, why}))).effect}.`,
    done: reload,
  };
}

function card(call, scopes, reload) {
  const decides = call.status === "unknown" || !call.may_call;
  return h("article", {class: `card ${call.status === "unknown" ? "bad" : ""}`},
    h("h3", null, call.key, " – ", h("span", {class: call.status === "unknown" ? "bad" : ""}, call.status)),
    call.error && h("p", {class: "sentence bad"}, call.error),
    facts([["message", link(address("explain", {which: place(call)}), place(call))], ["scope", call.scope], ["tenant", call.tenant],
      ["called", call.called_at && `${time(call.called_at)}, ${call.calls} times`], ["token", String(call.token)], ["steps done", call.steps && call.steps.join(", ")], ["by", call.may_call ? call.worker : null],
      ["dead letter", call.dead_letter && link(address("letter", {which: call.dead_letter}), call.dead_letter)], ["answer", call.answer]]),
    decides && mayOrder("outside") && h("div", {class: "row"}, Object.keys(LABELS).filter((name) => call.answer === null || name !== "did_not_happen").map((name) =>
      actButton(LABELS[name], decision(call, name, scopes, reload), name !== "happened"))));
}

export const outside = {
  refresh: true,
  load: (words) => get("outside", words),
  show: (words, {scopes, calls}, _group, reload) => {
    if (scopes.length === 0) return [h("h1", null, "Outside calls"), h("p", null, "No route of this configuration calls to the outside.")];
    const status = words.status ?? "";
    return [
      h("h1", null, "Outside calls"),
      h("nav", {class: "row", "aria-label": "Which calls"}, STATUSES.map(([value, label]) =>
        (value === status ? h("strong", null, label) : link(address("outside", {status: value}), label)))),
      calls.length === 0 ? h("p", null, "None.") : calls.map((call) => card(call, scopes, reload)),
      commandLine(look("outside list", {"--status": status})),
    ].flat();
  },
};
