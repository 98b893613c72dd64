// Requests, events and logs as lists.
import { timeText } from "../../ui/health.js";
import { html, useState } from "../../ui/html.js";
import { timeOfEvent } from "./past.js";
import { isFound, ObjectLink, shortTime } from "./summary.js";

const ROWS = 300;

/** Return the first of some items, and a button for more of them. */
function useRows(items) {
  const [count, setCount] = useState(ROWS);
  const more = items.length > count ? html`<p><button onClick=${() => setCount(count + 10 * ROWS)}>Show more of ${items.length.toLocaleString("en")}</button></p>` : null;
  return [items.slice(0, count), more];
}

export function Requests({ recording, filter, change }) {
  const [onlyFailed, setOnlyFailed] = useState(false);
  const [showsComponents, setShowsComponents] = useState(false);
  const components = new Set(recording.components);
  const chosen = recording.requests.map(({ spec, status = {} }) => ({ ...spec, ...status, namespace: spec.namespace ?? "" }))
    .filter((each) => (!onlyFailed || each.code >= 400) && (showsComponents || !components.has(each.user ?? "")) && isFound(each, filter)).reverse();
  const [rows, more] = useRows(chosen);
  return html`
    <div class="bar"><label><input type="checkbox" checked=${onlyFailed} onChange=${(event) => setOnlyFailed(event.target.checked)} /> only refused and failed</label>
      <label><input type="checkbox" checked=${showsComponents} onChange=${(event) => setShowsComponents(event.target.checked)} /> also of the control plane</label>
      <span class="muted">${chosen.length.toLocaleString("en")} of ${recording.requests.length.toLocaleString("en")} requests, the newest first</span></div>
    <div class="panels records" tabindex="0" role="group" aria-label="Requests"><div class="scroll"><table>
      <thead><tr><th>Time</th><th>User</th><th>Client</th><th>Verb</th><th>Request</th><th class="number">Code</th></tr></thead>
      <tbody>${rows.map((each) => html`<tr key=${each.auditID}><td class="time">${timeText(Date.parse(each.time))}</td><td>${each.user || "nobody"}</td><td>${(each.agent ?? "").split(" ")[0]}</td><td>${each.verb}</td>
        <td><${RequestTarget} request=${each} recording=${recording} change=${change} />${each.fault ? html`<div class="bad">fault ${each.fault}</div>` : null}${each.code >= 400 && each.message ? html`<div class="muted">${each.message}</div>` : null}</td>
        <td class=${`number ${each.code >= 400 ? "problem" : ""}`}>${each.code || (each.seconds === undefined ? "…" : "none")}</td></tr>`)}</tbody></table></div>${more}</div>`;
}

function RequestTarget({ request, recording, change }) {
  const key = request.name ? recording.existing(`${request.resource}${request.group ? `.${request.group}` : ""}|${request.namespace}|${request.name}`) : "";
  if (!key) return html`<code>${request.uri}</code>`;
  return html`<button class="link" onClick=${() => change({ select: key, tab: "changes" })}><code>${request.uri}</code></button>`;
}

export function Events({ recording, filter, change }) {
  const chosen = recording.events.map((event) => ({
    time: timeOfEvent(event), type: event.type, reason: event.reason, message: event.message, count: event.count ?? 1,
    source: event.source?.component || event.reportingComponent || "", apiVersion: event.involvedObject?.apiVersion ?? "", kind: event.involvedObject?.kind ?? "", name: event.involvedObject?.name ?? "", namespace: event.involvedObject?.namespace ?? "",
  })).filter((each) => isFound(each, filter)).reverse();
  const [rows, more] = useRows(chosen);
  return html`
    <div class="bar"><span class="muted">${chosen.length.toLocaleString("en")} of ${recording.events.length.toLocaleString("en")} events, the newest first</span></div>
    <div class="panels records" tabindex="0" role="group" aria-label="Events"><div class="scroll"><table>
      <thead><tr><th>Time</th><th>Object</th><th>Reason</th><th>Message</th><th>Source</th></tr></thead>
      <tbody>${rows.map((each) => html`<tr><td class="time">${shortTime(each.time)}</td>
        <td><${ObjectLink} subject=${each} objectKey=${recording.keyOf(each)} go=${(select, tab) => change({ select, tab })} tab="overview" />${each.namespace && html`<div class="muted">in ${each.namespace}</div>`}</td>
        <td class=${each.type === "Warning" ? "problem" : ""}>${each.reason}</td><td>${each.message}${each.count > 1 ? html` <span class="muted">${each.count} times</span>` : null}</td><td>${each.source}</td></tr>`)}</tbody></table></div>${more}</div>`;
}

export function Logs({ recording, filter, change }) {
  const chosen = recording.logs.filter((log) => isFound(log, filter));
  return html`
    <div class="bar"><span class="muted">The last lines of containers that are not healthy: ${recording.logs.length}</span></div>
    <div class="panels records" tabindex="0" role="group" aria-label="Logs">${chosen.map((log) => html`
      <section class="panel" aria-label=${`${log.pod} ${log.container}`}>
        <h2 class="log-title"><${ObjectLink} subject=${{ kind: "Pod", name: log.pod }} objectKey=${recording.existing(`pods|${log.namespace}|${log.pod}`)} go=${(select) => change({ select, tab: "why" })} /> container ${log.container}${log.previous ? ", before its last restart" : ""}</h2>
        ${log.problem ? html`<p class="problem">${log.problem}</p>` : html`<pre class="log">${log.lines.join("\n")}</pre>`}</section>`)}
      ${chosen.length === 0 && html`<p class="empty">${recording.logs.length ? "No log matches." : "All containers are healthy."}</p>`}</div>`;
}
