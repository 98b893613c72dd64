// The page: its session, its state, and what all views share.
import { endSession, onSessionEnd, openSession } from "./api.js";
import { History } from "./history.js";
import { html, render, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./html.js";
import { Objects } from "./objects.js";
import { Activity } from "./views/activity.js";
import { Cluster } from "./views/cluster.js";
import { Controllers } from "./views/controllers.js";
import { Detail } from "./views/detail.js";
import { ObjectTree } from "./views/objects.js";
import { TimeBar } from "./views/timebar.js";
import { Timeline } from "./views/timeline.js";

const VIEWS = { cluster: ["Cluster", Cluster], objects: ["Objects", ObjectTree], timeline: ["Timeline", Timeline], activity: ["Activity", Activity], controllers: ["Controllers", Controllers] };
const CLOCK_MS = 5000;
const THEMES = ["auto", "light", "dark"];

/** Return the state that the fragment of the URL has, and a function that changes parts of it. */
function useRoute() {
  const read = () => {
    const [view, query] = location.hash.replace(/^#\/?/, "").split("?");
    return { view: Object.hasOwn(VIEWS, view) ? view : "cluster", ...Object.fromEntries(new URLSearchParams(query)) };
  };
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const update = () => setRoute(read());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  const change = (parts) => {
    const { view, ...query } = { ...read(), ...parts };
    for (const [name, value] of Object.entries(query)) if (!value) delete query[name];
    const text = new URLSearchParams(query).toString();
    location.hash = `#/${view}${text ? `?${text}` : ""}`;
  };
  return [route, change];
}

/** Return the objects of now, those of a moment if one is chosen, and the history. */
function useCluster(moment) {
  const [, update] = useReducer((count) => count + 1, 0);
  const history = useMemo(() => new History(), []);
  const [live, setLive] = useState(null);
  const [past, setPast] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const readClock = async () => {
      try {
        await history.clock.read(abort.signal);
        update();
      } catch (error) {
        if (error.code !== 0) return; // it may not be read, and is that of the machine
      }
      timer = setTimeout(readClock, CLOCK_MS);
    };
    readClock();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  useEffect(() => {
    const objects = new Objects({ history, onChange: update });
    setLive(objects);
    objects.run();
    return () => objects.close();
  }, []);
  useEffect(() => {
    setPast(null); // that of another moment is not shown as this one
    if (!moment) return undefined;
    const objects = new Objects({ prefix: `/mockube/at/${encodeURIComponent(moment)}`, onChange: update });
    // A slider passes many moments: only one at which it rests is read.
    const timer = setTimeout(() => {
      objects.run().then(() => {
        if (!objects.abort.signal.aborted) setPast(objects);
      });
    }, 120);
    return () => {
      clearTimeout(timer);
      objects.close();
    };
  }, [moment]);
  return { history, live, shown: moment ? past ?? live : live, isPastReady: past?.state === "live", problem: past?.problem };
}

function useTheme() {
  const [theme, setTheme] = useState(() => localStorage.getItem("mockube-theme") ?? "auto");
  useLayoutEffect(() => {
    const scheme = theme === "auto" ? "light dark" : theme;
    document.documentElement.style.colorScheme = scheme;
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("mockube-theme", theme);
    dispatchEvent(new Event("themechange"));
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length])];
}

function App() {
  const [route, change] = useRoute();
  const { history, live, shown, isPastReady, problem } = useCluster(route.at ?? "");
  const [theme, nextTheme] = useTheme();
  const search = useRef(null);
  const select = (entry) => change({ select: entry ? entry.key : "" });
  useEffect(() => {
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key === "Escape" && !isTyping) change({ select: "" });
      else if (isTyping) return;
      else if (event.key === "/") {
        event.preventDefault();
        search.current?.focus();
      } else if (/^[1-5]$/.test(event.key)) change({ view: Object.keys(VIEWS)[Number(event.key) - 1] });
      else if (event.key === "n") change({ at: "" });
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (!live || !shown) return null;
  const View = VIEWS[route.view][1];
  const namespaces = [...new Set([...shown.byKey.values()].map((entry) => entry.namespace).filter(Boolean))].sort();
  const filter = { namespace: route.ns ?? "", text: (route.find ?? "").toLowerCase() };
  const selected = route.select ? shown.byKey.get(route.select) ?? live.byKey.get(route.select) : undefined;
  const props = { objects: shown, live, history, filter, select, selected, selectedKey: route.select ?? "", moment: route.at ?? "", change, route };
  return html`
    <header>
      <h1><img src=${new URL("icon.svg", import.meta.url).pathname} alt="" width="22" height="22" /><span>mockube</span></h1>
      <nav aria-label="Views">
        ${Object.entries(VIEWS).map(([name, [title]], index) => html`
          <a key=${name} href=${`#/${name}`} aria-current=${route.view === name ? "page" : undefined} title=${`Key ${index + 1}`}
             onClick=${(event) => { event.preventDefault(); change({ view: name }); }}>${title}</a>`)}
      </nav>
      <div class="filters">
        <select aria-label="Namespace" value=${filter.namespace} onChange=${(event) => change({ ns: event.target.value })}>
          <option value="">all namespaces</option>
          ${namespaces.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>
        <${Search} input=${search} found=${route.find ?? ""} change=${change} />
        <button class="plain" onClick=${nextTheme} aria-label=${`Colours: ${theme}`} title=${`Colours: ${theme}`}>${theme === "dark" ? "☾" : theme === "light" ? "☀" : "◐"}</button>
        <button class="plain" onClick=${endSession} title="End the session">End</button>
      </div>
    </header>
    <${Notice} live=${live} problem=${problem} />
    <div class=${`page ${route.select ? "has-detail" : ""}`}>
      <section class="view" aria-label=${VIEWS[route.view][0]}><${View} ...${props} /></section>
      ${route.select && html`<${Detail} key=${route.select} ...${props} />`}
    </div>
    <${TimeBar} history=${history} moment=${route.at ?? ""} isReady=${isPastReady} change=${change} />`;
}

/** The field keeps what is typed, and changes the page a moment later. */
function Search({ input, found, change }) {
  const [text, setText] = useState(found);
  useEffect(() => {
    if (text === found) return undefined;
    const timer = setTimeout(() => change({ find: text }), 150);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<input ref=${input} type="search" placeholder="Find ( / )" aria-label="Find objects by name or kind" value=${text} onInput=${(event) => setText(event.target.value)} />`;
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
