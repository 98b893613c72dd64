// Health: what is not healthy now, and why, by cause.
import { API_VERSION, CONTROL, may, post } from "../api.js";
import { byCause, messageOf, named, unhealthyOf } from "../causes.js";
import { html, useEffect, useMemo, useReducer, useRef } from "../html.js";
import { ProblemCard } from "../problem.js";

/** The objects that are explained: more have the same causes. */
const MAX_EXPLAINED = 40;
const AT_ONCE = 2;
/** How long the answers are shown before changes of the objects let them be asked for again. */
const PAUSE_MS = 3000;

export function Problems({ objects, live, filter, change, moment }) {
  const found = useMemo(() => unhealthyOf(objects), [objects, objects.version]);
  const explanations = useExplanations(found.slice(0, MAX_EXPLAINED).map(({ entry }) => entry), objects === live && !moment);
  const problems = byCause(found.map((each) => problemOf(each, explanations)).filter(({ state }) => state !== "NoProblem"));
  const shown = problems.filter((problem) => isFound(problem, filter));
  const link = (subject, tab) => {
    const key = subject.key ?? objects.keyFor(subject);
    return html`<button class="link" onClick=${() => change({ select: key, tab })}>${subject.kind} ${subject.name}</button>`;
  };
  return html`
    <div class="bar"><h2>Not healthy, and why</h2> <span class="muted">${countText(problems)}</span></div>
    <div class="health" tabindex="0" role="group" aria-label="Not healthy, and why">
      ${moment && html`<p class="muted">Explanations are of now: these are the states of the chosen moment.</p>`}
      ${shown.map((problem, index) => html`<${ProblemCard} key=${problem.key} problem=${problem} isOpen=${index === 0} link=${link} title="h3" />`)}
      ${shown.length === 0 && objects.state === "live" && html`<p class="empty">${problems.length ? "None matches." : "All objects are healthy."}</p>`}
    </div>`;
}

function countText(problems) {
  const objects = problems.reduce((sum, each) => sum + 1 + each.affectedCount, 0);
  if (!objects) return "";
  return `${objects} ${objects === 1 ? "object" : "objects"}, ${problems.length} ${problems.length === 1 ? "cause" : "causes"}`;
}

function isFound(problem, { namespace, text }) {
  const places = [problem.object, ...problem.affected];
  return (!namespace || places.some((each) => each.namespace === namespace)) && (!text || JSON.stringify(problem).toLowerCase().includes(text));
}

function problemOf({ entry, text, level, others }, explanations) {
  const object = named(entry);
  const explained = explanations.get(entry.key) ?? { state: level === "bad" ? "Explained" : "", cause: `${text}${messageOf(entry.object)}` };
  return { ...explained, key: entry.key, object, affected: [...others].map(named) };
}

/** Return the statuses of the Explanations of objects, by key. One is asked for again when its object has changed, after a pause. */
function useExplanations(entries, isNow) {
  const [, update] = useReducer((count) => count + 1, 0);
  const state = useRef({ byKey: new Map(), versions: new Map(), readAt: -Infinity });
  const wanted = entries.map(({ key, object }) => `${key} ${object.metadata.resourceVersion}`).join("\n");
  useEffect(() => {
    if (!isNow) return undefined;
    let isOpen = true;
    const { byKey, versions } = state.current;
    const timer = setTimeout(async () => {
      state.current.readAt = performance.now();
      state.current.may ??= may("create", "control.mockube.dev", "explanations");
      if (!(await state.current.may.catch(() => false))) return;
      const changed = entries.filter(({ key, object }) => versions.get(key) !== object.metadata.resourceVersion);
      const next = async () => {
        for (let entry = changed.shift(); entry && isOpen; entry = changed.shift()) {
          versions.set(entry.key, entry.object.metadata.resourceVersion);
          const status = await explanationOf(entry);
          if (status) byKey.set(entry.key, status);
          else byKey.delete(entry.key);
          update();
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, next));
    }, Math.max(0, state.current.readAt + PAUSE_MS - performance.now()));
    return () => {
      isOpen = false;
      clearTimeout(timer);
    };
  }, [wanted, isNow]);
  return isNow ? state.current.byKey : new Map();
}

/** Return what a server says of an object; undefined if it does not explain it, or the object is gone: its state says what is known. */
async function explanationOf({ kind, namespace, name }) {
  const object = { apiVersion: kind.root.replace(/^\/apis?\//, ""), kind: kind.kind, namespace: namespace || undefined, name };
  try {
    return (await post(`${CONTROL}/explanations`, { apiVersion: API_VERSION, kind: "Explanation", metadata: {}, spec: { object } })).status;
  } catch {
    return undefined;
  }
}
