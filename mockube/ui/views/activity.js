import { html } from "../html.js"; export function Activity() { return html`<p>…</p>`; }
