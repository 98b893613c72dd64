import { html } from "../html.js"; export function Timeline() { return html`<p>…</p>`; }
