// Objects: a tree by owners, of each namespace and kind.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { ageText, isUnhealthy, stateOf } from "../health.js";
import { rankOfNamespace } from "../objects.js";

export const HIDDEN = new Set([
  "configmaps", "secrets", "serviceaccounts", "endpoints", "endpointslices.discovery.k8s.io", "roles.rbac.authorization.k8s.io",
  "rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
  "apiservices.apiregistration.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
  "clustertrustbundles.certificates.k8s.io", "servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io", "namespaces",
  "csinodes.storage.k8s.io", "priorityclasses.scheduling.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
]);
const FIRST = ["UnitedDeployment", "Deployment", "StatefulSet", "CloneSet", "DaemonSet", "CronJob", "Job", "ReplicaSet", "Pod", "Service", "Node"];
const ROW = 28;
/** Of a narrow page, whose names have two lines, and the state is below them. */
const NARROW_ROW = 58;
const NARROW_WIDTH = 600;
const OPEN_LIMIT = 12;

const LARGE = 2000;
const SORT_MS = 1000;

/** Return a text by which objects are in their natural order: it is made once for each object, as a comparison of names by locale takes long. */
function orderOf(entry) {
  if (entry.order === undefined) {
    const found = FIRST.indexOf(entry.kind.kind);
    const rank = String(found < 0 ? FIRST.length : found).padStart(2, "0");
    const [namespace, name] = [entry.namespace, entry.name].map((text) => text.replace(/[0-9]+/g, (digits) => digits.padStart(10, "0")));
    entry.order = [rankOfNamespace(entry.namespace), namespace, rank, entry.kind.kind, name].join("\u0000");
  }
  return entry.order;
}
export const inOrder = (a, b) => (orderOf(a) < orderOf(b) ? -1 : 1);

/** Return whether a filter selects an object. */
export function matches(entry, filter) {
  if (filter.namespace && entry.namespace !== filter.namespace) return false;
  return !filter.text || entry.name.toLowerCase().includes(filter.text) || entry.kind.kind.toLowerCase().includes(filter.text);
}

/** Return the first object that a text finds: one with this name, or else the first of the list. */
export function firstMatch(objects, filter) {
  const found = [...objects.byKey.values()].filter((entry) => matches(entry, filter)).sort(inOrder);
  return found.find((entry) => entry.name === filter.text) ?? found.find((entry) => !HIDDEN.has(entry.kind.resource)) ?? found[0];
}

/** Return the rows of the tree: `{ entry, depth, children, isOpen }`. */
function rowsOf(objects, filter, { showsAll, onlyUnhealthy }, toggled) {
  const roots = [];
  const selected = new Set();
  for (const entry of objects.byKey.values()) {
    const isShown = matches(entry, filter) && (showsAll || filter.text || !HIDDEN.has(entry.kind.resource));
    if (!isShown || (onlyUnhealthy && !isUnhealthy(stateOf(entry.kind.kind, entry.object, objects)))) continue;
    for (let each = entry, depth = 0; each && depth < 10 && !selected.has(each); each = objects.ownerOf(each), depth += 1) {
      selected.add(each);
      if (!objects.ownerOf(each)) roots.push(each);
    }
  }
  const rows = [];
  const add = (entry, depth) => {
    const children = objects.childrenOf(entry).filter((child) => selected.has(child)).sort(inOrder);
    const isOpen = (children.length <= OPEN_LIMIT) !== toggled.has(entry.key);
    rows.push({ entry, depth, children: children.length, isOpen });
    if (isOpen && depth < 10) for (const child of children) add(child, depth + 1);
  };
  let namespace = null;
  for (const root of roots.sort(inOrder)) {
    if (root.namespace !== namespace) {
      namespace = root.namespace;
      rows.push({ heading: namespace || "cluster" });
    }
    add(root, 0);
  }
  return rows;
}

export function ObjectTree({ objects, filter, select, selectedKey, moment, history }) {
  const [toggled, setToggled] = useState(() => new Set());
  const [showsAll, setShowsAll] = useState(false);
  const [onlyUnhealthy, setOnlyUnhealthy] = useState(false);
  const [top, setTop] = useState(0);
  const [{ height, isNarrow }, setSize] = useState({ height: 600, isNarrow: false });
  const rowHeight = isNarrow ? NARROW_ROW : ROW;
  const list = useRef(null);
  const [focus, setFocus] = useState("");
  const tick = objects.byKey.size > LARGE ? Math.floor(performance.now() / SORT_MS) : objects.version; // many objects change all the time
  const rows = useMemo(() => rowsOf(objects, filter, { showsAll, onlyUnhealthy }, toggled), [objects, tick, filter.namespace, filter.text, showsAll, onlyUnhealthy, toggled]);
  useEffect(() => {
    if (!list.current) return undefined;
    const observer = new ResizeObserver(() => setSize({ height: list.current?.clientHeight ?? 600, isNarrow: (list.current?.clientWidth ?? NARROW_WIDTH) < NARROW_WIDTH }));
    observer.observe(list.current);
    return () => observer.disconnect();
  }, []);
  const now = history.timeOf(Number(moment));
  const first = Math.max(0, Math.floor(top / rowHeight) - 10);
  const last = Math.min(rows.length, Math.ceil((top + height) / rowHeight) + 10);
  const toggle = (key) => {
    const next = new Set(toggled);
    if (!next.delete(key)) next.add(key);
    setToggled(next);
  };
  const onKeyDown = (event) => {
    const items = rows.filter((row) => row.entry);
    const index = Math.max(0, items.findIndex((row) => row.entry.key === (focus || selectedKey)));
    const row = items[index];
    const moveTo = (target) => {
      if (!target) return;
      setFocus(target.entry.key);
      const position = rows.indexOf(target) * rowHeight;
      if (position < list.current.scrollTop) list.current.scrollTop = position;
      if (position > list.current.scrollTop + height - 2 * rowHeight) list.current.scrollTop = position - height + 2 * rowHeight;
    };
    const actions = {
      ArrowDown: () => moveTo(focus ? items[index + 1] : row),
      ArrowUp: () => moveTo(items[index - 1]),
      Home: () => moveTo(items[0]),
      End: () => moveTo(items.at(-1)),
      ArrowRight: () => row?.children && !row.isOpen && toggle(row.entry.key),
      ArrowLeft: () => row?.children && row.isOpen && toggle(row.entry.key),
      Enter: () => row && select(row.entry),
      " ": () => row && select(row.entry),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  };
  const count = rows.filter((row) => row.entry).length;
  return html`
    <div class="bar">
      <label><input type="checkbox" checked=${showsAll} onChange=${(event) => setShowsAll(event.target.checked)} /> all kinds</label>
      <label><input type="checkbox" checked=${onlyUnhealthy} onChange=${(event) => setOnlyUnhealthy(event.target.checked)} /> not healthy</label>
      <span class="muted">${count.toLocaleString("en")} of ${objects.byKey.size.toLocaleString("en")} objects</span>
    </div>
    <div class=${`tree ${isNarrow ? "narrow" : ""}`} role="tree" tabindex="0" aria-label="Objects by owner" ref=${list} aria-activedescendant=${focus ? `row-${focus}` : undefined}
         onScroll=${(event) => setTop(event.target.scrollTop)} onKeyDown=${onKeyDown}>
      <div role="none" style=${{ height: `${rows.length * rowHeight}px`, position: "relative" }}>
        ${rows.slice(first, last).map((row, offset) => row.heading !== undefined
          ? html`<div key=${`heading ${row.heading}`} class="heading" role="none" style=${{ top: `${(first + offset) * rowHeight}px` }}>${row.heading}</div>`
          : html`<${Row} key=${row.entry.key} row=${row} top=${(first + offset) * rowHeight} now=${now} objects=${objects} isSelected=${row.entry.key === selectedKey}
                         indent=${isNarrow ? 9 : 18} isFocused=${row.entry.key === focus} select=${select} toggle=${toggle} />`)}
      </div>
      ${count === 0 && html`<p class="empty">No object matches.</p>`}
    </div>`;
}

function Row({ row, top, now, objects, indent, isSelected, isFocused, select, toggle }) {
  const { entry, depth, children, isOpen } = row;
  const { text, level } = stateOf(entry.kind.kind, entry.object, objects);
  const created = Date.parse(entry.object.metadata.creationTimestamp);
  return html`
    <div class=${`row ${isFocused ? "focused" : ""}`} role="treeitem" id=${`row-${entry.key}`} aria-level=${depth + 1} aria-selected=${isSelected}
         aria-expanded=${children ? isOpen : undefined} style=${{ top: `${top}px` }} onClick=${() => select(entry)}>
      <span class="name" style=${{ paddingLeft: `${depth * indent}px` }}>
        ${children
          ? html`<span class="twist" aria-hidden="true" onClick=${(event) => { event.stopPropagation(); toggle(entry.key); }}>${isOpen ? "▾" : "▸"}</span>`
          : html`<span class="twist" aria-hidden="true"></span>`}
        <span class="kind">${entry.kind.kind}</span> <span class="id">${entry.name}</span>
        ${children && !isOpen ? html`<span class="muted">${children}</span>` : null}
      </span>
      <span class=${`state ${level}`}>${text}</span>
      <span class="age muted">${created ? ageText(now - created) : ""}</span>
    </div>`;
}
