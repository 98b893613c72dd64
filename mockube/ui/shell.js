// What pages share: the state in the fragment of the URL, the objects and their history, the theme, and the parts of the header.
import { isRefusal } from "./api.js";
import { html, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./html.js";
import { Objects } from "./objects.js";

const CLOCK_MS = 5000;
const THEMES = ["auto", "light", "dark"];

/** Return the state that the fragment of the URL has, and a function that changes parts of it; the first view is that of a URL without one. */
export function useRoute(views) {
  const read = () => {
    const [view, query] = location.hash.replace(/^#\/?/, "").split("?");
    return { ...Object.fromEntries(new URLSearchParams(query)), view: Object.hasOwn(views, view) ? view : Object.keys(views)[0] };
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
export function useCluster(moment, newHistory) {
  const [, update] = useReducer((count) => count + 1, 0);
  const history = useMemo(newHistory, []);
  const [live, setLive] = useState(null);
  const [past, setPast] = useState(null);
  useEffect(() => followClock(history.clock, update), []);
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

/** Read the clock of the cluster again and again; return the function that ends it. */
function followClock(clock, update) {
  const abort = new AbortController();
  let timer = 0;
  const read = async () => {
    try {
      await clock.read(abort.signal);
      update();
    } catch (error) {
      if (abort.signal.aborted || isRefusal(error)) return; // it may not be read, and is that of the machine
    }
    timer = setTimeout(read, CLOCK_MS);
  };
  read();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}

/** Return the theme, and a function that takes the next one. */
export function useTheme() {
  const [theme, setTheme] = useState(() => stored("getItem") ?? "auto");
  useLayoutEffect(() => {
    const scheme = theme === "auto" ? "light dark" : theme;
    document.documentElement.style.colorScheme = scheme;
    document.documentElement.dataset.theme = theme;
    stored("setItem", theme);
    dispatchEvent(new Event("themechange"));
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length])];
}

/** Read or keep the theme; where a browser keeps nothing for a page, as for some files, it is forgotten. */
function stored(method, ...values) {
  try {
    return localStorage[method]("mockube-theme", ...values);
  } catch {
    return null;
  }
}

export function ThemeButton({ theme, next }) {
  return html`<button class="plain" onClick=${next} aria-label=${`Colours: ${theme}`} title=${`Colours: ${theme}`}>${theme === "dark" ? "☾" : theme === "light" ? "☀" : "◐"}</button>`;
}

const KEYS = [
  ["/", "find objects by name or kind"], ["Enter", "in the search: open the first result"], ["arrows, Enter", "choose and open an object, a node, a lane"],
  ["+ − 0", "zoom, show all"], ["Escape", "close the object"], ["n", "back to now"], ["?", "show and hide these keys"],
];

/** The list of the keys of all views, which ? opens. */
export function Keys({ views, dialog }) {
  const titles = Object.values(views).map(([title]) => title);
  const rows = [[`1 to ${titles.length}`, titles.join(", ")], ...KEYS];
  return html`
    <dialog class="keys" ref=${dialog} aria-label="Keys"><h2>Keys</h2>
      <dl class="facts">${rows.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>
      <button onClick=${() => dialog.current.close()}>Close</button></dialog>`;
}

/** The keys of all views: / finds, a number chooses a view, Escape closes the detail, n shows now, ? lists the keys. */
export function useKeys(views, search, change, dialog) {
  useEffect(() => {
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      const chosen = Object.keys(views)[Number(event.key) - 1];
      if (event.key === "?" && !isTyping) {
        if (dialog.current.open) dialog.current.close();
        else dialog.current.showModal();
      } else if (dialog.current?.open) return;
      else if (event.key === "Escape" && !isTyping) change({ select: "" });
      else if (isTyping) return;
      else if (event.key === "/") {
        event.preventDefault();
        search.current?.focus();
      } else if (/^[1-9]$/.test(event.key) && chosen) change({ view: chosen });
      else if (event.key === "n") change({ at: "" });
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

export function Navigation({ views, view, change }) {
  return html`
    <nav aria-label="Views">
      ${Object.entries(views).map(([name, [title]], index) => html`
        <a key=${name} href=${`#/${name}`} aria-current=${view === name ? "page" : undefined} title=${`Key ${index + 1}`}
           onClick=${(event) => { event.preventDefault(); change({ view: name }); }}>${title}</a>`)}
    </nav>`;
}

/** The field keeps what is typed, and changes the page a moment later; Enter does at once, and opens the first result. */
export function Search({ input, found, change, open, label = "Find objects by name or kind" }) {
  const [text, setText] = useState(found);
  const sent = useRef(found);
  useEffect(() => {
    if (found === sent.current) return;
    sent.current = found; // the browser went back or forward
    setText(found);
  }, [found]);
  useEffect(() => {
    if (text === sent.current) return undefined;
    const timer = setTimeout(() => {
      sent.current = text;
      change({ find: text });
    }, 150);
    return () => clearTimeout(timer);
  }, [text]);
  const onKeyDown = (event) => {
    if (event.key !== "Enter") return;
    const entry = open(text.toLowerCase());
    sent.current = text;
    change({ find: text, ...(entry && { select: entry.key }) });
  };
  return html`<input ref=${input} type="search" placeholder="Find ( / )" aria-label=${label} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${onKeyDown} />`;
}

export function NamespaceSelect({ namespaces, chosen, change }) {
  return html`
    <select aria-label="Namespace" value=${chosen} onChange=${(event) => change({ ns: event.target.value })}>
      <option value="">all namespaces</option>
      ${namespaces.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>`;
}
