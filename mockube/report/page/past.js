// The summary of a moment before the end: from the objects of then, and from what was written, refused and reported until then.
import { byCause, messageOf, named, unhealthyOf } from "../../ui/causes.js";
import { isComponent } from "../../ui/health.js";
import { fieldText } from "../../ui/trees.js";

const LAST_WRITES = 3;
const FIELDS = 3;
const ROWS = 20;
const VALUE = 80;
/** Refusals that clients expect: what does not exist, or has changed meanwhile. */
const USUAL = new Set([404, 409, 410]);

/** Return what the summary of the end has, at a moment; `time` is that of the revision. */
export function summaryAt(recording, objects, live, revision, time) {
  const changes = recording.changes.filter((change) => change.revision <= revision);
  const isBefore = (text) => Date.parse(text) <= time;
  const requests = recording.requests.filter(({ spec }) => isBefore(spec.time));
  const events = recording.events.filter((event) => isBefore(timeOfEvent(event)));
  const problems = byCause(unhealthyOf(objects).map((each) => problemOf(recording, live, each)));
  return {
    counts: { objects: objects.byKey.size, notHealthy: problems.reduce((sum, each) => sum + 1 + each.affectedCount, 0), changes: changes.length, requests: requests.length, events: events.length },
    problems, authors: authorsOf(changes), refused: refusedOf(requests, new Set(recording.components)),
    warnings: events.filter(({ type }) => type === "Warning").reverse().slice(0, ROWS).map(warningOf),
    faults: recording.faults.filter((fault) => isBefore(fault.metadata.creationTimestamp)).map((fault) => ({ name: fault.metadata.name, spec: fault.spec })),
    marks: recording.marks.filter((mark) => mark.spec.revision <= revision).map((mark) => ({ name: mark.metadata.name, revision: mark.spec.revision })),
  };
}

function problemOf(recording, live, { entry, text, level, others }) {
  const { key, object } = entry;
  const subject = named(entry);
  const isUnchanged = live.byKey.get(key)?.object.metadata.resourceVersion === object.metadata.resourceVersion;
  const own = (isUnchanged && explanationOf(recording, subject)) || { state: level === "bad" ? "Explained" : "", cause: `${text}${messageOf(object)}` };
  return { ...own, key, object: subject, affected: [...others].map(named) };
}

/** Return the explanation of an object, or the cause of the one in whose state it is; undefined if the report has neither. */
function explanationOf({ explanations, similar }, { kind, namespace, name }) {
  const isSame = (other) => other.kind === kind && other.name === name && (other.namespace ?? "") === namespace;
  const found = explanations.find(({ object }) => isSame(object));
  if (found || kind !== "Pod") return found;
  const leader = similar.find(({ others }) => others.some((other) => isSame({ ...other, kind })))?.name;
  const alike = leader && explanations.find(({ object }) => object.kind === kind && object.name === leader && (object.namespace ?? "") === namespace);
  return alike && { state: alike.state, cause: alike.cause }; // its evidence and commands name another object
}

function authorsOf(changes) {
  const authors = new Map();
  for (const change of changes) {
    const { user = "", manager, agent = "" } = change.author ?? {};
    const program = manager || agent.split(" ")[0];
    const author = !user ? "(not known)" : program && program !== user ? `${user} (${program})` : user;
    if (!authors.has(author)) authors.set(author, { author, user, isComponent: !user || isComponent(user), changes: [] });
    authors.get(author).changes.push(change);
  }
  const order = (a, b) => a.isComponent - b.isComponent || b.changes.at(-1).revision - a.changes.at(-1).revision;
  return [...authors.values()].sort(order).slice(0, ROWS).map((each) => ({
    author: each.author, user: each.user, isComponent: each.isComponent, writes: each.changes.length, last: each.changes.slice(-LAST_WRITES).reverse().map((change) => writeOf(change, each.author)),
  }));
}

function writeOf({ time = "", type, object, author = {}, patch, revision }, name) {
  const operations = type === "MODIFIED" ? patch ?? [] : [];
  const { resource, kind, namespace = "" } = object;
  return {
    time, type, kind, namespace, name: object.name, key: `${resource}|${namespace}|${object.name}`, author: name, revision,
    verb: `${author.verb ?? "changed"}${author.subresource ? `/${author.subresource}` : ""}`,
    fields: operations.slice(0, FIELDS).map(fieldOf), omittedFields: Math.max(0, operations.length - FIELDS),
  };
}

function fieldOf({ op, path, value }) {
  const field = fieldText(path);
  const text = JSON.stringify(value) ?? "";
  return `${field}: ${op === "remove" ? "(not set)" : text.length > VALUE ? `${text.slice(0, VALUE)}…` : text}`;
}

function refusedOf(requests, components) {
  const groups = new Map();
  for (const { spec, status = {} } of requests) {
    const user = spec.user ?? "";
    if (!(status.code >= 400) || USUAL.has(status.code) || components.has(user)) continue;
    const group = `${status.code} ${user} ${spec.verb} ${spec.uri}`;
    const before = groups.get(group);
    groups.delete(group); // the newest is the last one
    groups.set(group, { time: spec.time, code: status.code, user, verb: spec.verb, uri: spec.uri, namespace: spec.namespace, message: status.message ?? "", fault: status.fault, count: (before?.count ?? 0) + 1 });
  }
  return [...groups.values()].reverse().slice(0, ROWS);
}

export const timeOfEvent = (event) => event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp;

function warningOf(event) {
  const { apiVersion = "", kind = "", name = "", namespace = "" } = event.involvedObject ?? {};
  return { time: timeOfEvent(event), apiVersion, kind, name, namespace, reason: event.reason, message: event.message, count: event.count ?? 1 };
}
