// The objects of a cluster, now or at a moment: lists, and the Changes that follow them.
import { ApiError, CONTROL, get, list, sleep, watch } from "./api.js";
import { patched } from "./trees.js";

const DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const LEFT_OUT = new Set(["events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses", "controllerrevisions.apps"]);
const GROUPS_LEFT_OUT = new Set(["control.mockube.dev", "metrics.k8s.io"]);
const FIRST = ["nodes", "pods", "replicasets.apps", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch"];
const SLICES = "endpointslices.discovery.k8s.io";
const SERVICE_LABEL = "kubernetes.io/service-name";
const AT_ONCE = 3;
/** The codes with which a kind cannot be listed; other errors pass. */
const REFUSALS = new Set([403, 404, 405]);
const RETRY_MS = 1000;

/** Namespaces of users come first, then those of the cluster, then what has none. */
export const rankOfNamespace = (namespace) => (namespace === "" ? 2 : namespace.startsWith("kube-") ? 1 : 0);

export const keyOf = (resource, namespace, name) => `${resource}|${namespace ?? ""}|${name}`;

/** Return the kinds that can be listed, by resource with group, such as deployments.apps. */
export async function discover(prefix = "", signal = undefined) {
  const documents = await Promise.all(["/api", "/apis"].map((path) => get(prefix + path, { accept: DISCOVERY, signal })));
  const kinds = new Map();
  for (const group of documents.flatMap((document) => document.items ?? [])) {
    const groupName = group.metadata.name ?? "";
    if (GROUPS_LEFT_OUT.has(groupName)) continue;
    for (const { version, resources } of group.versions ?? []) {
      for (const each of resources ?? []) {
        const resource = groupName ? `${each.resource}.${groupName}` : each.resource;
        if (kinds.has(resource) || LEFT_OUT.has(resource) || !each.verbs.includes("list")) continue;
        kinds.set(resource, {
          resource, group: groupName, version, plural: each.resource, kind: each.responseKind.kind,
          namespaced: each.scope === "Namespaced", root: groupName ? `/apis/${groupName}/${version}` : `/api/${version}`,
        });
      }
    }
  }
  return kinds;
}

/** Return the path of an object, or of all objects of its kind. */
export function pathOf(kind, namespace, name) {
  const scope = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${kind.root}${scope}/${kind.plural}${name ? `/${encodeURIComponent(name)}` : ""}`;
}

/** The objects, by key and by uid; `onChange` is called at most once for each frame. */
export class Objects {
  /** `prefix` is that of a moment of the past; "" for now. `history` gets each Change. */
  constructor({ prefix = "", history = null, onChange = () => undefined } = {}) {
    this.prefix = prefix;
    this.history = history;
    this.onChange = onChange;
    this.kinds = new Map();
    this.byKey = new Map();
    this.byUid = new Map();
    this.children = new Map();
    this.slices = new Map();
    this.version = 0;
    this.state = "loading";
    this.problem = "";
    this.refused = [];
    this.hasControl = true;
    this.listedAt = new Map();
    this.abort = new AbortController();
    this.pending = false;
  }

  close() {
    this.abort.abort();
  }

  changed() {
    this.version += 1;
    if (this.pending) return;
    this.pending = true;
    const publish = () => {
      this.pending = false;
      if (!this.abort.signal.aborted) this.onChange();
    };
    if (document.hidden) setTimeout(publish, 200);
    else requestAnimationFrame(publish);
  }

  /** Read all objects, and follow the Changes until this is closed; after an error all is read again. */
  async run() {
    const { signal } = this.abort;
    while (!signal.aborted) {
      try {
        await this.load(signal);
        if (this.prefix) return;
        await this.follow(signal);
      } catch (error) {
        if (signal.aborted || error.name === "AbortError") return;
        if (error.code === 410 && !this.prefix) {
          this.history.clear(); // the server kept less than the page has missed
          continue;
        }
        this.state = "lost";
        this.problem = error.message;
        this.changed();
        if (error.code === 401 || this.prefix) return;
        await sleep(RETRY_MS);
      }
    }
  }

  async load(signal) {
    const kinds = await discover(this.prefix, signal);
    const begin = this.prefix ? { resourceVersion: "" } : await this.beginning(signal);
    const seen = new Set();
    this.kinds = kinds;
    this.refused = [];
    this.resourceVersion = begin.resourceVersion;
    const order = [...FIRST.filter((name) => kinds.has(name)), ...[...kinds.keys()].filter((name) => !FIRST.includes(name))];
    const next = async () => {
      for (let name = order.shift(); name; name = order.shift()) await this.loadKind(kinds.get(name), seen, signal);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
    for (const [key, entry] of this.byKey) if (!seen.has(key)) this.remove(entry);
    this.state = "live";
    this.problem = "";
    this.changed();
  }

  /** Return the version of the Changes from which the objects are followed. */
  async beginning(signal) {
    try {
      const listed = await get(`${CONTROL}/changes?fieldSelector=kind%3DNamespace%2Cname%3D-`, { signal });
      this.hasControl = true;
      return listed.metadata;
    } catch (error) {
      if (error.code !== 403 && error.code !== 404) throw error;
      this.hasControl = false;
      return { resourceVersion: "" };
    }
  }

  async loadKind(kind, seen, signal, attempts = 3) {
    const keep = (items) => {
      for (const object of items) seen.add(this.put(kind, withoutManagers(object)).key);
      this.changed();
    };
    try {
      const version = await list(this.prefix + pathOf(kind), keep, { signal });
      this.listedAt.set(kind.resource, Number(version));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code === 0 || error.code === 401) throw error;
      if (!REFUSALS.has(error.code)) {
        if (this.prefix) throw error;
        if (attempts > 1) {
          await sleep(RETRY_MS);
          return this.loadKind(kind, seen, signal, attempts - 1);
        }
        for (const [key, entry] of this.byKey) if (entry.kind.resource === kind.resource) seen.add(key); // what was there stays
      }
      this.refused.push({ resource: kind.resource, message: error.message });
    }
  }

  async follow(signal) {
    if (!this.hasControl) {
      await sleep(5000);
      return;
    }
    let version = await this.history.nextVersion(signal);
    for (;;) {
      const path = `${CONTROL}/changes?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`;
      for await (const events of watch(path, signal)) {
        for (const { type, object } of events) {
          version = object.metadata.resourceVersion;
          if (type === "ADDED") this.apply(object.spec);
        }
        this.changed();
        this.history.reached(Number(this.resourceVersion));
      }
    }
  }

  apply(change) {
    this.history.add(change);
    const { resource, namespace, name } = change.object;
    if (resource === "customresourcedefinitions.apiextensions.k8s.io") this.discoverSoon();
    const kind = this.kinds.get(resource);
    if (!kind || change.revision <= (this.listedAt.get(resource) ?? 0)) return;
    const entry = this.byKey.get(keyOf(resource, namespace, name));
    if (change.type === "DELETED") {
      if (entry) this.remove(entry);
      return;
    }
    if (entry && Number(entry.object.metadata.resourceVersion) >= change.revision) return;
    const object = this.objectAfter(change, entry);
    if (object === null) this.readAgain(kind, namespace, name);
    else this.put(kind, { ...object, metadata: { ...object.metadata, resourceVersion: String(change.revision) } });
  }

  /** Return the object that a change made; null if only the server can say. */
  objectAfter(change, entry) {
    const { patch, type, object } = change;
    if (!patch || (entry && entry.object.apiVersion && entry.object.apiVersion !== object.apiVersion)) return null;
    if (type === "ADDED") return patch[0].value;
    if (!entry) return null;
    try {
      return patched(entry.object, patch);
    } catch {
      return null;
    }
  }

  async readAgain(kind, namespace, name) {
    try {
      this.put(kind, withoutManagers(await get(pathOf(kind, namespace, name), { signal: this.abort.signal })));
      this.changed();
    } catch {
      // It is gone already, or the session is: the next change, or the next list, says which.
    }
  }

  /** New kinds are found a moment after their definition was written. */
  discoverSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const kinds = await discover("", this.abort.signal).catch(() => null);
      if (!kinds) return;
      const added = [...kinds.values()].filter((kind) => !this.kinds.has(kind.resource));
      this.kinds = kinds;
      for (const kind of added) await this.loadKind(kind, new Set(), this.abort.signal).catch(() => undefined);
    }, 1500);
  }

  put(kind, object) {
    const { namespace = "", name, uid } = object.metadata;
    const key = keyOf(kind.resource, namespace, name);
    const old = this.byKey.get(key);
    if (old && old.uid === uid && sameOwners(old.object, object)) {
      old.object = object;
      return old;
    }
    if (old) this.remove(old);
    const entry = { key, kind, namespace, name, uid, object };
    this.byKey.set(key, entry);
    if (kind.resource === SLICES) this.slicesOf(object).add(entry);
    if (uid) this.byUid.set(uid, entry);
    for (const owner of object.metadata.ownerReferences ?? []) {
      if (!this.children.has(owner.uid)) this.children.set(owner.uid, new Set());
      this.children.get(owner.uid).add(entry);
    }
    return entry;
  }

  remove(entry) {
    this.byKey.delete(entry.key);
    this.byUid.delete(entry.uid);
    if (entry.kind.resource === SLICES) this.slicesOf(entry.object).delete(entry);
    for (const owner of entry.object.metadata.ownerReferences ?? []) {
      const siblings = this.children.get(owner.uid);
      siblings?.delete(entry);
      if (siblings?.size === 0) this.children.delete(owner.uid);
    }
  }

  slicesOf({ metadata: { namespace, labels = {} } }) {
    const service = `${namespace}/${labels[SERVICE_LABEL] ?? ""}`;
    if (!this.slices.has(service)) this.slices.set(service, new Set());
    return this.slices.get(service);
  }

  /** Return how many endpoints of a Service are ready; undefined if EndpointSlices were not read. */
  readyEndpoints({ namespace, name }) {
    if (!this.listedAt.has(SLICES)) return undefined;
    const endpoints = [...(this.slices.get(`${namespace}/${name}`) ?? [])].flatMap(({ object }) => object.endpoints ?? []);
    return endpoints.filter(({ conditions }) => conditions?.ready ?? true).length;
  }

  /** Return the key of an object that is named by its API version, kind, namespace and name; "" if its kind is not known. */
  keyFor({ apiVersion = "", kind, namespace = "", name }) {
    const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
    const found = [...this.kinds.values()].find((each) => each.kind === kind && each.group === group);
    return found ? keyOf(found.resource, namespace, name) : "";
  }

  /** Return the owner of an object that is here: its controller, or else the first one. */
  ownerOf(entry) {
    const owners = entry.object.metadata.ownerReferences ?? [];
    const chosen = owners.find((owner) => owner.controller) ?? owners[0];
    return chosen ? this.byUid.get(chosen.uid) : undefined;
  }

  rootOf(entry) {
    for (let depth = 0, owner; depth < 10 && (owner = this.ownerOf(entry)); depth += 1) entry = owner;
    return entry;
  }

  childrenOf(entry) {
    return [...(this.children.get(entry.uid) ?? [])].filter((child) => this.ownerOf(child) === entry);
  }

  of(resource) {
    const found = [];
    for (const entry of this.byKey.values()) if (entry.kind.resource === resource) found.push(entry);
    return found;
  }
}

function withoutManagers(object) {
  if (object.metadata.managedFields) delete object.metadata.managedFields;
  return object;
}

function sameOwners(a, b) {
  const uids = (object) => (object.metadata.ownerReferences ?? []).map((owner) => owner.uid).join();
  return uids(a) === uids(b);
}
