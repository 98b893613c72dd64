import { Clock } from "./clock.js";
import { Client, StatusError, advancePath, readKubeconfig, userAgent } from "./client.js";
import { startProcess, stopNamed } from "./process.js";
import { reportText, version } from "./report.js";

/** @import { Change, FaultSpec, Request } from "./index.js" */

export { StatusError };

const controlGroup = "control.mockube.dev";
const apiVersion = `${controlGroup}/v1alpha1`;
const group = `/apis/${apiVersion}`;
const clock = `${group}/clocks/cluster`;

/**
 * @template T
 * @param {(cluster: Cluster) => Promise<T> | T} body
 * @param {string[]} flags
 */
export function withCluster(body, ...flags) {
  return async () => {
    const cluster = await start(...flags);
    try {
      return await cluster.run(body);
    } finally {
      await cluster.stop();
    }
  };
}

/** @param {string[]} flags */
export async function start(...flags) {
  const { kubeconfig, stop } = await startProcess(flags);
  return new Cluster(kubeconfig, stop);
}

/** @param {string} kubeconfig */
export function connect(kubeconfig) {
  return new Cluster(kubeconfig, async () => {});
}

/**
 * @param {string} kind
 * @param {object} metadata
 * @param {object} spec
 */
function newObject(kind, metadata, spec) {
  return { apiVersion, kind, metadata, spec };
}

/**
 * Waits for all promises, and throws the first error.
 * @param {Promise<unknown>[]} promises
 */
async function settleAll(promises) {
  for (const done of await Promise.allSettled(promises)) if (done.status === "rejected") throw done.reason;
}

/**
 * Returns whether a request is one by which this package does its work.
 * @param {Request} request
 */
function isOwn({ spec }) {
  return spec.agent === userAgent && (spec.group === controlGroup || spec.uri.startsWith("/mockube/"));
}

export class Cluster {
  #client;
  #stop;
  /** @type {Set<Fault>} */
  #faults = new Set();
  /** @type {Set<Clock>} */
  #clocks = new Set();

  /**
   * @param {string} kubeconfig
   * @param {() => Promise<void>} stop
   */
  constructor(kubeconfig, stop) {
    const access = readKubeconfig(kubeconfig);
    this.kubeconfig = kubeconfig;
    this.server = access.server;
    this.caCertificate = access.caCertificate;
    this.token = access.token;
    this.#client = new Client(access);
    this.#stop = stop;
  }

  async stop() {
    await this.#stopClocks().catch(() => {}); // the server may have ended
    this.#client.close();
    await this.#stop();
  }

  /**
   * @template T
   * @param {(cluster: Cluster) => Promise<T> | T} body
   */
  async run(body) {
    const began = await this.#moment();
    let result;
    try {
      result = await body(this);
    } catch (error) {
      console.error(await this.#report(began));
      await this.#cleanUp().catch(() => {}); // the error of the test is the one to be thrown
      throw error;
    }
    await this.#cleanUp();
    return result;
  }

  async #cleanUp() {
    try {
      await settleAll([...this.#faults].map((fault) => fault.remove()));
    } finally {
      await this.#stopClocks();
    }
  }

  async #stopClocks() {
    const clocks = [...this.#clocks];
    this.#clocks.clear();
    await settleAll(clocks.map((each) => each.stop()));
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   */
  request(method, path, body) {
    return this.#client.send(method, path, body);
  }

  /** @param {FaultSpec} spec */
  async fault(spec) {
    const created = await this.request("POST", `${group}/faults`, newObject("Fault", { generateName: "fault-" }, spec));
    const fault = new Fault(this, created.metadata.name, () => this.#faults.delete(fault));
    this.#faults.add(fault);
    return fault;
  }

  /**
   * @param {string[]} selectors
   * @returns {Promise<Request[]>}
   */
  async requests(...selectors) {
    return (await this.#find("requests", selectors)).items.filter((/** @type {Request} */ each) => !isOwn(each));
  }

  /**
   * @param {string[]} selectors
   * @returns {Promise<Change[]>}
   */
  async changes(...selectors) {
    return (await this.#find("changes", selectors)).items;
  }

  /** @param {string} name */
  async mark(name) {
    const created = await this.request("POST", `${group}/marks`, newObject("Mark", { name }, {}));
    const revision = Number(created.spec.revision);
    return {
      name,
      revision,
      changes: async (/** @type {string[]} */ ...selectors) => {
        await this.request("GET", `/mockube/at/${name}/version`); // it fails if the history of the server begins later
        const { items, isCut } = await this.#find("changes", selectors);
        /** @type {Change[]} */
        const changes = items.filter((/** @type {Change} */ change) => change.spec.revision > revision);
        if (isCut && changes.length === items.length)
          throw new Error(`the list of changes does not reach back to the mark ${name}: select a kind, a namespace and a name`);
        return changes;
      },
    };
  }

  /** @param {string} moment */
  async rewind(moment) {
    await this.request("POST", `${group}/rewinds`, newObject("Rewind", {}, { to: moment }));
  }

  /** @param {string} name */
  async fork(name) {
    try {
      const made = await this.request("POST", `${group}/forks`, newObject("Fork", {}, { name }));
      return new Cluster(made.status.kubeconfig, () => stopNamed(name));
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) throw new Error("this server offers no Forks");
      throw error;
    }
  }

  async now() {
    return new Date((await this.request("GET", clock)).status.time);
  }

  /** @param {number} seconds */
  async advance(seconds) {
    const done = await this.request("POST", advancePath, newObject("ClockAdvance", {}, { seconds }));
    return new Date(done.status.time);
  }

  /** @param {string} name */
  async clock(name) {
    const created = await Clock.start(this.#client, name);
    this.#clocks.add(created);
    return created;
  }

  async pause() {
    await this.request("PATCH", clock, { spec: { paused: true } });
  }

  async resume() {
    await this.request("PATCH", clock, { spec: { paused: false } });
  }

  /** @param {number} rate */
  async setRate(rate) {
    await this.request("PATCH", clock, { spec: { rate } });
  }

  /**
   * @param {string} resource
   * @param {string[]} selectors
   */
  #find(resource, selectors) {
    const query = selectors.length ? `?fieldSelector=${encodeURIComponent(selectors.join(","))}` : "";
    return this.#client.find(`${group}/${resource}${query}`);
  }

  /** Returns the newest versions of requests, and of everything else. */
  async #moment() {
    const revision = version(await this.request("GET", `${group}/changes?limit=1`));
    return { request: version(await this.#find("requests", ["code=0"])), revision };
  }

  /** @param {{ request: number, revision: number }} began */
  async #report(began) {
    try {
      const requests = await this.requests(`group!=${controlGroup}`);
      const events = (await this.request("GET", "/api/v1/events")).items;
      return reportText(began, { requests, events, changes: await this.changes() });
    } catch (error) {
      return `mockube: no report: ${error}`; // the error of the test is the one to be thrown
    }
  }
}

class Fault {
  #cluster;
  #forget;

  /**
   * @param {Cluster} cluster
   * @param {string} name
   * @param {() => void} forget
   */
  constructor(cluster, name, forget) {
    this.#cluster = cluster;
    this.name = name;
    this.#forget = forget;
  }

  /** @returns {Promise<number>} */
  async hits() {
    return (await this.#cluster.request("GET", `${group}/faults/${this.name}`)).status?.hits ?? 0;
  }

  async remove() {
    this.#forget();
    try {
      await this.#cluster.request("DELETE", `${group}/faults/${this.name}`);
    } catch (error) {
      if (!(error instanceof StatusError && error.code === 404)) throw error;
    }
  }
}
