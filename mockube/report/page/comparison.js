// The page of a comparison: what was found, the timelines of all runs side by side, and the whole report of each.
import { html, useMemo } from "../../ui/html.js";
import { useRoute } from "../../ui/shell.js";
import { Timeline } from "../../ui/views/timeline.js";
import { setServer } from "./recorded.js";
import { prepare, RecordedHistory, Report, show, VIEWS } from "./report.js";

const PAGE_VIEWS = { comparison: ["Comparison", Comparison, { hasMoments: false }], ...VIEWS };

/** Return the history of a run: of a recording what is compared. */
function historyOf(recording) {
  const history = new RecordedHistory(recording);
  const compared = new Set(recording.revisions);
  for (const change of recording.changes) if (compared.has(change.revision)) history.add(change);
  history.isComplete = true; // the history of the chosen run gives the authors their colours
  return history;
}

function Comparison({ runs, text, filter, change, moment, selectedKey, recording }) {
  const histories = useMemo(() => runs.map(historyOf), [runs]);
  const span = Math.max(...histories.map((history) => history.end - history.begin));
  return html`
    <div class="comparison" tabindex="0" role="group" aria-label="Comparison">
      <pre class="log">${text}</pre>
      <div class="runs">
        ${runs.map((run, index) => {
          const isChosen = run === recording;
          return html`
            <section key=${index} aria-label=${run.name}>
              <h2>${run.name}</h2>
              <${Timeline} history=${histories[index]} filter=${filter} span=${span} name=${run.name} showsAll
                moment=${isChosen ? moment : ""} selectedKey=${isChosen ? selectedKey : ""} change=${(parts) => change({ run: index ? String(index) : "", ...parts })} />
            </section>`;
        })}
      </div>
    </div>`;
}

function RunSelect({ runs, route, change }) {
  return html`
    <select aria-label="Run" value=${route.run ?? ""} onChange=${(event) => change({ run: event.target.value, at: "", select: "" })}>
      ${runs.map((run, index) => html`<option key=${index} value=${index ? String(index) : ""}>${run.name}</option>`)}
    </select>`;
}

function Page({ runs, text }) {
  const [route] = useRoute(PAGE_VIEWS);
  const recording = runs[Number(route.run ?? 0)] ?? runs[0];
  setServer(recording.server);
  const tools = (current, change) => current.view !== "comparison" && html`<${RunSelect} runs=${runs} route=${current} change=${change} />`;
  return html`<${Report} key=${runs.indexOf(recording)} recording=${recording} views=${PAGE_VIEWS} more=${{ runs, text }} tools=${tools} />`;
}

show(({ runs, text }) => html`<${Page} runs=${runs.map(prepare)} text=${text} />`);
