// The operations view: is all well, or what is not and since when.
//
// watch.js asks the gateway, which judges what is at fault, and each part of the page below
// shows some of it.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { Analytics } from "./operations/analytics.js";
import { Archives } from "./operations/archives.js";
import { Charts } from "./operations/charts.js";
import { Clients } from "./operations/clients.js";
import { Flow } from "./operations/flow.js";
import { html } from "./operations/html.js";
import { Incidents } from "./operations/incidents.js";
import { Ledger } from "./operations/ledger.js";
import { Letters } from "./operations/letters.js";
import { Settings } from "./operations/settings.js";
import { showInTab } from "./operations/tab.js";
import { TokenForm } from "./operations/token_form.js";
import { Verdict } from "./operations/verdict.js";
import { verdict } from "./operations/verdicts.js";
import { UNKNOWN, watch } from "./operations/watch.js";
import { createShell } from "./shell.js";

const STATES = { starting: "connecting", ok: "live", lost: "offline", failing: "stale", denied: "connecting" };

const shell = createShell({ page: "operations" });
// The verdict is what is read aloud, and nothing beside it.
document.getElementById("state").removeAttribute("role");

function App() {
  const [known, setKnown] = useState(UNKNOWN);
  const [watcher, setWatcher] = useState(null);
  useEffect(() => {
    let before = null;
    const started = watch((now) => {
      // When the last trouble ended is known to nobody but a page that saw it.
      before = verdict(now, Date.now() + now.skewMs, before);
      setKnown({ ...now, verdict: before });
      shell.setState(STATES[now.contact.state]);
      showInTab(before);
    });
    setWatcher(started);
  }, []);
  const { pipeline, contact } = known;
  return html`
    <h1 class="visually-hidden">Operations</h1>
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
      <${Settings} known=${known} />
    `}
  `;
}

render(html`<${App} />`, document.getElementById("operations"));
