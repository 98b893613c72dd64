// The bar below all views: how much was written when, and the moment that the page shows.
import { html, useEffect, useRef, useState } from "../html.js";
import { timeText } from "../health.js";
import { drawOn, themeColors } from "../canvas.js";

const STEPS = 1000;

export function TimeBar({ history, moment, isReady, change, nowName = "● Live" }) {
  const canvas = useRef(null);
  const [, update] = useState(0);
  const [dragged, setDragged] = useState(null);
  useEffect(() => {
    const listener = () => update((count) => count + 1);
    history.listeners.add(listener);
    const timer = setInterval(listener, 1000);
    return () => {
      history.listeners.delete(listener);
      clearInterval(timer);
    };
  }, []);
  useEffect(() => drawOn(canvas.current, (context, width, height) => drawDensity(context, width, height, history)));
  const begin = history.begin;
  const end = Math.max(history.end, begin + 1);
  const chosen = dragged ?? (moment ? history.timeOf(Number(moment)) : end);
  const position = Math.round(((chosen - begin) / (end - begin)) * STEPS);
  const go = (value) => {
    const time = begin + (value / STEPS) * (end - begin);
    setDragged(null);
    const revision = value >= STEPS ? 0 : history.revisionAt(time) || history.revision[0];
    change({ at: revision ? String(revision) : "" });
  };
  const text = moment || dragged !== null ? timeText(chosen, { withDate: true }) : "now";
  return html`
    <footer class=${`timebar ${moment ? "past" : ""}`}>
      <button class=${moment ? "" : "live"} onClick=${() => change({ at: "" })} title="Show now (n)">${moment ? "Back to now" : nowName}</button>
      <div class="density">
        <canvas ref=${canvas} aria-hidden="true"></canvas>
        <input type="range" min="0" max=${STEPS} step="1" value=${position} aria-label="The moment that the page shows" aria-valuetext=${text}
               disabled=${history.count === 0}
               onInput=${(event) => setDragged(begin + (event.target.value / STEPS) * (end - begin))}
               onChange=${(event) => go(Number(event.target.value))} />
      </div>
      <span class="time" role="status">${moment && !isReady ? "reading …" : text}</span>
      <span class="count">${!history.count ? "no history" : `${history.count.toLocaleString("en")} changes${history.isTruncated ? " (no more are read)" : history.isComplete ? "" : " …"}`}</span>
    </footer>`;
}

function drawDensity(context, width, height, history) {
  if (!history.count) return;
  const begin = history.begin;
  const span = Math.max(history.end - begin, 1);
  const bars = Math.floor(width / 3);
  const counts = new Float64Array(bars);
  let from = 0;
  for (let bar = 0; bar < bars; bar += 1) {
    const to = bar === bars - 1 ? history.count : history.indexAt(begin + (span * (bar + 1)) / bars);
    counts[bar] = to - from;
    from = to;
  }
  const most = Math.log1p(Math.max(...counts));
  context.fillStyle = themeColors().density;
  for (let bar = 0; bar < bars; bar += 1) {
    const size = most ? (Math.log1p(counts[bar]) / most) * (height - 2) : 0;
    if (size > 0) context.fillRect(bar * 3, height - Math.max(size, 1), 2, Math.max(size, 1));
  }
}
