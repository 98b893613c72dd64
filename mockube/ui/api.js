// Requests to the API server: the session of the page, lists, watches and writes.

const SESSION = "/mockube/ui/session";
const STORED = "mockube-session";
export const API_VERSION = "control.mockube.dev/v1alpha1";
export const CONTROL = `/apis/${API_VERSION}`;

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

let token = "";
const listeners = new Set();

/** An answer of the server that is an error; `code` is 0 if there was none. */
export class ApiError extends Error {
  constructor(code, message, reason = "") {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

/** Return whether a server that is asked again would refuse again. */
export const isRefusal = (error) => [401, 403, 404].includes(error.code);

/** Call a function when the server no longer accepts the session. */
export function onSessionEnd(listener) {
  listeners.add(listener);
}

/** Exchange the one-time token of the URL, or take the session that this tab had before a reload. */
export async function openSession() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    history.replaceState(null, "", location.pathname);
    const answer = await request("POST", SESSION, { token: given });
    token = answer.token;
    sessionStorage.setItem(STORED, token);
  } else {
    token = sessionStorage.getItem(STORED) ?? "";
  }
  if (!token) throw new ApiError(401, "This page needs a one-time token.");
}

export async function endSession() {
  await request("DELETE", SESSION).catch(() => undefined);
  forget();
}

function forget() {
  token = "";
  sessionStorage.removeItem(STORED);
  for (const listener of listeners) listener();
}

async function send(method, path, body, type, signal, accept) {
  const headers = { Accept: accept ?? "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = type ?? "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers, signal, cache: "no-store", credentials: "omit", redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not respond.");
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** Return whether the session has ended: another server that this one asks may answer with 401, too. */
async function hasEnded() {
  const body = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const response = await fetch(path, { method: "POST", headers, body, cache: "no-store", credentials: "omit", redirect: "error" }).catch(() => null);
  return response?.status === 401;
}

async function errorOf(response) {
  const text = await response.text();
  let status = {};
  try {
    status = JSON.parse(text);
  } catch {
    status = { message: text };
  }
  let code = response.status;
  if (code === 401 && token) {
    if (await hasEnded()) forget();
    else code = 403;
  }
  return new ApiError(code, status.message || response.statusText, status.reason);
}

/** Send a request, and return the object of the answer. */
export async function request(method, path, body, { type, signal, accept } = {}) {
  const response = await send(method, path, body, type, signal, accept);
  return response.status === 204 ? null : response.json();
}

/** Get an object or a list. The server indents JSON for browsers, unless they say that nobody reads it. */
export const get = (path, options) => request("GET", `${path}${path.includes("?") ? "&" : "?"}pretty=0`, undefined, options);
export const post = (path, body) => request("POST", path, body);
export const patch = (path, body, type = "application/merge-patch+json") => request("PATCH", path, body, { type });

/** Yield the text of a response as it arrives. */
export async function* textOf(path, signal, accept = "*/*") {
  const response = await send("GET", path, undefined, undefined, signal, accept);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not respond.");
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Yield the events of a watch in batches, as they arrive. */
export async function* watch(path, signal) {
  let rest = "";
  for await (const text of textOf(path, signal, "application/json")) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    const events = lines.filter(Boolean).map((line) => JSON.parse(line));
    const failed = events.find((event) => event.type === "ERROR");
    if (failed) throw new ApiError(failed.object.code, failed.object.message, failed.object.reason);
    if (events.length) yield events;
  }
}

/** Open the streams of a container: a WebSocket has its credentials as a subprotocol, as it has no headers. */
export function openStreams(path) {
  const bearer = btoa(token).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const socket = new WebSocket(path, ["v5.channel.k8s.io", "v4.channel.k8s.io", `base64url.bearer.authorization.k8s.io.${bearer}`]);
  socket.binaryType = "arraybuffer";
  return socket;
}

/** List all pages of a collection; `onPage` gets the items of each one. Return the version of the list. */
export async function list(path, onPage, { signal, limit = 500 } = {}) {
  let token_ = "";
  let version = "";
  do {
    const query = `limit=${limit}${token_ ? `&continue=${encodeURIComponent(token_)}` : ""}`;
    const page = await get(`${path}${path.includes("?") ? "&" : "?"}${query}`, { signal });
    version = page.metadata.resourceVersion;
    onPage(page.items ?? []);
    token_ = page.metadata.continue ?? "";
  } while (token_);
  return version;
}

/** Return whether the user may do something, by a review. */
export async function may(verb, group, resource, { namespace = "", name = "", subresource = "" } = {}) {
  const attributes = { verb, group, resource, namespace, name, subresource };
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes: attributes } };
  const review = await post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body);
  return review.status.allowed === true;
}
