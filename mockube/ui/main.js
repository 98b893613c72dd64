// The page: its session, its state, and what all views share.
import { endSession, onSessionEnd, openSession } from "./api.js";
import { naturally } from "./health.js";
import { History } from "./history.js";
import { html, render, useRef } from "./html.js";
import { Keys, NamespaceSelect, Navigation, Search, ThemeButton, useCluster, useKeys, useRoute, useTheme } from "./shell.js";
import { Activity } from "./views/activity.js";
import { Cluster } from "./views/cluster.js";
import { Controllers } from "./views/controllers.js";
import { Detail } from "./views/detail.js";
import { firstMatch, ObjectTree } from "./views/objects.js";
import { Problems } from "./views/problems.js";
import { TimeBar } from "./views/timebar.js";
import { Timeline } from "./views/timeline.js";

const VIEWS = {
  health: ["Health", Problems], cluster: ["Cluster", Cluster], objects: ["Objects", ObjectTree], timeline: ["Timeline", Timeline],
  activity: ["Activity", Activity], controllers: ["Controllers", Controllers],
};

function App() {
  const [route, change] = useRoute(VIEWS);
  const { history, live, shown, isPastReady, problem } = useCluster(route.at ?? "", () => new History());
  const [theme, nextTheme] = useTheme();
  const search = useRef(null);
  const keys = useRef(null);
  const select = (entry) => change({ select: entry ? entry.key : "" });
  useKeys(VIEWS, search, change, keys);
  if (!live || !shown) return null;
  const View = VIEWS[route.view][1];
  const namespaces = [...new Set([...shown.byKey.values()].map((entry) => entry.namespace).filter(Boolean))].sort(naturally);
  const filter = { namespace: route.ns ?? "", text: (route.find ?? "").toLowerCase() };
  const selected = route.select ? shown.byKey.get(route.select) ?? live.byKey.get(route.select) : undefined;
  const props = { objects: shown, live, history, filter, select, selected, selectedKey: route.select ?? "", moment: route.at ?? "", change, route };
  return html`
    <header>
      <h1><img src=${new URL("icon.svg", import.meta.url).pathname} alt="" width="22" height="22" /><span>mockube</span></h1>
      <${Navigation} views=${VIEWS} view=${route.view} change=${change} />
      <div class="filters">
        <${NamespaceSelect} namespaces=${namespaces} chosen=${filter.namespace} change=${change} />
        <${Search} input=${search} found=${route.find ?? ""} change=${change} open=${(text) => (text ? firstMatch(shown, { ...filter, text }) : undefined)} />
        <${ThemeButton} theme=${theme} next=${nextTheme} />
        <button class="plain" onClick=${endSession} title="End the session">End</button>
      </div>
    </header>
    <${Notice} live=${live} problem=${problem} />
    <${Keys} views=${VIEWS} dialog=${keys} />
    <div class=${`page ${route.select ? "has-detail" : ""}`}>
      <section class="view" aria-label=${VIEWS[route.view][0]}><${View} ...${props} /></section>
      ${route.select && html`<${Detail} key=${route.select} ...${props} />`}
    </div>
    <${TimeBar} history=${history} moment=${route.at ?? ""} isReady=${isPastReady} change=${change} />`;
}

function Notice({ live, problem }) {
  if (problem) return html`<p class="notice bad" role="status">The moment cannot be read: ${problem}</p>`;
  if (live.state === "lost") return html`<p class="notice bad" role="status">${live.problem} The page shows what was there, and connects again.</p>`;
  if (live.state === "loading") return html`<p class="notice" role="status">Reading the objects: ${live.byKey.size} …</p>`;
  if (!live.hasControl) return html`<p class="notice" role="status">You may not list Changes: there is no history, and the objects are read every 5 seconds.</p>`;
  if (live.refused.length) {
    const names = live.refused.map((each) => each.resource).join(", ");
    return html`<p class="notice" role="status">Not shown, because the server refused to list them: ${names}</p>`;
  }
  return null;
}

function Ended({ message }) {
  return html`
    <div class="ended"><h1>No session</h1><p>${message}</p><p>Run <code>mockube ui</code> to open the page again.</p></div>`;
}

const root = document.getElementById("app");

function show(view) {
  render(null, root);
  root.replaceChildren();
  render(view, root);
}

// A new URL in the same tab changes the fragment alone: its token is exchanged at once, and leaves the address bar.
addEventListener("hashchange", () => {
  if (new URLSearchParams(location.hash.slice(1)).has("token")) location.reload();
});
onSessionEnd(() => show(html`<${Ended} message="The session has ended." />`));
try {
  await openSession();
  show(html`<${App} />`);
} catch (error) {
  show(html`<${Ended} message=${error.message} />`);
}
