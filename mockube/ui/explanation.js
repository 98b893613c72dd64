// What an Explanation says: the cause, the evidence, the nodes, and what would change it.
import { html, Scrolled } from "./html.js";

/** Return the cause as a sentence: without evidence, it is what may be so. */
export const causeText = ({ state, cause }) => (state === "Unknown" ? `Not known: ${cause}` : cause);

export const causeLevel = ({ state }) => ({ NoProblem: "good", Explained: "bad" })[state] ?? "";

/** The facts of an explanation, below titles of some level; others may follow the nodes. */
export function Facts({ explanation, title = "h3", children }) {
  const { evidence = [], nodes = [], remedies = [], omitted = {} } = explanation;
  return html`
    ${evidence.length > 0 && html`<${title}>Evidence<//><ul class="events">${evidence.map((each) => html`<li>${each.text}<div class="muted">${each.source} ${each.time ?? ""}</div></li>`)}</ul>`}
    ${nodes.length > 0 && html`<${title}>Nodes<//><${Scrolled}><table><thead><tr><th>Node</th><th>Plugin</th><th>Reason</th></tr></thead><tbody>
      ${nodes.map((each) => html`<tr><td>${each.node}</td><td>${each.plugin}</td><td>${each.reason}${each.detail ? html`<div class="muted">${each.detail}</div>` : null}</td></tr>`)}</tbody></table><//>`}
    ${children}
    ${remedies.length > 0 && html`<${title}>What would change it<//><ul class="events">${remedies.map((each) => html`<li>${each.text}${each.command ? html`<div><code>${each.command}</code></div>` : null}</li>`)}</ul>`}
    ${Object.entries(omitted).map(([name, count]) => html`<p class="muted">${name}: ${count} more are left out.</p>`)}`;
}
