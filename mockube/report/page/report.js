// A report: the views of the page of a cluster over what a recording has, and a summary.
import { naturally } from "../../ui/health.js";
import { History } from "../../ui/history.js";
import { html, render, useRef } from "../../ui/html.js";
import { Keys, NamespaceSelect, Navigation, Search, ThemeButton, useCluster, useKeys, useRoute, useTheme } from "../../ui/shell.js";
import { Detail } from "../../ui/views/detail.js";
import { firstMatch, ObjectTree } from "../../ui/views/objects.js";
import { TimeBar } from "../../ui/views/timebar.js";
import { Timeline } from "../../ui/views/timeline.js";
import { placeOf, RecordedServer } from "./recorded.js";
import { Events, Logs, Requests } from "./records.js";
import { Summary } from "./summary.js";

export const VIEWS = {
  summary: ["Summary", Summary], objects: ["Objects", ObjectTree], timeline: ["Timeline", Timeline],
  requests: ["Requests", Requests], events: ["Events", Events], logs: ["Logs", Logs],
};

/** The history of a report: now is when it was made. */
export class RecordedHistory extends History {
  constructor(recording) {
    super(recording.server);
    const time = Date.parse(recording.summary.time) || 0;
    this.clock = { now: () => time, read: async () => undefined };
  }
}

/** Read the data of the page, which are compressed. */
async function readData() {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Give a recording its server, and the keys of its objects. */
export function prepare(recording) {
  const keys = new Map();
  for (const [resource, items] of Object.entries(recording.objects)) {
    for (const { apiVersion, kind, metadata } of items) keys.set(placeOf({ apiVersion, kind, ...metadata }), `${resource}|${metadata.namespace ?? ""}|${metadata.name}`);
  }
  const present = new Set(keys.values());
  for (const { object } of recording.changes) present.add(`${object.resource}|${object.namespace ?? ""}|${object.name}`);
  recording.keyOf = (subject) => keys.get(placeOf(subject)) ?? "";
  recording.existing = (key) => (present.has(key) ? key : "");
  recording.server = new RecordedServer(recording);
  return recording;
}

/** The views of a recording. `more` are properties for views of other pages, and `tools` what they have in the header. */
export function Report({ recording, views = VIEWS, more = {}, tools = null }) {
  const [route, change] = useRoute(views);
  const { history, live, shown, isPastReady, problem } = useCluster(route.at ?? "", () => new RecordedHistory(recording));
  const [theme, nextTheme] = useTheme();
  const search = useRef(null);
  const keys = useRef(null);
  const select = (entry) => change({ select: entry ? entry.key : "" });
  useKeys(views, search, change, keys);
  if (!live || !shown) return null;
  const [title, View, { hasMoments } = { hasMoments: true }] = views[route.view];
  const namespaces = [...new Set([...live.byKey.values()].map((entry) => entry.namespace).filter(Boolean))].sort(naturally);
  const filter = { namespace: route.ns ?? "", text: (route.find ?? "").toLowerCase() };
  const selected = route.select ? shown.byKey.get(route.select) ?? live.byKey.get(route.select) : undefined;
  const props = {
    recording, objects: shown, live, history, filter, select, selected, selectedKey: route.select ?? "", moment: route.at ?? "", change, route, isOffline: true, ...more,
  };
  return html`
    <header>
      <h1><img src=${document.querySelector("link[rel=icon]").href} alt="" width="22" height="22" /><span>mockube</span></h1>
      <${Navigation} views=${views} view=${route.view} change=${change} />
      <div class="filters">
        ${tools?.(route, change)}
        <${NamespaceSelect} namespaces=${namespaces} chosen=${filter.namespace} change=${change} />
        <${Search} input=${search} found=${route.find ?? ""} change=${change} open=${(text) => (text ? firstMatch(shown, { ...filter, text }) : undefined)} label="Find in the report" />
        <${ThemeButton} theme=${theme} next=${nextTheme} />
      </div>
    </header>
    ${problem && html`<p class="notice bad" role="status">The moment cannot be read: ${problem}</p>`}
    <${Keys} views=${views} dialog=${keys} />
    <div class=${`page ${route.select ? "has-detail" : ""}`}>
      <section class="view" aria-label=${title}><${View} key=${route.view} ...${props} /></section>
      ${route.select && html`<${Detail} key=${route.select} ...${props} />`}
    </div>
    ${(hasMoments || route.at) && html`<${TimeBar} history=${history} moment=${route.at ?? ""} isReady=${isPastReady} change=${change} nowName="The end" />`}`;
}

/** Show the page that a function makes of the data. */
export function show(pageOf) {
  start(pageOf).catch((error) => {
    const notice = document.createElement("p");
    notice.className = "notice bad";
    notice.textContent = `The page needs a newer browser, and shows only the summary: ${error.message}`;
    document.getElementById("app").prepend(notice);
  });
}

async function start(pageOf) {
  const root = document.getElementById("app");
  const page = pageOf(await readData());
  root.replaceChildren();
  root.classList.remove("plain");
  render(page, root);
}
