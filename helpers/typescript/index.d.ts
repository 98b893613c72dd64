/**
 * Kubernetes clusters for tests, by the program mockube.
 *
 * What a cluster does is described by `kubectl explain`: each object here is one of the API group control.mockube.dev.
 */

/** Returns a test with a cluster of its own, which is stopped at the end. What happened is printed if the test fails. */
export function withCluster<T>(body: (cluster: Cluster) => Promise<T> | T, ...flags: string[]): () => Promise<T>;

/** Starts a cluster, with the flags of `mockube run`. It ends with `stop`, and with the process. */
export function start(...flags: string[]): Promise<Cluster>;

/** Returns a cluster that runs already, by the path of the kubeconfig that mockube wrote. */
export function connect(kubeconfig: string): Cluster;

export class Cluster {
  /** The path of a kubeconfig with the rights of an administrator. */
  readonly kubeconfig: string;
  /** The URL of the API server. */
  readonly server: string;
  /** The certificate of the cluster's authority, in PEM. */
  readonly caCertificate: string;
  /** The bearer token of the administrator. */
  readonly token: string;

  /** Stops a cluster that was started. One that was connected keeps running. */
  stop(): Promise<void>;

  /** Runs a test that shares the cluster: its faults are removed at its end, and what happened is printed if it fails. */
  run<T>(body: (cluster: Cluster) => Promise<T> | T): Promise<T>;

  /** Sends a request, such as GET /api/v1/nodes, and returns the object of the response. The body of a PATCH is a merge patch. */
  request(method: string, path: string, body?: object): Promise<any>;

  /** Creates a fault. */
  fault(spec: FaultSpec): Promise<Fault>;

  /** Returns the requests that meet the field selectors, such as "verb=update" or "code!=200"; the oldest first. Those by which this package does its own work are left out. */
  requests(...selectors: string[]): Promise<Request[]>;

  /** Returns the changes that meet the field selectors, such as "kind=Deployment" or "name=web"; the oldest first. */
  changes(...selectors: string[]): Promise<Change[]>;

  /** Names the newest revision. */
  mark(name: string): Promise<Mark>;

  /** Makes the objects of a moment the newest ones: the name of a mark, a revision, a time, or a span before now such as -5m. */
  rewind(moment: string): Promise<void>;

  /**
   * Starts a copy of the cluster with a name, which goes on by itself until its `stop`. An error says if the server makes no Forks, as one
   * that neither `mockube up` nor `mockube run` runs.
   */
  fork(name: string): Promise<Cluster>;

  /** Returns the time of the cluster. */
  now(): Promise<Date>;

  /** Returns a clock for the code under test, until the end of `run` or its `stop`. The name is that of its object, a ClockParticipant. */
  clock(name: string): Promise<Clock>;

  /** Advances the clock, and returns its time when everything has happened that was due by then. */
  advance(seconds: number): Promise<Date>;

  /** Lets time stand still. It can still be advanced. */
  pause(): Promise<void>;

  /** Lets time pass again. */
  resume(): Promise<void>;

  /** Lets so many seconds of the cluster pass in a second of the machine. */
  setRate(rate: number): Promise<void>;
}

/**
 * The clock of the cluster, with timers for the code under test. An advance stops at each timer, and goes on when it has fired and no request
 * arrives any more. Each function can be given to other code by itself.
 */
export interface Clock {
  /** Returns the time in milliseconds, as `Date.now`. */
  now(): number;
  date(): Date;
  setTimeout<T extends any[]>(callback: (...values: T) => void, milliseconds?: number, ...values: T): object;
  setInterval<T extends any[]>(callback: (...values: T) => void, milliseconds?: number, ...values: T): object;
  clearTimeout(timer?: object): void;
  clearInterval(timer?: object): void;
  /** Waits for a while. It is rejected if the clock ends meanwhile. */
  sleep(milliseconds: number): Promise<void>;
  /** Ends the clock, whose timers do not fire any more, and which takes no new ones. */
  stop(): Promise<void>;
}

/** The error that the server returned. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string;
}

/** Which requests get a fault, how many of them, and what happens to them. */
export interface FaultSpec {
  /** Criteria that all have to be met. Texts are patterns, in which * stands for any characters and ? for one. */
  match?: {
    /** The user. Without it, requests of mockube's own controllers do not match. */
    user?: string;
    /** The beginning of the User-Agent. */
    agent?: string;
    verbs?: string[];
    /** The resource as in a rule of RBAC: pods, pods/status, deployments.apps. */
    resource?: string;
    namespace?: string;
    name?: string;
    /** A label selector of the object that the request names. */
    labels?: string;
    /** The node to which the named object belongs: the node itself, its Lease, or a pod on it. */
    node?: string;
    /** The path of the URL, for requests that are for no resource. */
    path?: string;
  };
  /** The number of matching requests that are skipped first. */
  skip?: number;
  /** The number of requests that get the fault; all of them by default. */
  times?: number;
  /** The probability of each matching request; 1 by default. */
  share?: number;
  /** The request waits, by the cluster's clock. */
  delay?: { seconds: number };
  /** The connection is cut, before or after the request is executed. */
  cut?: { when: "before" | "after" };
  /** The request is not executed, and gets an error. */
  refuse?: { status: number; reason?: string; message?: string; retryAfter?: number };
  /** The request is executed twice, as if its client had sent it again. */
  repeat?: object;
  /** Another candidate takes the Lease that the request is for. */
  steal?: { holder?: string; seconds?: number };
  /** Gets and lists read the store as it was at a revision, by default the newest one of now, or some seconds ago. */
  stale?: { revision?: number; seconds?: number };
  /** The events of watches are held back: for a time, until the user of the watch has written, or until the fault is removed. */
  hold?: { seconds?: number; untilWrite?: boolean; fromEvent?: FromEvent };
  /** The changes of objects are lost for watches: for a time, until their user has written, or until the fault is removed. */
  drop?: { seconds?: number; untilWrite?: boolean; fromEvent?: FromEvent };
  /** The request is not executed, and gets this response. */
  respond?: { status?: number; body: object };
  /** The request is executed, and its response is changed. */
  change?: { mergePatch: object };
  /** The simulated node that match.node names is cut off. It has no other criteria, counts and effects. */
  partition?: object;
}

/** The event of a watch with which an effect begins, after the first `skip` events that match. */
export interface FromEvent {
  types?: ("ADDED" | "MODIFIED" | "DELETED")[];
  namespace?: string;
  name?: string;
  skip?: number;
}

export interface Fault {
  /** The name of the object, which requests that got the fault have, too. */
  readonly name: string;
  /** Returns the number of requests that got the fault. */
  hits(): Promise<number>;
  /** Ends the fault; requests that it delays continue. */
  remove(): Promise<void>;
}

export interface Mark {
  readonly name: string;
  readonly revision: number;
  /** Returns the changes after the mark that meet the field selectors. It fails if there are more than a list has. */
  changes(...selectors: string[]): Promise<Change[]>;
}

export interface Metadata {
  name: string;
  resourceVersion: string;
}

/** A request that was sent to the server. It has no status while it is in progress. */
export interface Request {
  metadata: Metadata;
  spec: {
    time: string;
    user?: string;
    agent?: string;
    verb: string;
    group?: string;
    version?: string;
    resource?: string;
    subresource?: string;
    namespace?: string;
    name?: string;
    uri: string;
    auditID?: string;
    bytes?: number;
  };
  status?: { code?: number; seconds?: number; bytes?: number; revision?: number; fault?: string; /** Whether that Fault cut the connection. */ isCut?: boolean };
}

/** A write to the store. */
export interface Change {
  metadata: Metadata;
  spec: {
    revision: number;
    /** When it was written; absent if another server wrote it. */
    time?: string;
    type: "ADDED" | "MODIFIED" | "DELETED";
    object: { apiVersion: string; kind: string; resource: string; namespace?: string; name: string; uid?: string };
    /** Who wrote it; absent if another server did, or if it is too long ago. */
    author?: {
      user?: string;
      agent?: string;
      manager?: string;
      verb?: string;
      subresource?: string;
      auditID?: string;
    };
    /** The JSON patch against the version before; absent if it is too large. */
    patch?: { op: string; path: string; value?: any }[];
    /** Why there is no patch. */
    patchOmitted?: string;
  };
}
