// Activity: the requests to the server as plots that move, what each client and controller does, and what was slow or refused.
import { drawOn, themeColors } from "../canvas.js";
import { hueOf, shortUser, timeText } from "../health.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { Requests } from "../requests.js";

const WINDOWS = { "1 minute": 60, "5 minutes": 300, "30 minutes": 1800 };
const BARS = 120;
const WRITES = new Set(["create", "update", "patch", "delete", "deletecollection"]);
const LONG = new Set(["watch", "connect"]);
const ROWS = 15;

const BY = {
  client: (item) => shortUser(item.user || "nobody"),
  verb: (item) => item.verb,
  code: (item) => (item.code ? String(item.code) : "in progress"),
};

/** Return the counts of each series in each of the equal parts of a time, the largest series first. */
export function seriesOf(items, key, from, to, bars = BARS) {
  const series = new Map();
  for (const item of items) {
    if (item.time < from || item.time >= to) continue;
    const name = key(item);
    if (!series.has(name)) series.set(name, { name, total: 0, counts: new Float64Array(bars) });
    const each = series.get(name);
    each.total += 1;
    each.counts[Math.floor(((item.time - from) / (to - from)) * bars)] += 1;
  }
  const sorted = [...series.values()].sort((a, b) => b.total - a.total);
  if (sorted.length <= 8) return sorted;
  const rest = { name: "others", total: 0, counts: new Float64Array(bars) };
  for (const each of sorted.slice(7)) {
    rest.total += each.total;
    each.counts.forEach((count, index) => {
      rest.counts[index] += count;
    });
  }
  return [...sorted.slice(0, 7), rest];
}

/** Return what each client did in a time, the busiest first. */
export function clientsOf(items, from) {
  const clients = new Map();
  for (const item of items) {
    if (item.time < from) continue;
    const name = item.user || "nobody";
    if (!clients.has(name)) clients.set(name, { name, requests: 0, writes: 0, conflicts: 0, refused: 0, seconds: 0, timed: 0, slowest: 0 });
    const client = clients.get(name);
    client.requests += 1;
    if (WRITES.has(item.verb)) client.writes += 1;
    if (item.code === 409) client.conflicts += 1;
    else if (item.code >= 400) client.refused += 1;
    if (LONG.has(item.verb) || !item.code) continue;
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
  const slowest = items.filter((item) => !LONG.has(item.verb) && item.code).sort((a, b) => b.seconds - a.seconds).slice(0, ROWS);
  const failed = items.filter((item) => item.code >= 400).slice(-ROWS).reverse();
  const clients = clientsOf(items, from);
  return html`
    <div class="bar">
      <label>Last <select value=${windowName} onChange=${(event) => setWindow(event.target.value)}>${Object.keys(WINDOWS).map((name) => html`<option key=${name}>${name}</option>`)}</select></label>
      <span class="muted">${items.length.toLocaleString("en")} requests, of the ${requests.items.length.toLocaleString("en")} that the server remembers</span>
      ${requests.problem && html`<span class="problem" role="alert">${requests.problem}</span>`}
    </div>
    <div class="panels" tabindex="0" role="group" aria-label="Activity">
      ${Object.entries(BY).map(([name, key]) => html`<${Plot} key=${name} title=${`Requests by ${name}`} items=${items} by=${key} name=${name} from=${from} to=${to} />`)}
      <div class="panel wide"><h3>Clients and controllers</h3><div class="scroll"><table>
        <thead><tr><th>User</th><th class="number">Requests</th><th class="number">Writes</th><th class="number">Conflicts</th><th class="number">Refused</th><th class="number">Mean</th><th class="number">Slowest</th></tr></thead>
        <tbody>${clients.map((client) => html`<tr key=${client.name}><td>${client.name}</td><td class="number">${client.requests}</td><td class="number">${client.writes}</td>
          <td class="number">${client.conflicts || ""}</td><td class=${`number ${client.refused ? "problem" : ""}`}>${client.refused || ""}</td>
          <td class="number">${client.timed ? milliseconds(client.seconds / client.timed) : ""}</td><td class="number">${client.timed ? milliseconds(client.slowest) : ""}</td></tr>`)}</tbody>
      </table></div></div>
      <${Table} title="Slowest requests" items=${slowest} />
      <${Table} title="Refused and failed, the newest first" items=${failed} />
    </div>`;
}

const milliseconds = (seconds) => `${(seconds * 1000).toFixed(seconds < 0.01 ? 2 : 0)} ms`;

function Table({ title, items }) {
  return html`
    <div class="panel wide"><h3>${title}</h3>
      ${items.length === 0 ? html`<p class="muted">None.</p>` : html`<div class="scroll"><table>
        <thead><tr><th>Time</th><th>User</th><th>Verb</th><th>Request</th><th class="number">Code</th><th class="number">Took</th></tr></thead>
        <tbody>${items.map((item) => html`<tr><td>${timeText(item.time)}</td><td>${shortUser(item.user || "nobody")}</td><td>${item.verb}</td><td><code>${item.uri}</code>${item.fault ? html` <span class="problem">fault ${item.fault}</span>` : null}</td>
          <td class=${`number ${item.code >= 400 ? "problem" : ""}`}>${item.code}</td><td class="number">${milliseconds(item.seconds)}</td></tr>`)}</tbody></table></div>`}
    </div>`;
}

function Plot({ title, items, by, name, from, to }) {
  const canvas = useRef(null);
  const series = seriesOf(items, by, from, to + 1);
  const styleOf = (each) => hueOf(each.name, `plot ${name}`);
  useEffect(() => drawOn(canvas.current, (context, width, height) => drawBars(context, width, height, { series, styleOf, from, to })));
  const text = series.map((each) => `${each.name} ${each.total}`).join(", ");
  return html`
    <div class="panel"><h3>${title}</h3><div class="plot"><canvas ref=${canvas} role="img" aria-label=${`${title}: ${text}`}></canvas></div>
      <div class="legend">${series.map((each) => html`<span key=${each.name}><i class=${`swatch hue-${styleOf(each)}`}></i>${each.name} ${each.total}</span>`)}</div></div>`;
}

function drawBars(context, width, height, { series, styleOf, from, to }) {
  const colors = themeColors();
  const bottom = height - 18;
  const left = 34;
  const sums = new Float64Array(BARS);
  for (const each of series) each.counts.forEach((count, index) => {
    sums[index] += count;
  });
  const most = Math.max(1, ...sums);
  const seconds = (to - from) / 1000 / BARS;
  context.font = `11px ${colors.font}`;
  context.fillStyle = colors.muted;
  const rate = most / seconds;
  context.fillText(rate >= 10 ? rate.toFixed(0) : rate.toFixed(1), 0, 10);
  context.fillText("/s", 0, 24);
  for (const share of [0, 0.5, 1]) context.fillText(timeText(from + (to - from) * share, { digits: 0 }), left + (width - left - 50) * share, height - 4);
  context.fillStyle = colors.line;
  context.fillRect(left, bottom, width - left, 1);
  const step = (width - left) / BARS;
  const base = new Float64Array(BARS);
  for (const each of series) {
    context.fillStyle = colors.hues[styleOf(each)];
    for (let index = 0; index < BARS; index += 1) {
      const size = (each.counts[index] / most) * (bottom - 4);
      if (!size) continue;
      context.fillRect(left + index * step, bottom - base[index] - size, Math.max(1, step - 1), size);
      base[index] += size;
    }
  }
}
