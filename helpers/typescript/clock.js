/** @import { Client } from "./client.js" */

const participants = "/apis/control.mockube.dev/v1alpha1/clockparticipants";

/**
 * Timers by the clock of a cluster. An advance stops at the next one, and goes on when it has fired and no request arrives any more.
 *
 * All times are numbers of microseconds, which is the resolution of the cluster. After a timer that throws, no timer fires any more: sleeps
 * end with its error, and so does `stop`. Sleeps that are not over when the clock is stopped end with an error, too.
 */
export class Clock {
  #client;
  #path;
  /** @type {Map<object, { due: number, period: number, callback: () => void }>} */
  #timers = new Map();
  /** What the clock of the cluster showed at a time of the machine, and how fast it runs. */
  #reading = { time: 0, at: 0, rate: 0 };
  /** @type {NodeJS.Timeout | undefined} */
  #waiting;
  #written = "";
  #isUpdating = false;
  #isChanged = false;
  #isStopped = false;
  /** @type {unknown} */
  #error;
  /** @type {Set<(error: unknown) => void>} */
  #sleepers = new Set();
  /** @type {() => void} */
  #closeStream = () => {};

  /**
   * @param {Client} client
   * @param {string} name
   */
  constructor(client, name) {
    this.#client = client;
    this.#path = `${participants}/${name}`;
  }

  /**
   * Creates the object of a clock, and follows the clock of the cluster.
   * @param {Client} client
   * @param {string} name
   */
  static async start(client, name) {
    const body = { apiVersion: "control.mockube.dev/v1alpha1", kind: "ClockParticipant", metadata: { name }, spec: {} };
    await client.send("POST", participants, body);
    const clock = new Clock(client, name);
    try {
      await clock.#follow();
    } catch (error) {
      await clock.stop();
      throw error;
    }
    return clock;
  }

  /** Follows the readings of the cluster's clock; the first one is there when the promise is kept. */
  #follow() {
    return new Promise((resolve, reject) => {
      this.#closeStream = this.#client.lines(
        "/mockube/clock",
        (line) => {
          const { time, at, rate } = JSON.parse(line);
          this.#reading = { time: microseconds(time), at: microseconds(at), rate };
          this.#update();
          resolve(undefined);
        },
        (error) => {
          this.#fail(error);
          reject(error);
        },
      );
    });
  }

  /**
   * Notes why no timer fires any more.
   * @param {unknown} error
   */
  #fail(error) {
    if (this.#isOver) return;
    this.#error = error;
    this.#release(error);
  }

  /**
   * Lets no timer fire any more, and ends sleeps, as what waits for them would wait for ever.
   * @param {unknown} error
   */
  #release(error) {
    clearTimeout(this.#waiting);
    this.#timers.clear();
    this.#sleepers.forEach((reject) => reject(error));
    this.#sleepers.clear();
  }

  get #isOver() {
    return this.#isStopped || this.#error !== undefined;
  }

  #now() {
    const { time, at, rate } = this.#reading;
    return Math.floor(time + (Date.now() * 1000 - at) * rate);
  }

  now = () => this.#now() / 1000;

  date = () => new Date(this.now());

  /**
   * @param {(...values: any[]) => void} callback
   * @param {number} milliseconds
   * @param {any[]} values
   */
  setTimeout = (callback, milliseconds = 0, ...values) => this.#add(() => callback(...values), milliseconds, false);

  /**
   * @param {(...values: any[]) => void} callback
   * @param {number} milliseconds
   * @param {any[]} values
   */
  setInterval = (callback, milliseconds = 0, ...values) => this.#add(() => callback(...values), milliseconds, true);

  /** @param {object} [timer] */
  clearTimeout = (timer) => {
    if (timer !== undefined && this.#timers.delete(timer)) this.#update();
  };

  clearInterval = this.clearTimeout;

  /**
   * @param {number} milliseconds
   * @returns {Promise<void>}
   */
  sleep = (milliseconds) =>
    new Promise((resolve, reject) => {
      this.setTimeout(() => {
        this.#sleepers.delete(reject);
        resolve();
      }, milliseconds);
      this.#sleepers.add(reject);
    });

  /**
   * @param {() => void} callback
   * @param {number} milliseconds
   * @param {boolean} repeats
   */
  #add(callback, milliseconds, repeats) {
    if (this.#error !== undefined) throw this.#error;
    if (this.#isStopped) throw stopped();
    const timer = {};
    const span = Math.max(Math.ceil(milliseconds * 1000), 0);
    this.#timers.set(timer, { due: this.#now() + span, period: repeats ? Math.max(span, 1) : 0, callback });
    this.#update();
    return timer;
  }

  /** Fires what is due, and writes when the next timer is due and whether the program is idle, until nothing changes any more. */
  async #update() {
    this.#isChanged = true;
    if (this.#isUpdating) return;
    this.#isUpdating = true;
    try {
      while (this.#isChanged && !this.#isOver) {
        this.#isChanged = false;
        await this.#fire();
        if (!this.#isOver && !this.#isChanged) await this.#write();
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isUpdating = false;
    }
  }

  async #fire() {
    const now = this.#now();
    for (const [timer, each] of [...this.#timers].sort(([, a], [, b]) => a.due - b.due)) {
      if (each.due > now || !this.#timers.has(timer)) continue;
      if (each.period > 0) each.due += (Math.floor((now - each.due) / each.period) + 1) * each.period;
      else this.#timers.delete(timer);
      each.callback();
      await new Promise(setImmediate); // what waits for the timer begins with its work, before the next one fires
    }
  }

  /** Writes at which time the program is idle if the clock stands still, and when the next timer is due. */
  async #write() {
    const next = Math.min(...[...this.#timers.values()].map(({ due }) => due));
    const { time, rate } = this.#reading;
    clearTimeout(this.#waiting);
    if (rate > 0 && next < Infinity) {
      const wait = Math.min(Math.max((next - this.#now()) / rate / 1000, 0), maxWait);
      this.#waiting = setTimeout(() => this.#update(), Math.ceil(wait));
    }
    const spec = { idleAt: rate === 0 ? timestamp(time) : null, nextTimer: next < Infinity ? timestamp(next) : null };
    const text = JSON.stringify(spec);
    if (text === this.#written) return;
    await this.#client.send("PATCH", this.#path, { spec });
    this.#written = text;
  }

  async stop() {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#release(stopped());
    this.#closeStream();
    await this.#client.send("DELETE", this.#path);
    if (this.#error !== undefined) throw this.#error;
  }
}

const stopped = () => new Error("the clock was stopped");

/** The longest time that a timer of node can have. */
const maxWait = 2 ** 31 - 1;

/**
 * Returns the microseconds of a time in RFC 3339.
 * @param {string} text
 */
function microseconds(text) {
  const [seconds, fraction = ""] = text.replace("Z", "").split(".");
  return Date.parse(`${seconds}Z`) * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}

/** @param {number} time */
function timestamp(time) {
  const seconds = new Date(Math.floor(time / 1_000_000) * 1000).toISOString().slice(0, 19);
  return `${seconds}.${String(time % 1_000_000).padStart(6, "0")}Z`;
}
