// What is not healthy, and which of it has one cause.
import { isComponent, isUnhealthy, stateOf } from "./health.js";
import { inOrder } from "./views/objects.js";

/** The conditions whose messages say why an object is not healthy. */
const TELLING = new Set(["PodScheduled", "Ready", "ContainersReady", "Available", "Progressing"]);

/**
 * Return the objects that are not healthy, the worst first: `{ entry, text, level, others }`. Those of one state below one owner are
 * together, and the owner of all, if it is not healthy either, is among the others.
 */
export function unhealthyOf(objects) {
  const found = new Map();
  for (const entry of objects.byKey.values()) {
    const state = stateOf(entry.kind.kind, entry.object, objects);
    if (isUnhealthy(state)) found.set(entry, state);
  }
  const groups = new Map();
  for (const entry of [...found.keys()].sort(inOrder)) {
    if (objects.childrenOf(entry).some((child) => found.has(child))) continue;
    const { text, level } = found.get(entry);
    const owner = entry.object.metadata.ownerReferences?.[0]?.uid; // of then, it may not be known itself
    const group = `${owner ?? entry.key} ${text}`;
    if (!groups.has(group)) groups.set(group, { entry, text, level, others: new Set() });
    else groups.get(group).others.add(entry);
    const root = objects.rootOf(entry);
    if (root !== entry && found.has(root)) groups.get(group).others.add(root);
  }
  return [...groups.values()].sort((a, b) => (a.level === "bad" ? 0 : 1) - (b.level === "bad" ? 0 : 1));
}

export const named = ({ kind, namespace, name, key, object }) => ({ apiVersion: object.apiVersion ?? "", kind: kind.kind, namespace, name, key });

/** Return what the object itself says of its state. */
export function messageOf(object) {
  const conditions = object.status?.conditions;
  const failed = Array.isArray(conditions) ? conditions.find(({ type, status, message }) => TELLING.has(type) && status === "False" && message) : undefined;
  return failed ? `: ${failed.message}` : "";
}

const placeOf = ({ kind, namespace = "", name }) => `${kind}|${namespace}|${name}`;

/** Return problems with one cause as one, in the order of a report: those that name one field first, and those of which one is the cause of the other. Each has `object` and `affected`. */
export function byCause(problems) {
  const places = new Map(problems.flatMap((problem, index) => [problem.object, ...problem.affected].map((each) => [placeOf(each), index])));
  const causeOf = (index) => {
    const { cause, origins = [], related = [] } = problems[index];
    if (origins.length) return `${placeOf(origins[0].object)} ${origins[0].field ?? ""}`;
    const next = related.map(({ object }) => places.get(placeOf(object))).find((other) => other !== undefined && problems[other].cause.length < cause.length && cause.includes(problems[other].cause));
    return next === undefined ? index : causeOf(next);
  };
  const groups = new Map();
  problems.forEach((problem, index) => {
    const cause = causeOf(index);
    if (!groups.has(cause)) groups.set(cause, []);
    groups.get(cause).push(problem);
  });
  const joined = [...groups.values()].map((members) => {
    const nearest = members.reduce((a, b) => (b.cause.length < a.cause.length ? b : a));
    const all = new Map(members.flatMap((each) => [each.object, ...each.affected]).map((each) => [placeOf(each), each]));
    all.delete(placeOf(nearest.object));
    const changed = members.flatMap(({ origins = [] }) => origins.filter(isChanged));
    const origins = [...new Map([...(nearest.origins ?? []), ...changed].map((each) => [`${placeOf(each.object)} ${each.field ?? ""}`, each])).values()];
    return { ...nearest, origins, affected: [...all.values()], affectedCount: all.size };
  });
  return joined.sort((a, b) => rankOf(a) - rankOf(b) || b.affectedCount - a.affectedCount);
}

/** Return the place of a cause in the order of a report: first what users changed, then what they created. */
function rankOf({ origins }) {
  if (origins.some(isChanged)) return 0;
  return origins.some((origin) => usersWrites(origin).length) ? 1 : 2;
}

const usersWrites = ({ writes = [] }) => writes.filter(({ user }) => user && !isComponent(user));
const isChanged = (origin) => usersWrites(origin).some(({ type }) => type !== "ADDED");
