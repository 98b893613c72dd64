// The page of a report: the views of the page of a cluster over what the report has, and a summary.
import { History } from "../../ui/history.js";
import { html, render, useRef } from "../../ui/html.js";
import { NamespaceSelect, Navigation, Search, ThemeButton, useCluster, useKeys, useRoute, useTheme } from "../../ui/shell.js";
import { Detail } from "../../ui/views/detail.js";
import { ObjectTree } from "../../ui/views/objects.js";
import { TimeBar } from "../../ui/views/timebar.js";
import { Timeline } from "../../ui/views/timeline.js";
import { placeOf, setRecording } from "./recorded.js";
import { Events, Logs, Requests } from "./records.js";
import { Summary } from "./summary.js";

const VIEWS = {
  summary: ["Summary", Summary], objects: ["Objects", ObjectTree], timeline: ["Timeline", Timeline],
  requests: ["Requests", Requests], events: ["Events", Events], logs: ["Logs", Logs],
};

/** The history of a report: now is when it was made. */
class RecordedHistory extends History {
  constructor(time) {
    super();
    this.clock = { now: () => time, read: async () => undefined };
  }
}

/** Read the data of the report, which are compressed. */
async function readRecording() {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const recording = await new Response(stream).json();
  const keys = new Map();
  for (const [resource, items] of Object.entries(recording.objects)) {
    for (const { apiVersion, kind, metadata } of items) keys.set(placeOf({ apiVersion, kind, ...metadata }), `${resource}|${metadata.namespace ?? ""}|${metadata.name}`);
  }
  const present = new Set(keys.values());
  for (const { object } of recording.changes) present.add(`${object.resource}|${object.namespace ?? ""}|${object.name}`);
  recording.keyOf = (subject) => keys.get(placeOf(subject)) ?? "";
  recording.existing = (key) => (present.has(key) ? key : "");
  return recording;
}

function App({ recording }) {
  const [route, change] = useRoute(VIEWS);
  const { history, live, shown, isPastReady, problem } = useCluster(route.at ?? "", () => new RecordedHistory(Date.parse(recording.summary.time) || 0));
  const [theme, nextTheme] = useTheme();
  const search = useRef(null);
  const select = (entry) => change({ select: entry ? entry.key : "" });
  useKeys(VIEWS, search, change);
  if (!live || !shown) return null;
  const View = VIEWS[route.view][1];
  const namespaces = [...new Set([...live.byKey.values()].map((entry) => entry.namespace).filter(Boolean))].sort();
  const filter = { namespace: route.ns ?? "", text: (route.find ?? "").toLowerCase() };
  const selected = route.select ? shown.byKey.get(route.select) ?? live.byKey.get(route.select) : undefined;
  const props = {
    recording, objects: shown, live, history, filter, select, selected, selectedKey: route.select ?? "", moment: route.at ?? "", change, route, isOffline: true,
  };
  return html`
    <header>
      <h1><img src=${document.querySelector("link[rel=icon]").href} alt="" width="22" height="22" /><span>mockube</span></h1>
      <${Navigation} views=${VIEWS} view=${route.view} change=${change} />
      <div class="filters">
        <${NamespaceSelect} namespaces=${namespaces} chosen=${filter.namespace} change=${change} />
        <${Search} input=${search} found=${route.find ?? ""} change=${change} label="Find in the report" />
        <${ThemeButton} theme=${theme} next=${nextTheme} />
      </div>
    </header>
    ${problem && html`<p class="notice bad" role="status">The moment cannot be read: ${problem}</p>`}
    <div class=${`page ${route.select ? "has-detail" : ""}`}>
      <section class="view" aria-label=${VIEWS[route.view][0]}><${View} key=${route.view} ...${props} /></section>
      ${route.select && html`<${Detail} key=${route.select} ...${props} />`}
    </div>
    <${TimeBar} history=${history} moment=${route.at ?? ""} isReady=${isPastReady} change=${change} nowName="The end" />`;
}

async function start() {
  const root = document.getElementById("app");
  const recording = await readRecording();
  setRecording(recording);
  root.replaceChildren();
  root.classList.remove("plain");
  render(html`<${App} recording=${recording} />`, root);
}

start().catch((error) => {
  const notice = document.createElement("p");
  notice.className = "notice bad";
  notice.textContent = `The page needs a newer browser, and shows only the summary: ${error.message}`;
  document.getElementById("app").prepend(notice);
});
