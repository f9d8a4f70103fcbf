// Sets one alert of an instrument, or changes it.

import { useState } from "preact/hooks";

import { phrase, say } from "../../language.js";
import { html } from "../html.js";
import { typedValue, valueProblem } from "./kept.js";
import { WAYS } from "./rules.js";

const KIND_NAMES = {
  price: phrase("Price"),
  change: phrase("Change from the previous close"),
  burst: phrase("Burst of trading"),
};
const WAY_NAMES = { up: phrase("rises to"), down: phrase("falls to"), either: phrase("reaches, either way") };
const CHANGE_NAMES = { up: phrase("up by"), down: phrase("down by"), either: phrase("either way by") };

// What one press sets: this far from the previous close, either way.
const USUAL = { kind: "change", way: "either", value: "5" };

// Properties: isin, alert (the one that is changed, or undefined), price (the one shown, a
// proposal), hasClose, onSet(alert) which returns why not, or null; onCancel() or undefined.
export function AlertForm({ isin, alert, price, hasClose, onSet, onCancel }) {
  const [kind, setKind] = useState(alert?.kind ?? "price");
  const [way, setWay] = useState(alert?.way ?? "up");
  const [text, setText] = useState(alert?.value ?? "");
  const [isOnce, setOnce] = useState(alert?.isOnce ?? true);
  const [answer, setAnswer] = useState("");
  const key = alert?.id ?? "new";
  const take = (asked) => {
    const problem = valueProblem(asked.kind, asked.value) ?? onSet({ id: alert?.id, isin, isOnce, ...asked });
    setAnswer(problem ?? say("Set."));
    if (problem === null) setText("");
    if (problem === null) onCancel?.();
  };
  const set = (event) => {
    event.preventDefault();
    take(kind === "burst" ? { kind, way: "either", value: null } : { kind, way, value: typedValue(text) });
  };
  const names = kind === "price" ? WAY_NAMES : CHANGE_NAMES;
  return html`
    <form class="alert-form" onSubmit=${set} noValidate>
      <select id=${`alert-kind-${key}`} aria-label=${say("What of it")} value=${kind} onChange=${(event) => setKind(event.target.value)}>
        ${Object.entries(KIND_NAMES).map(
          ([each, name]) => html`<option key=${each} value=${each} disabled=${each === "change" && !hasClose}>${say(name)}</option>`,
        )}
      </select>
      ${kind !== "burst" &&
      html`
        <select id=${`alert-way-${key}`} aria-label=${say("Which way")} value=${way} onChange=${(event) => setWay(event.target.value)}>
          ${WAYS.map((each) => html`<option key=${each} value=${each}>${say(names[each])}</option>`)}
        </select>
        <input
          id=${`alert-value-${key}`}
          type="text"
          inputmode="decimal"
          autocomplete="off"
          maxlength="40"
          aria-label=${kind === "price" ? say("Price") : say("Per cent")}
          placeholder=${kind === "price" ? (price ?? "") : "5"}
          value=${text}
          onInput=${(event) => setText(event.target.value)}
        />
        ${kind === "change" && html`<span aria-hidden="true">%</span>`}
      `}
      <select id=${`alert-often-${key}`} aria-label=${say("How often")} value=${isOnce ? "once" : "each"} onChange=${(event) => setOnce(event.target.value === "once")}>
        <option value="once">${say("once")}</option>
        <option value="each">${say("each time")}</option>
      </select>
      <button type="submit">${alert === undefined ? say("Set alert") : say("Change it")}</button>
      ${onCancel && html`<button type="button" class="quiet" onClick=${onCancel}>${say("Leave it")}</button>`}
      ${alert === undefined &&
      hasClose &&
      html`<button type="button" onClick=${() => take(USUAL)}>${say("Alert at ±{percent} %", { percent: USUAL.value })}</button>`}
      ${kind === "burst" &&
      html`<p class="soft">${say("A burst is told when it is over, where the analytics job looks for bursts.")}</p>`}
      <span role="status">${answer}</span>
    </form>
  `;
}
