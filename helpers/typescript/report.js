/** @import { Change, Request } from "./index.js" */

/** The number of last lines of each section. */
const maxLines = 20;
/** The beginning of the User-Agent of mockube's own controllers. */
const controllers = "kube-controller-manager";

/**
 * Returns the text of a report: what happened after the versions at which a test began.
 * @param {{ request: number, revision: number }} began
 * @param {{ requests: Request[], events: any[], changes: Change[] }} happened
 */
export function reportText(began, { requests, events, changes }) {
  return [
    section(
      "requests",
      requests.filter((each) => version(each) > began.request && !each.spec.agent?.startsWith(controllers)).map(requestLine),
    ),
    section("events", events.filter((each) => version(each) > began.revision).map(eventLine)),
    section("changes", changes.filter((each) => each.spec.revision > began.revision && !isRoutine(each)).map(changeLine)),
  ].join("\n");
}

/**
 * Returns a resource version as a number; later ones are larger.
 * @param {{ metadata: { resourceVersion: string } }} object
 */
export function version(object) {
  return Number(object.metadata.resourceVersion);
}

/**
 * @param {string} title
 * @param {string[]} lines
 */
function section(title, lines) {
  if (lines.length === 0) return `mockube: no ${title}`;
  const omitted = lines.length - maxLines;
  const shown = omitted > 0 ? [`... and ${omitted} before`, ...lines.slice(-maxLines)] : lines;
  return [`mockube: ${title}`, ...shown.map((line) => `    ${line}`)].join("\n");
}

/** @param {Request} request */
function requestLine({ spec, status }) {
  const fault = status?.fault ? ` fault=${status.fault}` : "";
  return `${time(spec.time)} ${status?.code ?? (status?.isCut ? "cut" : "...")} ${spec.verb} ${spec.uri} (${spec.user}, ${spec.agent})${fault}`;
}

/** @param {any} event */
function eventLine({ type, reason, message, involvedObject }) {
  return `${type} ${reason} ${reference(involvedObject)}: ${message}`;
}

/** @param {Change} change */
function changeLine({ spec }) {
  const author = spec.author ? `${spec.author.user}, ${spec.author.manager ?? ""}` : "the author is not known";
  const line = `${time(spec.time)} ${spec.type} ${reference(spec.object)} (${author})`;
  if (spec.patchOmitted) return `${line}\n        no patch: ${spec.patchOmitted}`;
  const operations = (spec.type === "MODIFIED" && spec.patch) || [];
  return [line, ...operations.map(({ op, path, value }) => `        ${op} ${path} ${JSON.stringify(value) ?? ""}`)].join("\n");
}

/**
 * Returns whether a change repeats in each cluster, or is an Event, which has a section of its own.
 * @param {Change} change
 */
function isRoutine({ spec }) {
  return spec.object.kind === "Event" || spec.object.kind === "Lease";
}

/** @param {{ kind: string, namespace?: string, name: string }} object */
function reference({ kind, namespace, name }) {
  return namespace ? `${kind} ${namespace}/${name}` : `${kind} ${name}`;
}

/** @param {string} [text] */
function time(text) {
  return text?.slice(11, 23) ?? "--:--:--.---";
}
