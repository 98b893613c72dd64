// Activity: the requests to the server as plots that move, what each client and controller does, and what was slow or refused.
import { milliseconds, shortUser, timeText } from "../health.js";
import { html, Scrolled, useEffect, useMemo, useState } from "../html.js";
import { Plot, seriesOf } from "../plot.js";
import { Requests } from "../requests.js";

const WINDOWS = { "1 minute": 60, "5 minutes": 300, "30 minutes": 1800 };
const WRITES = new Set(["create", "update", "patch", "delete", "deletecollection"]);
const LONG = new Set(["watch", "connect"]);
const ROWS = 15;

const BY = {
  client: (item) => shortUser(item.user || "nobody"),
  verb: (item) => item.verb,
  code: (item) => (item.code ? String(item.code) : item.isCut ? "cut" : item.isEnded ? "no response" : "in progress"),
};

const isFailed = (item) => item.code >= 400 || item.isCut;

/** Return what each client did, the busiest first. */
function clientsOf(items) {
  const clients = new Map();
  for (const item of items) {
    const name = item.user || "nobody";
    if (!clients.has(name)) clients.set(name, { name, requests: 0, writes: 0, conflicts: 0, refused: 0, seconds: 0, timed: 0, slowest: 0 });
    const client = clients.get(name);
    client.requests += 1;
    if (WRITES.has(item.verb)) client.writes += 1;
    if (item.code === 409) client.conflicts += 1;
    else if (isFailed(item)) client.refused += 1;
    if (LONG.has(item.verb) || !item.isEnded) continue;
    client.timed += 1;
    client.seconds += item.seconds;
    client.slowest = Math.max(client.slowest, item.seconds);
  }
  return [...clients.values()].sort((a, b) => b.requests - a.requests);
}

export function Activity({ filter, history, moment }) {
  const requests = useMemo(() => new Requests(), []);
  const [, update] = useState(0);
  const [windowName, setWindow] = useState("5 minutes");
  useEffect(() => {
    const tick = () => update((count) => count + 1);
    requests.listeners.add(tick);
    requests.run();
    const timer = setInterval(tick, 1000);
    return () => {
      clearInterval(timer);
      requests.close();
    };
  }, []);
  const to = moment ? history.timeOf(Number(moment)) : history.timeOf(0);
  const from = to - WINDOWS[windowName] * 1000;
  const items = requests.items.filter((item) => item.time >= from && item.time <= to
    && (!filter.namespace || item.namespace === filter.namespace)
    && (!filter.text || `${item.user} ${item.resource} ${item.name} ${item.agent}`.toLowerCase().includes(filter.text)));
  const slowest = items.filter((item) => !LONG.has(item.verb) && item.isEnded).sort((a, b) => b.seconds - a.seconds).slice(0, ROWS);
  const failed = items.filter(isFailed).slice(-ROWS).reverse();
  const clients = clientsOf(items);
  return html`
    <div class="bar">
      <label>Last <select value=${windowName} onChange=${(event) => setWindow(event.target.value)}>${Object.keys(WINDOWS).map((name) => html`<option key=${name}>${name}</option>`)}</select></label>
      <span class="muted">${items.length.toLocaleString("en")} requests, of the ${requests.items.length.toLocaleString("en")} that the server remembers</span>
      ${requests.problem && html`<span class="problem" role="alert">${requests.problem}</span>`}
    </div>
    <div class="panels" tabindex="0" role="group" aria-label="Activity">
      ${Object.entries(BY).map(([name, key]) => html`<${Plot} key=${name} title=${`Requests by ${name}`} series=${seriesOf(items, key, from, to + 1)} name=${name} from=${from} to=${to} />`)}
      <div class="panel wide"><h2>Clients and controllers</h2><${Scrolled}><table>
        <thead><tr><th>User</th><th class="number">Requests</th><th class="number">Writes</th><th class="number">Conflicts</th><th class="number">Refused</th><th class="number">Mean</th><th class="number">Slowest</th></tr></thead>
        <tbody>${clients.map((client) => html`<tr key=${client.name}><td>${client.name}</td><td class="number">${client.requests}</td><td class="number">${client.writes}</td>
          <td class="number">${client.conflicts || ""}</td><td class=${`number ${client.refused ? "problem" : ""}`}>${client.refused || ""}</td>
          <td class="number">${client.timed ? milliseconds(client.seconds / client.timed) : ""}</td><td class="number">${client.timed ? milliseconds(client.slowest) : ""}</td></tr>`)}</tbody>
      </table><//></div>
      <${Table} title="Slowest requests" items=${slowest} />
      <${Table} title="Refused and failed, the newest first" items=${failed} />
    </div>`;
}

function Table({ title, items }) {
  return html`
    <div class="panel wide"><h2>${title}</h2>
      ${items.length === 0 ? html`<p class="muted">None.</p>` : html`<${Scrolled}><table>
        <thead><tr><th>Time</th><th>User</th><th>Verb</th><th>Request</th><th class="number">Code</th><th class="number">Took</th></tr></thead>
        <tbody>${items.map((item) => html`<tr><td>${timeText(item.time)}</td><td>${shortUser(item.user || "nobody")}</td><td>${item.verb}</td><td><code>${item.uri}</code>${item.fault ? html` <span class="problem">fault ${item.fault}</span>` : null}</td>
          <td class=${`number ${isFailed(item) ? "problem" : ""}`}>${BY.code(item)}</td><td class="number">${milliseconds(item.seconds)}</td></tr>`)}</tbody></table><//>`}
    </div>`;
}

