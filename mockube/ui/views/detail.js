// One object: its state, events and fields with their authors, its changes, why it is so, and what can be done with it.
import { API_VERSION, CONTROL, get, list, post } from "../api.js";
import { causeLevel, causeText, Facts } from "../explanation.js";
import { ageText, hueOf, shortUser, stateOf, timeText } from "../health.js";
import { html, Scrolled, useEffect, useRef, useState } from "../html.js";
import { pathOf } from "../objects.js";
import { Note, noted, notesOfManagers, patched, valuesOf, yamlLines } from "../trees.js";
import { Actions } from "./actions.js";
import { Logs, Shell } from "./containers.js";
import { inOrder } from "./objects.js";

const TABS = { overview: ["Overview", Overview], yaml: ["YAML", Yaml], changes: ["Changes", Changes], why: ["Why?", Why], actions: ["Act", Actions] };
const OF_PODS = { logs: ["Logs", Logs], shell: ["Shell", Shell] };
/** How long an explanation is shown before a change of the object lets it be asked for again. */
const WHY_MS = 2000;
const MAX_LINES = 4000;
const MAX_FIELDS = 12;
/** Fields that controllers write all the time, and that say nothing of what somebody wants. */
const NOISE = /^(status\b|metadata\.(generation|managedFields|resourceVersion)\b)/;

/** Return the parts of an object of a resource; without a server, only those that are read. */
function tabsOf(resource, isOffline) {
  const { actions, ...read } = TABS;
  if (isOffline) return read;
  return resource === "pods" ? { ...read, actions, ...OF_PODS } : TABS;
}

export function Detail(props) {
  const { selected, selectedKey, select, route, change, isOffline = false } = props;
  const [resource, namespace, name] = selectedKey.split("|");
  const tabs = tabsOf(resource, isOffline);
  const tab = Object.hasOwn(tabs, route.tab) ? route.tab : "overview";
  const kind = selected?.kind.kind ?? resource;
  const { text, level } = selected ? stateOf(kind, selected.object, props.objects) : { text: "not there at this time", level: "none" };
  const onKeyDown = (event) => {
    const names = Object.keys(tabs);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = names[(names.indexOf(tab) + step + names.length) % names.length];
    change({ tab: next });
    event.currentTarget.querySelector(`[data-tab="${next}"]`).focus();
  };
  const [title, View] = tabs[tab];
  return html`
    <aside class="detail" aria-label=${`${kind} ${name}`}>
      <div class="title">
        <div><span class="kind">${kind}</span> <span class=${`state ${level}`}>${text}</span>
          <h2>${name}</h2>${namespace && html`<span class="muted">in ${namespace}</span>`}</div>
        <button class="plain" onClick=${() => select(null)} aria-label="Close" title="Close (Escape)">✕</button>
      </div>
      <div class="tabs" role="tablist" aria-label="Parts" onKeyDown=${onKeyDown}>
        ${Object.entries(tabs).map(([each, [label]]) => html`
          <button key=${each} role="tab" data-tab=${each} aria-selected=${tab === each} tabindex=${tab === each ? 0 : -1} onClick=${() => change({ tab: each })}>${label}</button>`)}
      </div>
      <div class="body" role="tabpanel" tabindex="0" aria-label=${title}>
        ${selected || tab === "changes" ? html`<${View} ...${props} resource=${resource} namespace=${namespace} name=${name} />` : html`<p class="empty">The object does not exist at this time. Its changes may.</p>`}
      </div>
    </aside>`;
}

/** Return what a function that sends requests returns, `{ value, error }`, again when an input changes: at the earliest some time after the last request. */
function useLoaded(load, inputs, pause = 0) {
  const [state, setState] = useState({});
  const sentAt = useRef(-Infinity);
  useEffect(() => {
    const abort = new AbortController();
    const send = () => {
      sentAt.current = performance.now();
      load(abort.signal).then((value) => setState({ value }), (error) => error.name === "AbortError" || setState((old) => ({ ...old, error })));
    };
    const timer = setTimeout(send, Math.max(0, sentAt.current + pause - performance.now()));
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, inputs);
  return state;
}

function Failed({ error }) {
  return html`<p class="problem" role="alert">${error.message}</p>`;
}

function Overview({ selected, objects, history, moment, select }) {
  const { object } = selected;
  const now = history.timeOf(Number(moment));
  const owner = objects.ownerOf(selected);
  const children = objects.childrenOf(selected);
  const conditions = object.status?.conditions ?? [];
  const facts = [
    ["Created", object.metadata.creationTimestamp && `${ageText(now - Date.parse(object.metadata.creationTimestamp))} ago`],
    ["Owner", owner && html`<button class="link" onClick=${() => select(owner)}>${owner.kind.kind} ${owner.name}</button>`],
    ["Node", object.spec?.nodeName && nodeLink(objects, object.spec.nodeName, select)],
    ["Address", object.status?.podIP ?? object.spec?.clusterIP],
    ["Finalizers", object.metadata.finalizers?.join(", ")],
    ["Labels", Object.entries(object.metadata.labels ?? {}).map(([name, value]) => html`<code class="tag">${name}=${value}</code> `)],
  ].filter(([, value]) => value && value.length !== 0);
  return html`
    <dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    <${Containers} object=${object} />
    ${conditions.length > 0 && html`
      <h3>Conditions</h3>
      <${Scrolled}><table><thead><tr><th>Type</th><th>Status</th><th>Since</th><th>Reason</th></tr></thead><tbody>
        ${conditions.map((each) => html`<tr><td>${each.type}</td><td>${each.status}</td>
          <td>${each.lastTransitionTime ? ageText(now - Date.parse(each.lastTransitionTime)) : ""}</td>
          <td title=${each.message}>${each.reason}${each.message ? html`<div class="muted">${each.message}</div>` : null}</td></tr>`)}
      </tbody></table><//>`}
    ${children.length > 0 && html`
      <h3>Owns</h3><ul class="plainlist">${children.sort(inOrder).slice(0, 50).map((child) => {
        const { text, level } = stateOf(child.kind.kind, child.object, objects);
        return html`<li><button class="link" onClick=${() => select(child)}>${child.kind.kind} ${child.name}</button> <span class=${`state ${level}`}>${text}</span></li>`;
      })}${children.length > 50 ? html`<li class="muted">and ${children.length - 50} more</li>` : null}</ul>`}
    <${Events} selected=${selected} objects=${objects} now=${now} />`;
}

function nodeLink(objects, name, select) {
  const node = objects.byKey.get(`nodes||${name}`);
  return node ? html`<button class="link" onClick=${() => select(node)}>${name}</button>` : name;
}

function Containers({ object }) {
  const statuses = [...(object.status?.initContainerStatuses ?? []), ...(object.status?.containerStatuses ?? [])];
  if (!statuses.length) return null;
  return html`
    <h3>Containers</h3>
    <${Scrolled}><table><thead><tr><th>Name</th><th>State</th><th>Restarts</th><th>Image</th></tr></thead><tbody>
      ${statuses.map((each) => {
        const [name, details] = Object.entries(each.state ?? {})[0] ?? ["unknown", {}];
        return html`<tr><td>${each.name}</td><td>${details?.reason ?? name}${details?.message ? html`<div class="muted">${details.message}</div>` : null}</td><td>${each.restartCount}</td><td>${each.image}</td></tr>`;
      })}
    </tbody></table><//>`;
}

function Events({ selected, objects, now }) {
  const { value, error } = useLoaded(async (signal) => {
    const found = [];
    const selector = encodeURIComponent(`involvedObject.uid=${selected.uid}`);
    const scope = selected.namespace ? `/namespaces/${encodeURIComponent(selected.namespace)}` : "";
    await list(`${objects.prefix}/api/v1${scope}/events?fieldSelector=${selector}`, (items) => found.push(...items), { signal });
    const timeOf = (event) => Date.parse(event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp);
    return found.map((event) => ({ ...event, time: timeOf(event) })).sort((a, b) => b.time - a.time);
  }, [selected.uid, objects, selected.object.metadata.resourceVersion]);
  if (error) return html`<h3>Events</h3><${Failed} error=${error} />`;
  if (!value?.length) return html`<h3>Events</h3><p class="muted">${value ? "None." : "Reading …"}</p>`;
  return html`
    <h3>Events</h3>
    <ul class="events">${value.slice(0, 100).map((event) => html`
      <li key=${event.metadata.uid} class=${event.type === "Warning" ? "warning" : ""}>
        <span class="muted">${ageText(now - event.time)} ago${event.count > 1 ? `, ${event.count} times` : ""}, by ${event.source?.component || event.reportingComponent || "unknown"}</span>
        <div><b>${event.reason}</b> ${event.message}</div></li>`)}</ul>`;
}

/** Return a value for a field selector. */
const escaped = (value) => value.replace(/[\\,=]/g, "\\$&");

/** Read the Changes of an object up to the moment that is shown, the oldest first. */
async function changesOf({ resource, namespace, name, moment }, signal) {
  const criteria = { resource, namespace, name };
  const selector = Object.entries(criteria).filter(([, value]) => value).map(([field, value]) => `${field}=${escaped(value)}`).join(",");
  const { items } = await get(`${CONTROL}/changes?fieldSelector=${encodeURIComponent(selector)}`, { signal });
  return items.map((item) => item.spec).filter((change) => !moment || change.revision <= Number(moment));
}

/** Return an object with the author of each part: by its Changes, and before these by its managed fields. */
async function blamed(props, signal) {
  const { selected, objects, namespace, name } = props;
  const object = await get(objects.prefix + pathOf(selected.kind, namespace, name), { signal });
  const managers = object.metadata.managedFields ?? [];
  delete object.metadata.managedFields;
  const changes = await changesOf(props, signal).catch(() => []);
  const start = changes.findLastIndex((change) => change.type === "ADDED" && change.object.uid === object.metadata.uid);
  const fromManagers = (tree) => notesOfManagers(tree, managers, (entry) => ({ user: entry.manager, manager: entry.manager, verb: entry.operation, time: entry.time }));
  if (start < 0) return { object, notes: fromManagers(object), isFromManagers: true };
  let tree = changes[start].patch?.[0].value;
  if (!tree) return { object, notes: fromManagers(object), isFromManagers: true };
  let notes = noted(undefined, new Note(null), tree, authorOf(changes[start]));
  for (const change of changes.slice(start + 1)) {
    if (!change.patch) return { object, notes: fromManagers(object), isFromManagers: true };
    const next = patched(tree, change.patch);
    notes = noted(tree, notes, next, authorOf(change));
    tree = next;
  }
  return { object, notes: noted(tree, notes, object, null) };
}

const authorOf = (change) => ({ ...change.author, revision: change.revision, time: change.time });

function Yaml(props) {
  const { selected, moment } = props;
  const [chosen, setChosen] = useState(null);
  const { value, error } = useLoaded((signal) => blamed(props, signal), [selected.key, selected.object.metadata.resourceVersion, moment]);
  if (error && !value) return html`<${Failed} error=${error} />`;
  if (!value) return html`<p class="muted">Reading …</p>`;
  const lines = yamlLines(value.object, value.notes);
  const shown = chosen === null ? null : lines[chosen];
  return html`
    <p class="muted">${value.isFromManagers ? "The authors are the field managers: the history does not reach back to the creation." : "A line shows who wrote it. Choose one for its time and request."}</p>
    ${shown && html`<p class="blame" role="status">${describe(shown)}</p>`}
    <div class="yaml" role="list" tabindex="0" aria-label="YAML with authors">${lines.slice(0, MAX_LINES).map((line, index) => {
      const user = line.author?.user;
      const isFirst = index === 0 || lines[index - 1].author !== line.author;
      return html`<div key=${index} role="listitem" class=${`line ${chosen === index ? "chosen" : ""}`} onClick=${() => setChosen(index)}>
        <span class=${`who ${user ? `hue-${hueOf(user)}` : ""}`} title=${user ?? ""}>${isFirst && user ? shortUser(user) : ""}</span><code>${"  ".repeat(line.indent)}${line.text}</code></div>`;
    })}</div>
    ${lines.length > MAX_LINES ? html`<p class="muted">${lines.length - MAX_LINES} more lines are not shown.</p>` : null}`;
}

function describe({ path, author }) {
  const field = path.join(".");
  if (!author) return `${field}: the server set it, or it was written before the history begins.`;
  const time = author.time ? ` at ${timeText(Date.parse(author.time), { withDate: true })}` : "";
  const by = author.manager && author.manager !== author.user ? ` (${author.manager})` : "";
  return `${field}: ${author.user}${by} by ${author.verb ?? "a write"}${author.subresource ? ` of ${author.subresource}` : ""}${time}${author.revision ? `, revision ${author.revision}` : ""}`;
}

const short = (value) => {
  const text = value === undefined ? "" : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
};

function Changes(props) {
  const { selected, resource, namespace, name, moment, change: changeRoute, objects } = props;
  const [other, setOther] = useState(null);
  const [showsStatus, setShowsStatus] = useState(false);
  const { value, error } = useLoaded((signal) => changesOf(props, signal), [resource, namespace, name, moment, selected?.object.metadata.resourceVersion]);
  if (error && !value) return html`<${Failed} error=${error} />`;
  if (!value) return html`<p class="muted">Reading …</p>`;
  if (!value.length) return html`<p class="muted">The history has no change of this object: it was written before.</p>`;
  const values = valuesOf(value);
  const all = value.map((change, index) => ({ change, fields: values[index].filter(({ field }) => showsStatus || !NOISE.test(field)), isMinor: values[index].length > 0 && values[index].every(({ field }) => NOISE.test(field)) }));
  const shown = all.filter(({ isMinor }) => showsStatus || !isMinor).reverse();
  return html`
    <p><label><input type="checkbox" checked=${showsStatus} onChange=${(event) => setShowsStatus(event.target.checked)} /> also of the status</label>
      ${shown.length < all.length && html` <span class="muted">${all.length - shown.length} of ${all.length} changes are of the status alone</span>`}</p>
    <p class="muted">The newest first. “Then” shows the whole page as it was after a change; “diff” compares the object of then with what is shown.</p>
    ${other && selected && html`<${Diff} revision=${other} selected=${selected} objects=${objects} />`}
    <ol class="changes">${shown.slice(0, 300).map(({ change, fields }) => html`
      <li key=${change.revision}>
        <div><span class=${`dot hue-${hueOf(change.author?.user ?? "")}`}></span><b>${shortUser(change.author?.user)}</b>
          <span class="muted">${change.type === "MODIFIED" ? "" : `${change.type} `}${change.author?.verb ?? ""}${change.author?.subresource ? `/${change.author.subresource}` : ""} ${change.time ? timeText(Date.parse(change.time)) : ""}</span>
          <button class="link" onClick=${() => changeRoute({ at: String(change.revision) })}>then</button>
          ${change.type !== "DELETED" && html` <button class="link" onClick=${() => setOther(change.revision)}>diff</button>`}</div>
        ${fields.slice(0, MAX_FIELDS).map((each) => html`
          <div class="operation"><code>${each.field}: ${each.isKnown && each.before === undefined ? "" : html`<del>${each.isKnown ? short(each.before) : "?"}</del> → `}${each.after === undefined ? "(not set)" : html`<ins>${short(each.after)}</ins>`}</code></div>`)}
        ${fields.length > MAX_FIELDS && html`<div class="operation muted">and ${fields.length - MAX_FIELDS} more fields</div>`}
        ${change.patchOmitted ? html`<div class="muted">${change.patchOmitted}</div>` : null}
      </li>`)}</ol>`;
}

function Diff({ revision, selected, objects }) {
  const { value, error } = useLoaded(async (signal) => {
    const path = pathOf(selected.kind, selected.namespace, selected.name);
    const [then, now] = await Promise.all([get(`/mockube/at/${revision}${path}`, { signal }), get(objects.prefix + path, { signal })]);
    for (const each of [then, now]) for (const field of ["managedFields", "resourceVersion"]) delete each.metadata[field];
    return difference(yamlLines(sorted(then)), yamlLines(sorted(now)));
  }, [revision, selected.key, selected.object.metadata.resourceVersion]);
  if (error) return html`<${Failed} error=${error} />`;
  if (!value) return html`<p class="muted">Reading …</p>`;
  if (!value.some((line) => line.sign)) return html`<p class="muted">Nothing differs from revision ${revision}.</p>`;
  return html`<p class="muted">From revision ${revision} to what is shown:</p><div class="yaml diff" role="group" tabindex="0" aria-label=${`Difference from revision ${revision}`}>${value.map((line) => html`
    <div class=${`line ${line.sign === "+" ? "added" : line.sign === "-" ? "removed" : ""}`}><code>${line.sign || " "} ${line.text}</code></div>`)}</div>`;
}

/** Return a value with the fields of its objects in one order: a report has another one than a moment that is made of changes. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

/** Return the lines of two texts with signs, of the same lines only two around each difference. */
export function difference(before, after) {
  const [a, b] = [before, after].map((lines) => lines.map((line) => "  ".repeat(line.indent) + line.text));
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const middle = commonLines(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (text) => ({ sign: "", text });
  const all = [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
  const isNear = all.map((_, index) => all.slice(Math.max(0, index - 2), index + 3).some((line) => line.sign));
  return all.flatMap((line, index) => (isNear[index] ? [line] : isNear[index - 1] ? [{ sign: "", text: "…" }] : []));
}

function commonLines(a, b) {
  if (a.length * b.length > 4_000_000) return [...a.map((text) => ({ sign: "-", text })), ...b.map((text) => ({ sign: "+", text }))];
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const found = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      found.push({ sign: "", text: a[i] });
      i += 1;
      j += 1;
    } else if (j === b.length || (i < a.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) found.push({ sign: "-", text: a[i++] });
    else found.push({ sign: "+", text: b[j++] });
  }
  return found;
}

function Why({ selected, namespace, name, moment }) {
  const { value, error } = useLoaded(async () => {
    if (moment) return { note: "An explanation is of now: go back to now to ask." };
    const subject = { apiVersion: selected.object.apiVersion ?? `${selected.kind.group ? `${selected.kind.group}/` : ""}${selected.kind.version}`, kind: selected.kind.kind, namespace: namespace || undefined, name };
    const body = { apiVersion: API_VERSION, kind: "Explanation", metadata: {}, spec: { object: subject } };
    try {
      return await post(`${CONTROL}/explanations`, body);
    } catch (problem) {
      if (problem.code === 404 && /could not find the requested resource|page not found/.test(problem.message)) return { note: "This server does not explain objects: it has no kind Explanation." };
      throw problem;
    }
  }, [selected.key, selected.object.metadata.resourceVersion, moment], WHY_MS);
  if (error) return html`<${Failed} error=${error} />`;
  if (!value) return html`<p class="muted">Reading …</p>`;
  if (value.note) return html`<p class="muted">${value.note}</p>`;
  const { related = [], unreadable = [] } = value.status;
  return html`
    <p class=${`cause ${causeLevel(value.status)}`}>${causeText(value.status)}</p>
    <${Facts} explanation=${value.status} />
    ${related.length > 0 && html`<h3>Related</h3><ul class="events">${related.map((each) => html`<li><b>${each.object?.kind} ${each.object?.name}</b> ${each.cause}</li>`)}</ul>`}
    ${unreadable.length > 0 && html`<p class="muted">You may not read: ${unreadable.join(", ")}</p>`}`;
}
