// Controllers: the queues of the controller manager as plots that move, and what was reconciled last.
import { CONTROL, get, isRefusal } from "../api.js";
import { milliseconds, timeText } from "../health.js";
import { html, Scrolled, useEffect, useState } from "../html.js";
import { Plot, seriesOfSamples } from "../plot.js";

const POLL_MS = 2000;
const SPAN_MS = 300_000;
const MIN_SPAN_MS = 60_000;
const ROWS = 40;

/** Return what happened between two readings of the queues: `values` of each number, by the name of the queue. */
export function differenceOf(before, after) {
  const old = new Map(before.map((each) => [each.metadata.name, each.status]));
  const grown = (field) => after.map(({ metadata: { name }, status }) => {
    const earlier = old.get(name);
    return [name, earlier && status[field] >= earlier[field] ? status[field] - earlier[field] : 0]; // it begins anew with the manager
  });
  return { adds: grown("adds"), retries: grown("retries"), reconciliations: grown("reconciliations") };
}

/** Return the newest reconciliations of all queues, or of one, the slowest first. */
export function slowestOf(queues, chosen) {
  const found = queues.filter((each) => !chosen || each.metadata.name === chosen)
    .flatMap((each) => (each.status.newest ?? []).map((one) => ({ ...one, queue: each.metadata.name })));
  return found.sort((a, b) => b.seconds - a.seconds);
}

/** Read the queues now and then, unless they are paused or the server refuses, and keep what was read for as long as the plots show: by the time of the machine, as a rate is of a queue's work. */
function useQueues(isPaused) {
  const [state, setState] = useState({ queues: null, samples: [], problem: "" });
  useEffect(() => {
    if (isPaused) return undefined;
    const abort = new AbortController();
    let timer = 0;
    const read = async () => {
      try {
        const { items } = await get(`${CONTROL}/controllers`, { signal: abort.signal });
        setState((old) => {
          const time = Date.now();
          const sample = { time, since: old.samples.at(-1)?.time ?? time, depths: items.map((each) => [each.metadata.name, each.status.depth]), ...differenceOf(old.queues ?? items, items) };
          const samples = [...old.samples.filter((each) => each.time > sample.time - SPAN_MS), sample];
          return { queues: items, samples, problem: "" };
        });
      } catch (error) {
        if (error.name === "AbortError") return;
        setState((old) => ({ ...old, problem: error.message }));
        if (isRefusal(error)) return;
      }
      timer = setTimeout(read, POLL_MS);
    };
    read();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [isPaused]);
  return state;
}

export function Controllers({ filter, moment, change, route }) {
  const { queues, samples, problem } = useQueues(Boolean(moment));
  const chosen = route.queue ?? "";
  if (moment) return html`<p class="empty">Queues are known of now only: go back to now to see them.</p>`;
  if (!queues) return html`<p class="empty" role="status">${problem || "Reading the queues …"}</p>`;
  const shown = queues.filter((each) => each.metadata.name.toLowerCase().includes(filter.text));
  const names = new Set(shown.map((each) => each.metadata.name));
  const to = samples.at(-1).time;
  const from = to - Math.max(MIN_SPAN_MS, Math.min(SPAN_MS, to - samples[0].time)); // nothing is known of before this view was opened
  const series = (field, options) => seriesOfSamples(samples.map((each) => ({ time: each.time, since: each.since, values: each[field].filter(([name]) => names.has(name)) })), from, to + 1, options);
  const found = slowestOf(shown, chosen).filter((each) => !filter.namespace || each.namespace === filter.namespace);
  return html`
    <div class="bar">
      <span class="muted">${shown.length} queues, ${shown.reduce((sum, each) => sum + each.status.depth, 0)} keys wait</span>
      ${chosen && html`<button onClick=${() => change({ queue: "" })}>Show all queues, not ${chosen} alone</button>`}
      ${problem && html`<span class="problem" role="alert">${problem}</span>`}
    </div>
    <div class="panels" tabindex="0" role="group" aria-label="Controllers">
      <${Plot} title="Reconciliations by queue" series=${series("reconciliations")} name="queues" from=${from} to=${to} />
      <${Plot} title="Keys that wait" series=${series("depths", { max: true })} name="queues" from=${from} to=${to} unit="" />
      <${Plot} title="Retries of failed keys" series=${series("retries")} name="queues" from=${from} to=${to} />
      <${Queues} queues=${shown} samples=${samples} chosen=${chosen} change=${change} />
      <div class="panel wide"><h2>The newest reconciliations of ${chosen ? `the queue ${chosen}` : "each queue"}, the slowest first</h2><${Scrolled}><table>
        <thead><tr><th class="number">Took</th><th>Time</th><th>Queue</th><th>Object</th><th>Result</th><th>Did</th></tr></thead>
        <tbody>${found.slice(0, ROWS).map((each) => html`<tr><td class="number">${milliseconds(each.seconds)}</td><td>${timeText(Date.parse(each.time))}</td><td>${each.queue}</td>
          <td>${each.namespace ? `${each.namespace}/` : ""}${each.name}</td><td class=${each.error ? "problem" : ""}>${each.result}</td>
          <td>${each.error ? html`<span class="problem">${each.error}</span>` : (each.actions ?? []).join(", ") || html`<span class="muted">nothing, or not known</span>`}</td></tr>`)}</tbody></table><//></div>
    </div>`;
}

function Queues({ queues, samples, chosen, change }) {
  const recent = samples.slice(-6);
  const seconds = recent.length > 1 ? (recent.at(-1).time - recent[0].time) / 1000 : 0;
  const rateOf = (field, name) => {
    if (seconds <= 0) return "";
    const sum = recent.slice(1).reduce((total, each) => total + (each[field].find(([other]) => other === name)?.[1] ?? 0), 0);
    return sum ? (sum / seconds).toFixed(1) : "";
  };
  const sorted = queues.toSorted((a, b) => b.status.depth - a.status.depth || b.status.reconciliations - a.status.reconciliations);
  return html`
    <div class="panel wide"><h2>Queues</h2><${Scrolled}><table>
      <thead><tr><th>Queue</th><th class="number">Wait</th><th class="number">Running</th><th class="number">Adds /s</th><th class="number">Retries /s</th><th class="number">Retries</th>
        <th class="number">Reconciliations</th><th class="number">Mean</th><th class="number">Mean wait</th><th class="number">Longest now</th></tr></thead>
      <tbody>${sorted.map(({ metadata: { name }, status }) => html`<tr key=${name}>
        <td><button class="link" aria-pressed=${chosen === name} onClick=${() => change({ queue: chosen === name ? "" : name })}>${name}</button></td>
        <td class="number">${status.depth || ""}</td><td class="number">${status.running || ""}</td><td class="number">${rateOf("adds", name)}</td><td class="number">${rateOf("retries", name)}</td>
        <td class=${`number ${status.retries ? "problem" : ""}`}>${status.retries || ""}</td><td class="number">${status.reconciliations || ""}</td>
        <td class="number">${status.reconciliations ? milliseconds(status.seconds / status.reconciliations) : ""}</td>
        <td class="number">${status.reconciliations ? milliseconds(status.waitSeconds / status.reconciliations) : ""}</td>
        <td class="number">${status.running ? milliseconds(status.longestRunningSeconds) : ""}</td></tr>`)}</tbody></table><//></div>`;
}
