// Preact with htm: components are written as templates, and nothing is built.
import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render };
export { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./vendor/hooks.js";
export const html = htm.bind(h);

/** What may be wider than its place, such as a table: the keyboard scrolls it, too. */
export function Scrolled({ children }) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Table">${children}</div>`;
}
