// The requests to the server: those that it remembers, and those that end from now on.
import { CONTROL, get, sleep, watch } from "./api.js";

const MAX = 20_000;
const RETRY_MS = 2000;

export class Requests {
  constructor(server = { get, watch }) {
    this.server = server;
    this.items = [];
    this.byName = new Map();
    this.listeners = new Set();
    this.problem = "";
    this.abort = new AbortController();
  }

  close() {
    this.abort.abort();
  }

  async run() {
    const { signal } = this.abort;
    while (!signal.aborted) {
      try {
        const listed = await this.server.get(`${CONTROL}/requests`, { signal });
        this.items = [];
        this.byName.clear();
        for (const each of listed.items) this.put(each);
        this.problem = "";
        this.publish();
        await this.follow(listed.metadata.resourceVersion, signal);
      } catch (error) {
        if (error.name === "AbortError") return;
        this.problem = error.message;
        this.publish();
        if (error.code === 401 || error.code === 403 || error.code === 404) return;
        await sleep(RETRY_MS);
      }
    }
  }

  async follow(version, signal) {
    for (;;) {
      for await (const events of this.server.watch(`${CONTROL}/requests?watch=1&resourceVersion=${version}`, signal)) {
        for (const { type, object } of events) {
          version = object.metadata.resourceVersion;
          if (type === "ADDED" || type === "MODIFIED") this.put(object);
        }
        this.publish();
      }
    }
  }

  put({ metadata, spec, status }) {
    const item = {
      time: Date.parse(spec.time), user: spec.user ?? "", agent: spec.agent ?? "", verb: spec.verb, resource: spec.resource ?? "",
      group: spec.group ?? "", subresource: spec.subresource ?? "", namespace: spec.namespace ?? "", name: spec.name ?? "", uri: spec.uri,
      code: status?.code ?? 0, seconds: status?.seconds ?? 0, isEnded: status?.seconds !== undefined, fault: status?.fault ?? "", isCut: status?.isCut ?? false,
    };
    const old = this.byName.get(metadata.name);
    if (old) {
      Object.assign(old, item);
      return;
    }
    this.byName.set(metadata.name, item);
    this.items.push(item);
    if (this.items.length <= MAX) return;
    this.items.splice(0, MAX / 4);
    for (const name of [...this.byName.keys()].slice(0, MAX / 4)) this.byName.delete(name);
  }

  publish() {
    for (const listener of this.listeners) listener();
  }
}
