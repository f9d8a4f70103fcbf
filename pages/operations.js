// The operations view: is all well, or what is not and since when.
//
// watch.js asks the gateway, which judges what is at fault, and each part of the page below
// shows some of it.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { html } from "./board/html.js";
import { learn, say } from "./language.js";
import { Analytics } from "./operations/analytics.js";
import { Archives } from "./operations/archives.js";
import { Charts } from "./operations/charts.js";
import { Clients } from "./operations/clients.js";
import { Flow } from "./operations/flow.js";
import { SENTENCES } from "./operations/gateway_words.js";
import { Incidents } from "./operations/incidents.js";
import { OPERATORS_KOREAN } from "./operations/korean.js";
import { Ledger } from "./operations/ledger.js";
import { Letters } from "./operations/letters.js";
import { OtherGateways } from "./operations/other_gateways.js";
import { Settings } from "./operations/settings.js";
import { showInTab } from "./operations/tab.js";
import { TokenForm } from "./operations/token_form.js";
import { Verdict } from "./operations/verdict.js";
import { verdict } from "./operations/verdicts.js";
import { UNKNOWN, watch } from "./operations/watch.js";
import { createShell, onWords } from "./shell.js";

const STATES = { starting: "connecting", ok: "live", lost: "offline", failing: "stale", denied: "connecting" };

learn(OPERATORS_KOREAN);
learn(SENTENCES);
const shell = createShell({ page: "operations" });

function App() {
  const [known, setKnown] = useState(UNKNOWN);
  const [watcher, setWatcher] = useState(null);
  const [, setWords] = useState(0);
  useEffect(() => onWords(() => setWords((times) => times + 1)), []);
  useEffect(() => {
    let before = null;
    const started = watch((now) => {
      // When the last trouble ended is known to nobody but a page that saw it.
      before = verdict(now, Date.now() + now.skewMs, before);
      setKnown({ ...now, verdict: before });
      shell.setState(STATES[now.contact.state]);
    });
    setWatcher(started);
  }, []);
  const { pipeline, contact } = known;
  if (known.verdict) showInTab(known.verdict);
  return html`
    <h1 class="visually-hidden">${say("Operations")}</h1>
    <${Verdict} known=${known} />
    ${contact.state === "denied" && html`<${TokenForm} onToken=${watcher.now} />`}
    ${pipeline &&
    html`
      <${Flow} known=${known} />
      <${Charts} known=${known} />
      <${Ledger} known=${known} />
      <${Analytics} known=${known} />
      <${Archives} known=${known} />
      <${Incidents} known=${known} watcher=${watcher} />
      <div class="pair uneven">
        <${Clients} known=${known} watcher=${watcher} />
        <${Letters} known=${known} watcher=${watcher} />
      </div>
      <${OtherGateways} known=${known} />
      <${Settings} known=${known} />
    `}
  `;
}

render(html`<${App} />`, document.getElementById("operations"));
