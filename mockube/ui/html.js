// Preact with htm: components are written as templates, and nothing is built.
import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render };
export { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./vendor/hooks.js";
export const html = htm.bind(h);
