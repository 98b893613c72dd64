// The answers of a server that a report has: what the page asks of a server otherwise.

import { patched } from "../../ui/trees.js";

export const API_VERSION = "control.mockube.dev/v1alpha1";
export const CONTROL = `/apis/${API_VERSION}`;
const PAST = /^\/mockube\/at\/([0-9]+|oldest)(\/.*)?$/;

/** An answer that is an error; the page knows it by its code. */
export class ApiError extends Error {
  constructor(code, message, reason = "") {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

/** Answers from a recording. */
export class RecordedServer {
  constructor(recording) {
    this.recording = recording;
    this.kinds = kindsOf(recording.discovery);
    this.past = { revision: 0, objects: null };
  }

  async get(path, { signal } = {}) {
    await null;
    if (signal?.aborted) throw Object.assign(new Error("aborted"), { name: "AbortError" });
    const [where, query] = path.split("?");
    const then = PAST.exec(where);
    if (then && !then[2]) return { revision: Number(then[1]) || 1 };
    const objects = then ? this.objectsAt(Number(then[1])) : this.recording.objects;
    const rest = then ? then[2] : where;
    if (rest === "/api") return this.recording.discovery[0];
    if (rest === "/apis") return this.recording.discovery[1];
    if (rest.startsWith(`${CONTROL}/`)) return this.controlled(rest.slice(CONTROL.length + 1), selectorOf(query));
    return this.found(rest, objects, selectorOf(query), then ? Number(then[1]) : 0);
  }

  /** The version is that of the last change that the report has: up to it, the history is complete. */
  listOf(items) {
    const { changes, revision } = this.recording;
    return { metadata: { resourceVersion: String(changes.at(-1)?.revision ?? revision) }, items };
  }

  controlled(plural, selector) {
    if (plural !== "changes") return this.listOf(this.recording[plural] ?? []);
    const fields = Object.entries(selector);
    const matches = ({ object }) => fields.every(([field, value]) => (object[field] ?? "") === value);
    return this.listOf(this.recording.changes.filter(matches).map((spec) => ({ spec })));
  }

  /** Return an object, or the objects of a collection. */
  found(path, objects, selector, revision) {
    const parts = /^(\/api\/[^/]+|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?$/.exec(path);
    if (!parts) throw new ApiError(404, "The report does not have it.");
    const [root, namespace, plural, name] = [parts[1], parts[2], parts[3], parts[4]].map((part) => (part === undefined ? undefined : decodeURIComponent(part)));
    const resource = this.kinds.get(`${root}/${plural}`);
    if (resource === "events") return this.listOf(this.eventsOf(selector, namespace, revision));
    const problem = this.recording.refused[resource];
    if (problem && !this.recording.objects[resource]) throw new ApiError(403, problem);
    const items = (objects[resource] ?? []).filter(({ metadata }) => !namespace || metadata.namespace === namespace);
    if (name === undefined) return this.listOf(items.map(copied));
    const item = items.find(({ metadata }) => metadata.name === name);
    if (!item) throw new ApiError(404, `${plural} "${name}" is not in the report`, "NotFound");
    return copied(item);
  }

  eventsOf(selector, namespace, revision) {
    const uid = selector["involvedObject.uid"];
    return this.recording.events.filter((event) => (!uid || event.involvedObject?.uid === uid) && (!namespace || event.metadata.namespace === namespace)
      && (!revision || Number(event.metadata.resourceVersion) <= revision));
  }

  /** Return the objects of a moment by resource: those that the changes until then made, and those that did not change since. */
  objectsAt(revision) {
    if (this.past.revision !== revision) this.past = { revision, objects: objectsOfPast(this.recording, revision) };
    return this.past.objects;
  }

  /** Yield all changes, as events of a watch that goes on. */
  async* watch(path, signal) {
    if (path.startsWith(`${CONTROL}/changes`)) {
      await null;
      yield this.recording.changes.map((spec) => ({ type: "ADDED", object: { metadata: { resourceVersion: String(spec.revision) }, spec } }));
    }
    await new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(Object.assign(new Error("aborted"), { name: "AbortError" })));
    });
  }

  /** The only objects that the page creates are Explanations. */
  async post(path, body) {
    await null;
    const place = placeOf(body.spec.object);
    const status = this.recording.explanations.find(({ object }) => placeOf(object) === place);
    if (status) return { status };
    const similar = this.recording.similar.find(({ others }) => others.some((other) => placeOf({ ...other, kind: "Pod" }) === place)); // those of others are not alike
    if (similar) return { note: `Its state is that of ${similar.name}, which the report explains.` };
    return { note: "The report has no explanation: the object was healthy, or none was asked for." };
  }
}

let server = null;

/** Set the server that the page asks. */
export function setServer(value) {
  server = value;
}

export const get = (path, options) => server.get(path, options);
export const watch = (path, signal) => server.watch(path, signal);
export const post = (path, body) => server.post(path, body);

/** Return the paths of collections, each with its resource, such as deployments.apps. */
function kindsOf(documents) {
  const kinds = new Map();
  for (const group of documents.flatMap((document) => document.items ?? [])) {
    const name = group.metadata.name ?? "";
    for (const { version, resources } of group.versions ?? []) {
      const root = name ? `/apis/${name}/${version}` : `/api/${version}`;
      for (const each of resources ?? []) kinds.set(`${root}/${each.resource}`, name ? `${each.resource}.${name}` : each.resource);
    }
  }
  return kinds;
}

/** Return the values of a field selector by their fields; a comma or = within a value has a backslash before it. */
function selectorOf(query) {
  const text = new URLSearchParams(query ?? "").get("fieldSelector") ?? "";
  const parts = text.match(/(?:[^\\,=]|\\.)+/g) ?? [];
  const values = parts.map((part) => part.replace(/\\(.)/g, "$1"));
  return Object.fromEntries(values.filter((_, index) => index % 2 === 0).map((field, index) => [field, values[2 * index + 1]]));
}

/** The page changes the metadata of what it gets. */
const copied = (object) => ({ ...object, metadata: { ...object.metadata } });

function objectsOfPast(recording, revision) {
  const states = new Map();
  for (const change of recording.changes) {
    const { resource, namespace = "", name } = change.object;
    const key = `${resource}|${namespace}|${name}`;
    if (change.revision > revision) {
      if (!states.has(key)) states.set(key, { resource, object: null }); // it was not there, or it is not known how it was
    } else states.set(key, { resource, object: objectAfter(change, states.get(key)?.object) });
  }
  const objects = {};
  const add = (resource, object) => (objects[resource] ??= []).push(object);
  for (const { resource, object } of states.values()) if (object) add(resource, object);
  for (const [resource, items] of Object.entries(recording.objects)) {
    for (const object of items) {
      const { namespace = "", name } = object.metadata;
      if (!states.has(`${resource}|${namespace}|${name}`)) add(resource, object);
    }
  }
  return objects;
}

function objectAfter({ type, patch, revision }, before) {
  if (type === "DELETED" || !patch) return null;
  try {
    const object = type === "ADDED" ? patch[0].value : before && patched(before, patch);
    return object && { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
  } catch {
    return null;
  }
}

export async function list(path, onPage, options) {
  const page = await get(path, options);
  onPage(page.items);
  return page.metadata.resourceVersion;
}

/** Return what names an object in all of its versions: the group, the kind, the namespace and the name. */
export const placeOf = ({ apiVersion = "", kind, namespace, name }) => `${apiVersion.includes("/") ? apiVersion.split("/")[0] : ""}|${kind}|${namespace ?? ""}|${name}`;

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
export const isRefusal = (error) => [401, 403, 404].includes(error.code);
export const may = async () => false;
export const patch = async () => undefined;
export const request = async () => undefined;
export const openStreams = () => undefined;
export async function* textOf() {}
