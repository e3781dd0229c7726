// One dialog for every order: what it does, who and why, the command line that does the same, a dry
// run if there is one, and the result.
import {h} from "./dom.js";
import {commandLine} from "./command.js";

let who = "";
let may = {};
export function setOperator(name, rights) {
  who = who || name;
  may = rights ?? {};
}
export const mayOrder = (what) => may[what] === true;
export const isOpen = () => document.querySelector("dialog[open]") !== null;

// `action`: {title, effect, danger, fields: [elements], command: ({who, why}) → text,
//   check: async ({who, why}) → {lines, seen}, run: async ({who, why, seen}) → sentence, done}. Without
//   run: the command line alone can do it.
export function act(action) {
  const whoInput = h("input", {name: "who", required: true, autocomplete: "off", value: who});
  const whyInput = h("input", {name: "why", required: true, autocomplete: "off", maxlength: 1000});
  const command = h("div", {class: "command"});
  const told = h("div", {role: "status", class: "told", tabindex: "-1"});
  const close = h("button", {type: "button", onclick: () => dialog.close()}, "Close");
  const submit = h("button", {type: "submit", class: action.danger ? "do danger" : "do"}, action.check ? "Dry run" : "Do it");
  let checked = null;

  const named = () => ({who: whoInput.value.trim(), why: whyInput.value.trim()});
  const showCommand = () => command.replaceChildren(commandLine(action.command(named())));
  const tell = (text, kind) => told.replaceChildren(h("p", {class: `sentence ${kind ?? ""}`}, text));

  async function go(event) {
    event.preventDefault();
    if (!action.run) return;
    submit.disabled = true;
    inputs.disabled = true; // the answer is about what they hold now
    tell("Asking PostgreSQL …");
    try {
      if (action.check && checked === null) {
        checked = await action.check(named());
        tell(["Dry run: nothing was changed.", ...checked.lines].join("\n"));
        submit.textContent = "Do it";
        submit.disabled = false;
        inputs.disabled = false;
        told.focus(); // not the button: a second Enter must not be the order
        return;
      }
      who = named().who;
      tell(await action.run({...named(), ...checked}));
      submit.remove();
      close.focus();
      action.done?.();
    } catch (error) {
      tell(error.message, "bad");
      checked = null;
      if (action.check) submit.textContent = "Dry run";
      submit.disabled = false;
      inputs.disabled = false;
      told.focus();
    }
  }

  const restart = () => {
    if (!action.check || checked === null) return;
    checked = null;
    submit.textContent = "Dry run";
    told.replaceChildren();
  };
  const inputs = h("fieldset", {class: "plain"}, action.fields ?? null,
    h("label", null, "Who", whoInput), h("label", null, "Why (kept in hapax.operator_log)", whyInput));
  const form = h("form", {onsubmit: go, oninput: () => { restart(); showCommand(); }},
    inputs, h("p", {class: "quiet"}, "The command line that does the same:"), command, told,
    h("div", {class: "row"}, action.run && submit, close));
  const opener = document.activeElement?.dataset?.key;
  const dialog = h("dialog", {"aria-labelledby": "act-title", onclose: () => {
    dialog.remove();
    document.querySelector(`[data-key="${CSS.escape(opener ?? "")}"]`)?.focus();
  }}, h("h2", {id: "act-title"}, action.title), action.effect && h("p", null, action.effect), form);
  showCommand();
  document.body.append(dialog);
  dialog.showModal();
  (whoInput.value ? whyInput : whoInput).focus();
}

export function actButton(label, action, danger) {
  return h("button", {type: "button", class: danger ? "danger" : null, "data-key": `act ${action.title}`,
    onclick: () => act({...action, danger})}, label);
}
