import { html } from "../html.js"; export function Cluster() { return html`<p>…</p>`; }
