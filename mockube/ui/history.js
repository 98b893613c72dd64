// The Changes of a cluster in columns: when, what, by whom; and the states that objects went through.
import { CONTROL, get, watch } from "./api.js";
import { rankHues, stateOf } from "./health.js";
import { keyOf } from "./objects.js";
import { patchedOrNull } from "./trees.js";

export const TYPES = ["ADDED", "MODIFIED", "DELETED"];
const MAX_RECORDS = 400_000;
/** Renewals of Leases are most of the writes of a large cluster, and nothing that anybody looks for. */
const LEASES = "leases.coordination.k8s.io";

/** The lane of one object: its records, and the states that it had from a time on. */
class Lane {
  constructor(index, object) {
    this.index = index;
    this.resource = object.resource;
    this.kind = object.kind;
    this.namespace = object.namespace ?? "";
    this.name = object.name;
    this.key = keyOf(object.resource, object.namespace, object.name);
    this.owner = "";
    this.records = [];
    this.states = [];
    this.object = null;
  }
}

/** The clock of the cluster, which may stand still, run faster, and be ahead; until it is read, that of the machine. */
class ClusterClock {
  constructor() {
    this.time = Date.now();
    this.rate = 1;
    this.readAt = performance.now();
  }

  now() {
    return this.time + (performance.now() - this.readAt) * this.rate;
  }

  async read(signal) {
    const [found] = (await get(`${CONTROL}/clocks`, { signal })).items;
    if (!found?.status) return; // the server follows the time of its machine
    const { spec, status } = found;
    this.time = Date.parse(status.time);
    this.rate = spec.paused ? 0 : spec.rate ?? 1;
    this.readAt = performance.now();
  }
}

export class History {
  /** `server` answers; that of the page, unless there are several. */
  constructor(server = { get, watch }) {
    this.server = server;
    this.clock = new ClusterClock();
    this.clear();
    this.listeners = new Set();
  }

  clear() {
    this.count = 0;
    this.newest = 0; // the revision of the last change, also of one that is not kept
    this.capacity = 4096;
    this.time = new Float64Array(this.capacity);
    this.revision = new Float64Array(this.capacity);
    this.lane = new Int32Array(this.capacity);
    this.author = new Int32Array(this.capacity);
    this.type = new Uint8Array(this.capacity);
    this.lanes = [];
    this.laneByKey = new Map();
    this.laneByUid = new Map();
    this.authors = [];
    this.authorIndex = new Map();
    this.isComplete = false;
    this.isTruncated = false;
    this.problem = "";
  }

  get begin() {
    return this.time[0] || this.clock.now(); // 0 if no time is known
  }

  get end() {
    return (this.count && this.time[this.count - 1]) || this.clock.now();
  }

  /** Return the version after which the Changes are read: those that are here already are not read again. */
  async nextVersion(signal) {
    return this.newest || Math.max(1, (await this.firstRevision(signal)) - 1); // a watch from 0 begins with the newest ones
  }

  /** Note that all changes up to a revision are here, and tell those who draw them. */
  reached(revision) {
    if (!this.isComplete && this.newest >= revision) this.complete();
    this.publish();
  }

  complete() {
    this.isComplete = true;
    rankHues(this.authors);
  }

  async firstRevision(signal) {
    return (await get("/mockube/at/oldest", { signal })).revision;
  }

  publish() {
    for (const listener of this.listeners) listener();
  }

  add(change) {
    this.newest = change.revision;
    if (change.object.resource === LEASES) return;
    if (this.count >= MAX_RECORDS) {
      this.isTruncated = true;
      return;
    }
    if (this.count === this.capacity) this.grow();
    const index = this.count;
    const before = index ? this.time[index - 1] : 0;
    const time = change.time ? Date.parse(change.time) + microseconds(change.time) : before;
    if (time && !before) this.fillBefore(time);
    const lane = this.laneOf(change);
    this.time[index] = Math.max(time, before);
    this.revision[index] = change.revision;
    this.lane[index] = lane.index;
    this.author[index] = this.authorOf(change.author?.user ?? "");
    this.type[index] = TYPES.indexOf(change.type);
    this.count += 1;
    lane.records.push(index);
    this.follow(lane, change, this.time[index]);
  }

  /** Give the first known time to the records before it, and to their states: a server that was restarted does not know theirs. */
  fillBefore(time) {
    this.time.fill(time, 0, this.count);
    for (const { states } of this.lanes) for (const state of states) state.time = time;
  }

  laneOf(change) {
    const { resource, namespace, name, uid } = change.object;
    const key = keyOf(resource, namespace, name);
    let lane = this.laneByKey.get(key);
    if (!lane) {
      lane = new Lane(this.lanes.length, change.object);
      this.lanes.push(lane);
      this.laneByKey.set(key, lane);
    }
    if (uid && !this.laneByUid.has(uid)) this.laneByUid.set(uid, lane);
    return lane;
  }

  authorOf(user) {
    let index = this.authorIndex.get(user);
    if (index === undefined) {
      index = this.authors.length;
      this.authors.push(user);
      this.authorIndex.set(user, index);
    }
    return index;
  }

  /** Note the state of the object after a change, if it has another one than before. */
  follow(lane, { type, patch, object }, time) {
    if (type === "DELETED") {
      lane.object = null;
      lane.states.push({ time, text: "", level: "gone" });
      return;
    }
    if (type === "ADDED") lane.object = patch?.[0].value ?? null;
    else if (lane.object && patch) lane.object = patchedOrNull(lane.object, patch);
    if (!lane.object) return;
    const owners = lane.object.metadata?.ownerReferences ?? [];
    const owner = owners.find((each) => each.controller) ?? owners[0];
    if (owner) lane.owner = owner.uid;
    const { text, level } = stateOf(object.kind, lane.object);
    const last = lane.states.at(-1);
    if (!last || last.text !== text || last.level !== level) lane.states.push({ time, text, level });
  }

  rootOf(lane) {
    for (let depth = 0; depth < 10 && lane.owner; depth += 1) {
      const owner = this.laneByUid.get(lane.owner);
      if (!owner) break;
      lane = owner;
    }
    return lane;
  }

  /** Return the number of records before a time. */
  indexAt(time) {
    return firstIndex(0, this.count, (index) => this.time[index] >= time);
  }

  /** Return the newest revision at a time; 0 if that is before the history. */
  revisionAt(time) {
    const index = this.indexAt(time + 0.0005);
    return index ? this.revision[index - 1] : 0;
  }

  /** Return the time of a revision; without one, that of now by the clock of the cluster. */
  timeOf(revision) {
    if (!revision) return Math.max(this.clock.now(), this.end);
    const index = firstIndex(0, this.count, (each) => this.revision[each] > revision);
    return index ? this.time[index - 1] : this.begin;
  }

  grow() {
    this.capacity *= 2;
    for (const name of ["time", "revision", "lane", "author", "type"]) {
      const larger = new this[name].constructor(this.capacity);
      larger.set(this[name]);
      this[name] = larger;
    }
  }
}

/** Return the first index from `low` on, below `high`, from which on a test holds: it holds for all that follow, too. */
export function firstIndex(low, high, test) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Date.parse has milliseconds: return what a time has besides them. */
function microseconds(text) {
  const digits = /\.[0-9]{3}([0-9]{1,3})Z$/.exec(text);
  return digits ? Number(digits[1].padEnd(3, "0")) / 1000 : 0;
}
