// What state an object is in, in one word and a level, as kubectl's columns say it.

/** Return `{ text, level }`; the level is good, busy, bad or none. `objects` are those beside it, of which a Service needs the endpoints. */
export function stateOf(kind, object, objects) {
  if (object.metadata?.deletionTimestamp) return { text: "Terminating", level: "busy" };
  const state = STATES[kind];
  return state ? state(object.status ?? {}, object.spec ?? {}, object, objects) : byConditions(object.status ?? {});
}

export const isUnhealthy = ({ level }) => level === "bad" || level === "busy";

const state = (text, level) => ({ text, level });

const STATES = {
  Pod: podState,
  Node: (status, spec) => {
    const ready = condition(status, "Ready") === "True";
    if (!ready) return state("NotReady", "bad");
    if (spec.unschedulable) return state("Ready, cordoned", "busy");
    return state(spec.taints?.length ? "Ready, tainted" : "Ready", "good");
  },
  Deployment: replicas,
  ReplicaSet: replicas,
  StatefulSet: replicas,
  ReplicationController: replicas,
  CloneSet: replicas,
  UnitedDeployment: replicas,
  DaemonSet: (status) => count(status.numberReady ?? 0, status.desiredNumberScheduled ?? 0),
  Job: (status, spec) => {
    if (condition(status, "Failed") === "True") return state("Failed", "bad");
    if (condition(status, "Complete") === "True") return state("Complete", "good");
    if (spec.suspend) return state("Suspended", "none");
    return state(`${status.succeeded ?? 0}/${spec.completions ?? 1}`, "busy");
  },
  CronJob: (status, spec) => (spec.suspend ? state("Suspended", "none") : state(spec.schedule ?? "", "none")),
  PersistentVolumeClaim: (status) => state(status.phase ?? "Pending", status.phase === "Bound" ? "good" : "busy"),
  PersistentVolume: (status) => state(status.phase ?? "Pending", status.phase === "Failed" ? "bad" : "good"),
  Namespace: (status) => state(status.phase ?? "", status.phase === "Active" ? "good" : "busy"),
  Service: (status, spec, object, objects) => {
    const hasPods = spec.type !== "ExternalName" && Object.keys(spec.selector ?? {}).length > 0;
    return hasPods && objects?.readyEndpoints(object.metadata) === 0 ? state("No endpoints", "bad") : state(spec.type ?? "", "none");
  },
};

function replicas(status, spec) {
  return count(status.readyReplicas ?? 0, spec.replicas ?? 1);
}

function count(ready, wanted) {
  return state(`${ready}/${wanted}`, ready === wanted ? "good" : "busy");
}

export function condition(status, type) {
  return status.conditions?.find?.((each) => each.type === type)?.status;
}

function byConditions(status) {
  const ready = condition(status, "Ready") ?? condition(status, "Available");
  if (ready === undefined) return state(typeof status.phase === "string" ? status.phase : "", "none");
  return ready === "True" ? state("Ready", "good") : state("NotReady", "bad");
}

/** The condition of a pod of which a program or a probe was not run. */
const NOT_SIMULATED = "mockube.dev/NotSimulated";

function podState(status) {
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  for (const each of all) {
    const waiting = each.state?.waiting?.reason;
    if (waiting && !["ContainerCreating", "PodInitializing"].includes(waiting)) return state(waiting, "bad");
  }
  const phase = status.phase ?? "Pending";
  if (phase === "Succeeded") return state("Completed", "none");
  if (phase === "Failed") return state(status.reason ?? "Failed", "bad");
  if (phase === "Pending") return state(condition(status, "PodScheduled") === "False" ? "Unschedulable" : "Pending", "busy");
  if (condition(status, "Ready") !== "True") return state("NotReady", "busy");
  return condition(status, NOT_SIMULATED) === "True" ? state("Ready by assumption", "none") : state("Running", "good");
}

const byNumbers = new Intl.Collator("en", { numeric: true });

/** Compare two names in natural order: web-2 comes before web-10. */
export const naturally = byNumbers.compare;

export function ageText(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

export function timeText(milliseconds, { withDate = false, digits = 3 } = {}) {
  const text = new Date(milliseconds).toISOString();
  return (withDate ? `${text.slice(0, 10)} ` : "") + text.slice(11, 19 + (digits ? digits + 1 : 0));
}

export const milliseconds = (seconds) => `${(seconds * 1000).toFixed(seconds < 0.01 ? 2 : 0)} ms`;

/** Return a short form of a user: the last part of the name of a service account or a component. */
export function shortUser(user) {
  if (!user) return "unknown";
  return user.slice(user.lastIndexOf(":") + 1);
}

/** Return whether a user is a part of the control plane or a node, and no person, program or operator of the cluster's users. */
export function isComponent(user) {
  return user.startsWith("system:") && user !== "system:anonymous" && (!user.startsWith("system:serviceaccount:") || user.startsWith("system:serviceaccount:kube-system:"));
}

/** Return authors in the order in which one looks for them: people and programs before the control plane, most writes first. */
export function inOrderOfInterest(authors, counts) {
  return [...authors].sort((a, b) => isComponent(a) - isComponent(b) || counts.get(b) - counts.get(a));
}

const HUES = 10;

/** The numbers of the colours of names, by set. */
const hues = new Map();

/** Give colours to authors again, in the order of their names: people and programs first, which are looked for more than the control plane. */
export function rankHues(authors) {
  hues.delete("author");
  for (const name of [...authors].sort((a, b) => isComponent(a) - isComponent(b) || naturally(a, b))) hueOf(name);
}

/** Return the number of the colour of a name. The name decides which it is, unless another one has it already: the next one that is free. */
export function hueOf(name, set = "author") {
  if (!hues.has(set)) hues.set(set, new Map());
  const taken = hues.get(set);
  if (!taken.has(name)) {
    const others = [...taken].filter(([other]) => isComponent(name) || !isComponent(other)).map(([, hue]) => hue); // the control plane gives way
    const first = hashOf(name) % HUES;
    const free = Array.from({ length: HUES }, (_, step) => (first + step) % HUES).find((hue) => !others.includes(hue));
    taken.set(name, free ?? first);
  }
  return taken.get(name);
}

/** FNV-1a. */
function hashOf(text) {
  let hash = 0x811c9dc5;
  for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193) >>> 0;
  return hash;
}

const KUBERNETES_QUANTITY = { n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

export function quantity(text) {
  const match = /^([0-9.]+)(?:([eE][0-9]+)|([a-zA-Z]*))$/.exec(String(text ?? "0"));
  if (!match) return 0;
  return Number(match[1] + (match[2] ?? "")) * (KUBERNETES_QUANTITY[match[3] ?? ""] ?? 1);
}
