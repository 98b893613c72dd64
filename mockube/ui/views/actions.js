// What can be done with an object, and with the cluster, where the rights of the user allow it.
import { API_VERSION, CONTROL, get, may, patch, post, request } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { pathOf } from "../objects.js";
import { drain } from "./drain.js";

const SCALED = new Set(["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "CloneSet", "UnitedDeployment"]);
const RESTARTED = new Set(["Deployment", "StatefulSet", "DaemonSet"]);
const HEARTBEATS = "mockube.dev/stop-heartbeats";

/** Return which of some rights the user has, by their names; undefined until the server has answered. */
function useRights(rights, key) {
  const [allowed, setAllowed] = useState({});
  useEffect(() => {
    let isCurrent = true;
    for (const [name, [verb, group, resource, scope]] of Object.entries(rights)) {
      may(verb, group, resource, scope).then(
        (value) => isCurrent && setAllowed((old) => ({ ...old, [name]: value })),
        () => isCurrent && setAllowed((old) => ({ ...old, [name]: false })),
      );
    }
    return () => {
      isCurrent = false;
    };
  }, [key]);
  return allowed;
}

/** A form with one button; it shows what the server answered, a text or several lines. */
export function Act({ title, allowed, run, children, danger = false }) {
  const [answer, setAnswer] = useState(null);
  const [isRunning, setRunning] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setRunning(true);
    try {
      setAnswer({ text: (await run(new FormData(event.target))) ?? "Done." });
    } catch (error) {
      setAnswer({ text: error.message, isError: true });
    }
    setRunning(false);
  };
  return html`
    <form class="act" onSubmit=${submit}>
      ${children}
      <button disabled=${!allowed || isRunning} class=${danger ? "danger" : ""} title=${allowed === false ? "Your rights do not allow this" : ""}>${title}</button>
      ${allowed === false && html`<span class="muted">your rights do not allow this</span>`}
      ${answer && html`<span role="status" class=${answer.isError ? "problem" : "muted"}>${[answer.text].flat().map((line) => html`<div>${line}</div>`)}</span>`}
    </form>`;
}

/** Return the rights that the actions of an object need; what is not shown is not asked for. */
function rightsOf(kind, scope) {
  const isNode = kind.kind === "Node";
  return {
    ...(SCALED.has(kind.kind) && { scale: ["patch", kind.group, kind.plural, { ...scope, subresource: "scale" }] }),
    ...((RESTARTED.has(kind.kind) || isNode) && { patch: ["patch", kind.group, kind.plural, scope] }),
    ...(isNode && { evict: ["create", "", "pods", { subresource: "eviction" }] }),
    delete: ["delete", kind.group, kind.plural, scope],
  };
}

export function Actions({ selected, namespace, name, moment, select }) {
  const { kind } = selected;
  const path = pathOf(kind, namespace, name);
  const allowed = useRights(moment ? {} : rightsOf(kind, { namespace, name }), `${selected.key} ${moment}`);
  if (moment) return html`<p class="muted">This is the past: it can be read, and not changed.</p>`;
  const restart = () => patch(path, { spec: { template: { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() } } } } });
  const isCordoned = selected.object.spec?.unschedulable === true;
  const isStopped = selected.object.metadata.annotations?.[HEARTBEATS] !== undefined;
  return html`
    ${SCALED.has(kind.kind) && html`
      <${Act} title="Scale" allowed=${allowed.scale} run=${async (data) => {
        await patch(`${path}/scale`, { spec: { replicas: Number(data.get("replicas")) } });
        return `It has ${data.get("replicas")} replicas now.`;
      }}><label>Replicas <input name="replicas" type="number" min="0" required defaultValue=${selected.object.spec?.replicas ?? 1} /></label><//>`}
    ${RESTARTED.has(kind.kind) && html`<${Act} title="Restart the rollout" allowed=${allowed.patch} run=${async () => {
      await restart();
    }} />`}
    ${kind.kind === "Node" && html`
      <${Act} title=${isCordoned ? "Uncordon" : "Cordon"} allowed=${allowed.patch} run=${async () => {
        await patch(path, { spec: { unschedulable: isCordoned ? null : true } });
      }} />
      <${Act} title="Drain" danger=${true} allowed=${both(allowed.patch, allowed.evict)} run=${(data) => drain(selected, { evictsUnmanaged: data.has("unmanaged") })}>
        <label><input type="checkbox" name="unmanaged" /> also pods without a controller</label><//>
      <${Act} title=${isStopped ? "Let the node send heartbeats" : "Stop the heartbeats"} allowed=${allowed.patch} run=${async () => {
        await patch(path, { metadata: { annotations: { [HEARTBEATS]: isStopped ? null : "true" } } });
      }} />`}
    <${Act} title="Delete" danger=${true} allowed=${allowed.delete} run=${async (data) => {
      if (data.get("confirm") !== name) throw new Error("Type the name of the object to delete it.");
      await request("DELETE", `${path}?propagationPolicy=Background`);
      select(null);
    }}><label>Name, to confirm <input name="confirm" autocomplete="off" /></label><//>`;
}

/** Return whether two rights are there; undefined while one is not known. */
function both(a, b) {
  return a === false || b === false ? false : a && b;
}

/** What concerns the whole cluster: marks, time, faults, and the way back. */
export function ClusterActions({ moment, change }) {
  const group = "control.mockube.dev";
  const allowed = useRights({
    mark: ["create", group, "marks"], fault: ["create", group, "faults"], unfault: ["delete", group, "faults"],
    advance: ["create", group, "clocks", { name: "cluster", subresource: "advance" }], rewind: ["create", group, "rewinds"],
  }, "cluster");
  const object = (kind, spec, name) => ({ apiVersion: API_VERSION, kind, metadata: name ? { name } : { generateName: `${kind.toLowerCase()}-` }, spec });
  return html`
    <div class="acts">
      <${Act} title="Mark" allowed=${allowed.mark} run=${async (data) => {
        const made = await post(`${CONTROL}/marks`, object("Mark", {}, data.get("name")));
        return `${made.metadata.name} is revision ${made.spec.revision}.`;
      }}><label>Name of this moment <input name="name" required pattern="[a-z0-9]([a-z0-9.\\-]*[a-z0-9])?" /></label><//>
      <${Act} title="Advance" allowed=${allowed.advance} run=${async (data) => {
        const answer = await post(`${CONTROL}/clocks/cluster/advance`, { apiVersion: API_VERSION, kind: "ClockAdvance", spec: { seconds: Number(data.get("seconds")) } });
        return `It is ${answer.status.time}.`;
      }}><label>Seconds <input name="seconds" type="number" min="1" max="86400" defaultValue="60" required /></label><//>
      <${Act} title="Add a fault" allowed=${allowed.fault} run=${async (data) => {
        const match = Object.fromEntries([["resource", data.get("resource")], ["verbs", data.get("verb") ? [data.get("verb")] : null]].filter(([, value]) => value));
        const made = await post(`${CONTROL}/faults`, object("Fault", { match, refuse: { status: Number(data.get("status")) }, times: Number(data.get("times")) }));
        return `${made.metadata.name} refuses the next ${data.get("times")} requests that match.`;
      }}>
        <label>Resource <input name="resource" placeholder="pods" size="10" required /></label>
        <label>Verb <select name="verb"><option value="">any</option>${["create", "update", "patch", "delete", "get", "list", "watch"].map((verb) => html`<option>${verb}</option>`)}</select></label>
        <label>Status <select name="status">${[409, 429, 500, 503].map((code) => html`<option>${code}</option>`)}</select></label>
        <label>Times <input name="times" type="number" min="1" max="10000" defaultValue="1" size="4" required /></label><//>
      <${Act} title="Clear all faults" allowed=${allowed.unfault} run=${async () => {
        const { items } = await get(`${CONTROL}/faults`);
        for (const { metadata } of items) await request("DELETE", `${CONTROL}/faults/${encodeURIComponent(metadata.name)}`);
        return `${items.length} faults are cleared.`;
      }} />
      <${Act} title="Rewind" danger=${true} allowed=${allowed.rewind} run=${async (data) => {
        const { status } = await post(`${CONTROL}/rewinds`, { apiVersion: API_VERSION, kind: "Rewind", metadata: {}, spec: { to: data.get("to") } });
        change({ at: "" });
        return `Created ${status.created ?? 0}, changed ${status.changed ?? 0}, deleted ${status.deleted ?? 0}. A rewind to ${status.previousRevision} undoes it.`;
      }}><label>Revision, Mark or time <input name="to" required defaultValue=${moment} placeholder="-5m" /></label><//>
    </div>`;
}
