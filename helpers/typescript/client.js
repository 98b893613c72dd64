import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";

/** The error that the server returned. */
export class StatusError extends Error {
  /**
   * @param {number} code
   * @param {string} reason
   * @param {string} message
   */
  constructor(code, reason, message) {
    super(message);
    this.name = "StatusError";
    this.code = code;
    this.reason = reason;
  }
}

/**
 * Reads a kubeconfig that mockube wrote: it has one cluster and one user, and one field in each line.
 * @param {string} path
 */
export function readKubeconfig(path) {
  if (!path)
    throw new Error("the path of the kubeconfig is empty: is KUBECONFIG set? `mockube kubeconfig --path` prints that of `mockube up`");
  const text = readFileSync(path, "utf8");
  const [server, authority, token] = ["server", "certificate-authority-data", "token"].map((name) => {
    const found = [...text.matchAll(new RegExp(`^\\s*${name}: "?([^"\\s]+)"?\\s*$`, "gm"))];
    if (found.length !== 1) throw new Error(`${path} has not one ${name}: use a kubeconfig that mockube wrote`);
    return found[0][1];
  });
  return { server, caCertificate: Buffer.from(authority, "base64").toString(), token };
}

/** How long a request may go without an answer: longer than the server takes, which ends its requests after a minute. */
const requestMilliseconds = 120_000;
/** The path of an advance. */
export const advancePath = "/apis/control.mockube.dev/v1alpha1/clocks/cluster/advance";
/** The same for an advance, which waits until everything has happened that was due. */
const advanceMilliseconds = 600_000;

export const userAgent = "mockube-helper-typescript";

/** Sends requests in JSON. */
export class Client {
  /**
   * @param {{ server: string, caCertificate: string, token: string }} access
   * @param {number} [milliseconds]
   */
  constructor({ server, caCertificate, token }, milliseconds = requestMilliseconds) {
    this.milliseconds = milliseconds;
    this.server = server;
    this.token = token;
    this.agent = new Agent({ ca: caCertificate, keepAlive: true });
  }

  close() {
    this.agent.destroy();
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async send(method, path, body) {
    return (await this.#send(method, path, body)).object;
  }

  /**
   * Returns a list; `isCut` is whether there are older objects than it has.
   * @param {string} path
   * @returns {Promise<any>}
   */
  async find(path) {
    const { object, warning } = await this.#send("GET", path);
    return { ...object, isCut: warning.includes("older changes are left out") };
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   */
  async #send(method, path, body) {
    /** @type {Record<string, string>} */
    const headers = {
      accept: "application/json",
      authorization: `Bearer ${this.token}`,
      "user-agent": userAgent,
    };
    if (body !== undefined) {
      headers["content-type"] = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    }
    const { code, text, warning } = await this.#exchange(method, path, headers, body === undefined ? "" : JSON.stringify(body));
    if (code >= 400) throw statusError(code, text);
    return { object: text ? JSON.parse(text) : undefined, warning };
  }

  /**
   * Reads the lines of a response that goes on, and returns a function that ends it. `onError` is called when it ends, with the reason.
   * @param {string} path
   * @param {(line: string) => void} onLine
   * @param {(error: Error) => void} onError
   */
  lines(path, onLine, onError) {
    const headers = { authorization: `Bearer ${this.token}`, "user-agent": userAgent };
    const sent = request(this.server + path, { headers, agent: this.agent }, (response) => {
      if (response.statusCode !== 200) {
        onError(new Error(`GET ${path}: ${response.statusCode}`));
        sent.destroy();
        return;
      }
      let rest = "";
      response.setEncoding("utf8").on("data", (chunk) => {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        lines.forEach(onLine);
      });
      response.on("error", onError);
      response.on("end", () => onError(new Error(`GET ${path}: the server has ended the response`)));
    });
    sent.on("error", onError);
    sent.end();
    return () => sent.destroy();
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Record<string, string>} headers
   * @param {string} body
   * @returns {Promise<{ code: number, text: string, warning: string }>}
   */
  #exchange(method, path, headers, body) {
    const timeout = path === advancePath ? advanceMilliseconds : this.milliseconds;
    return new Promise((resolve, reject) => {
      const sent = request(this.server + path, { method, headers, agent: this.agent, timeout }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk) => (text += chunk));
        response.on("end", () => resolve({ code: response.statusCode ?? 0, text, warning: String(response.headers.warning ?? "") }));
        response.on("error", reject);
      });
      sent.on("timeout", () => sent.destroy(new Error(`${method} ${path}: no answer in ${timeout / 1000} seconds`)));
      sent.on("error", reject);
      sent.end(body);
    });
  }
}

/**
 * Returns the error of a response, which is a Status unless a fault has replaced it.
 * @param {number} code
 * @param {string} text
 */
function statusError(code, text) {
  try {
    const { reason, message } = JSON.parse(text);
    if (message) return new StatusError(code, reason ?? "", message);
  } catch {
    // it is no JSON
  }
  return new StatusError(code, "", `the server returned ${code}: ${text.trim()}`);
}
