// Why objects are not healthy: the fields that a cause names with their last writers, and all objects that it concerns.
import { causeLevel, causeText, Facts } from "./explanation.js";
import { naturally, shortUser, timeText } from "./health.js";
import { html } from "./html.js";

const WRITTEN = { ADDED: "created", DELETED: "deleted" };
const NAMES = 24;

/** A cause with what it names first. `link` returns a link to an object, by its part; `title` is the level of titles in it. */
export function ProblemCard({ problem, isOpen, link, title = "h4", children }) {
  const { object, origins = [], affected = [], affectedCount = affected.length } = problem;
  const about = origins[0]?.object ?? object;
  return html`
    <details class="problem-card" open=${isOpen}>
      <summary><span class="kind">${about.kind}</span> <b>${about.name}</b> ${about.namespace && html`<span class="muted">in ${about.namespace}</span>`}
        ${affectedCount > 0 && html` <span class="muted">${affectedCount + (origins.length ? 1 : 0)} ${origins.length ? "" : "other "}objects are not healthy because of it</span>`}
        <p class=${`cause ${causeLevel(problem)}`}>${causeText(problem)}</p></summary>
      ${origins.map((origin) => html`<${Origin} origin=${origin} link=${link} title=${title} />`)}
      <${Affected} objects=${[{ ...object, key: problem.key }, ...affected]} count=${affectedCount + 1} link=${link} title=${title} />
      <${Facts} explanation=${problem} title=${title}>${children}<//>
    </details>`;
}

function Origin({ origin, link, title }) {
  const { object, field = "", writes = [], key } = origin;
  return html`
    <${title}>Who wrote ${field && html`<code>${field}</code> of `}${link({ ...object, key }, "changes")}<//>
    ${writes.length === 0 && html`<p class="muted">No write of it is known.</p>`}
    <ul class="changes">${writes.map((write) => html`
      <li><div><span class="muted">${write.time ? timeText(Date.parse(write.time)) : `revision ${write.revision}`}</span> <b title=${write.user ?? write.source}>${shortUser(write.user ?? write.source)}</b>
        <span class="muted">${write.program ?? ""}</span> <span>${WRITTEN[write.type] ?? write.verb ?? "wrote"}</span></div>
        ${field && html`<div class="operation"><code>${write.source ? "" : `${write.before ?? "(not set)"} → `}${write.after ?? "(not set)"}</code></div>`}</li>`)}</ul>
    ${origin.command && html`<p class="muted"><code>${origin.command}</code></p>`}`;
}

function Affected({ objects, count, link, title }) {
  const shown = [...objects].sort((a, b) => (a.kind === "Pod") - (b.kind === "Pod") || naturally(a.kind, b.kind) || naturally(a.name, b.name)).slice(0, NAMES);
  return html`<${title}>Not healthy because of it<//>
    <p class="affected">${shown.map((each, index) => html`${index ? ", " : ""}${link(each, "why")}`)}${count > shown.length ? `, and ${count - shown.length} more` : ""}</p>`;
}
