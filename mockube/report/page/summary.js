// Summary: what is not healthy and why, who wrote last, what was refused.
import { shortUser, timeText } from "../../ui/health.js";
import { html, useMemo } from "../../ui/html.js";
import { ProblemCard } from "../../ui/problem.js";
import { summaryAt } from "./past.js";

const OPEN = 1;
const MOMENT_NOTE = "This is the chosen moment. Causes were explained at the end of the run: they are here for what has not changed since; others have the state that they had.";

/** Return whether a part of the summary has a text anywhere, and is in a namespace. */
export function isFound(part, { text, namespace }) {
  const place = part.namespace ?? part.object?.namespace;
  return (!namespace || place === undefined || place === namespace) && (!text || JSON.stringify(part).toLowerCase().includes(text));
}

/** A link to an object of the report. */
export function ObjectLink({ subject, objectKey, go, tab }) {
  const title = `${subject.kind} ${subject.name}`;
  if (!objectKey || objectKey.startsWith("|")) return html`<b>${title}</b>`;
  return html`<button class="link" onClick=${() => go(objectKey, tab)}>${title}</button>`;
}

export const shortTime = (time) => (time ? timeText(Date.parse(time)) : "");

export function Summary({ recording, objects, live, history, filter, change, moment }) {
  const isReading = Boolean(moment) && objects === live;
  const isPast = Boolean(moment) && !isReading;
  const past = useMemo(() => isPast && summaryAt(recording, objects, live, Number(moment), history.timeOf(Number(moment))), [objects, objects.version, moment]);
  const summary = past ? { ...recording.summary, ...past } : recording.summary;
  const go = (select, tab = "why") => change({ select, tab });
  const selected = (name) => (summary[name] ?? []).filter((part) => isFound(part, filter));
  const problems = selected("problems");
  const { counts } = summary;
  return html`
    <div class="summary" tabindex="0" role="group" aria-label="Summary">
      <div class="about">
        <h2>${summary.title || "A cluster of mockube"}</h2>
        ${!isPast && summary.result && html`<p class="cause bad">${summary.result}</p>`}
        ${!isPast && summary.message && html`<pre class="log">${summary.message}</pre>`}
        ${moment && html`<p class="notice" role="status">${isReading ? "The moment is read." : MOMENT_NOTE}</p>`}
        <p class="muted">Kubernetes ${summary.kubernetes}${placeText(summary, isPast && moment)}: ${counts.objects} objects, ${counts.notHealthy} not healthy,${" "}
          ${counts.changes} changes, ${counts.requests} requests, ${counts.events} events.</p>
      </div>
      <div class="columns">
        <section aria-label="Not healthy"><h3>Not healthy, and why</h3>
          ${problems.length === 0 && html`<p class="muted">${summary.problems?.length ? "None matches." : "All objects are healthy."}</p>`}
          ${problems.map((problem, index) => html`<${Problem} key=${problem.key} problem=${problem} isOpen=${index < OPEN} go=${go} />`)}
        </section>
        <section aria-label="Last writes"><h3>Who wrote last</h3><${Authors} authors=${summary.authors ?? []} filter=${filter} go=${go} /></section>
      </div>
      <${Refused} items=${selected("refused")} />
      <${Warnings} items=${selected("warnings")} recording=${recording} go=${go} />
      <${Controls} summary=${summary} />
      ${summary.notes && html`<section aria-label="Left out"><h3>What is left out</h3><ul class="events">${summary.notes.map((note) => html`<li>${note}</li>`)}</ul></section>`}
    </div>`;
}

function placeText({ time, revision }, moment) {
  if (moment) return ` at revision ${moment}`;
  return time ? ` at ${time}` : revision ? ` at revision ${revision}` : "";
}

function Problem({ problem, isOpen, go }) {
  const { logs = [], lastWrites = [] } = problem;
  return html`
    <${ProblemCard} problem=${problem} isOpen=${isOpen} link=${(subject, tab) => html`<${ObjectLink} subject=${subject} objectKey=${subject.key} go=${go} tab=${tab} />`}>
      ${logs.map((log) => html`<h4>Log of ${log.container}${log.previous ? " before its restart" : ""}</h4><pre class="log">${log.lines.join("\n")}</pre>`)}
      ${lastWrites.length > 0 && html`<h4>Last writes of the object and its owners</h4><${WriteList} writes=${lastWrites} go=${go} showsAuthor=${true} />`}
    <//>`;
}

export function WriteList({ writes, go, showsAuthor }) {
  return html`<ul class="changes">${writes.map((write) => html`
    <li><div><span class="muted">${shortTime(write.time)}</span> ${showsAuthor && html`<b title=${write.author}>${shortUser(write.author)}</b>`}
      <span>${{ ADDED: "created", DELETED: "deleted" }[write.type] ?? write.verb}</span>
      <${ObjectLink} subject=${write} objectKey=${write.key} go=${go} tab="changes" />${write.othersCount ? html` <span title=${write.others.join(", ")}>and ${write.othersCount} more</span>` : null}${write.namespace && html`<span class="muted">in ${write.namespace}</span>`}</div>
      ${write.fields.map((field) => html`<div class="operation"><code>${field}</code></div>`)}
      ${write.omittedFields ? html`<div class="operation muted">and ${write.omittedFields} more fields</div>` : null}</li>`)}</ul>`;
}

function Authors({ authors, filter, go }) {
  const isNamed = ({ author }) => filter.text && author.toLowerCase().includes(filter.text);
  const chosen = authors.map((each) => ({ ...each, last: each.last.filter((write) => isFound(write, isNamed(each) ? { ...filter, text: "" } : filter)) })).filter(({ last }) => last.length);
  if (!chosen.length) return html`<p class="muted">${authors.length ? "None matches." : "No write is known."}</p>`;
  return chosen.map((each) => html`
    <details class="author" open=${!each.isComponent || Boolean(filter.text)} key=${each.author}>
      <summary><b>${each.author}</b> <span class="muted">${each.writes} ${each.writes === 1 ? "write" : "writes"}${each.isComponent ? ", a part of the control plane" : ""}</span></summary>
      <${WriteList} writes=${each.last} go=${go} />
    </details>`);
}

function Refused({ items }) {
  if (!items.length) return null;
  return html`<section aria-label="Refused requests"><h3>Refused requests, the newest first</h3><ul class="events">${items.map((each) => html`
    <li><span class="muted">${shortTime(each.time)}</span> <b class="bad">${each.code}</b> <b>${each.user || "nobody"}</b> ${each.verb} <code>${each.uri}</code>${each.count > 1 ? html` <span class="muted">${each.count} times</span>` : null}
      ${each.fault && html`<div class="bad">by the fault ${each.fault}</div>`}
      <div>${each.cause || each.message}</div>
      ${(each.remedies ?? []).map((remedy) => html`<div class="muted">${remedy.text} ${remedy.command && html`<code>${remedy.command}</code>`}</div>`)}</li>`)}</ul></section>`;
}

function Warnings({ items, recording, go }) {
  if (!items.length) return null;
  return html`<section aria-label="Warnings"><h3>Other warnings, the newest first</h3><ul class="events">${items.map((each) => html`
    <li class="warning"><span class="muted">${shortTime(each.time)}</span> <${ObjectLink} subject=${each} objectKey=${recording.keyOf(each)} go=${go} tab="overview" /> <b>${each.reason}</b> ${each.message}
      ${each.count > 1 ? html` <span class="muted">${each.count} times</span>` : null}</li>`)}</ul></section>`;
}

function Controls({ summary }) {
  const { faults = [], marks = [] } = summary;
  if (!faults.length && !marks.length) return null;
  return html`<section aria-label="Faults and Marks"><h3>Faults and Marks</h3><ul class="events">
    ${faults.map((fault) => html`<li><b>Fault ${fault.name}</b> <code>${JSON.stringify(fault.spec)}</code></li>`)}
    ${marks.map((mark) => html`<li><b>Mark ${mark.name}</b> <span class="muted">revision ${mark.revision}</span></li>`)}</ul></section>`;
}
