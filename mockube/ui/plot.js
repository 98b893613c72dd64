// Plots of numbers over time, as stacked bars.
import { drawOn, themeColors } from "./canvas.js";
import { hueOf, timeText } from "./health.js";
import { html, useEffect, useRef } from "./html.js";

const BARS = 120;
const SERIES = 8;

/** Return the number of items of each series in each of the equal parts of a time, in which all items are. */
export function seriesOf(items, key, from, to) {
  const series = new Map();
  for (const item of items) add(series, key(item), ((item.time - from) / (to - from)) * BARS, 1);
  return largest(series);
}

/**
 * Return the sum, or with `max` the largest, of the values of each series in each part of a time. A sample has its time and its values by name; those of one
 * with `since` happened from then on, and are spread over all parts from then to its time.
 */
export function seriesOfSamples(samples, from, to, { max = false } = {}) {
  const series = new Map();
  const position = (time) => ((time - from) / (to - from)) * BARS;
  for (const { time, since = time, values } of samples) {
    if (time < from || time >= to) continue;
    for (const [name, value] of values) {
      if (!value) continue;
      if (max || since >= time) add(series, name, position(time), value, max);
      else spread(series, name, position(since), position(time), value);
    }
  }
  return largest(series);
}

function spread(series, name, begin, end, value) {
  for (let bar = Math.max(0, Math.floor(begin)); bar < end && bar < BARS; bar += 1) {
    add(series, name, bar, (value * (Math.min(bar + 1, end) - Math.max(bar, begin))) / (end - begin));
  }
}

function add(series, name, position, value, max = false) {
  if (!series.has(name)) series.set(name, { name, total: 0, counts: new Float64Array(BARS) });
  const each = series.get(name);
  const bar = Math.min(BARS - 1, Math.floor(position));
  each.counts[bar] = max ? Math.max(each.counts[bar], value) : each.counts[bar] + value;
  each.total = max ? Math.max(each.total, value) : each.total + value;
}

/** Return the largest series, and the sum of the others. */
function largest(series) {
  const sorted = [...series.values()].sort((a, b) => b.total - a.total);
  if (sorted.length <= SERIES) return sorted;
  const rest = { name: "others", total: 0, counts: new Float64Array(BARS) };
  for (const each of sorted.slice(SERIES - 1)) {
    rest.total += each.total;
    each.counts.forEach((count, index) => {
      rest.counts[index] += count;
    });
  }
  return [...sorted.slice(0, SERIES - 1), rest];
}

/** A plot of some series; `unit` is "/s" for rates, and "" for numbers that are as they are. */
export function Plot({ title, series, name, from, to, unit = "/s" }) {
  const canvas = useRef(null);
  const styleOf = (each) => hueOf(each.name, `plot ${name}`);
  useEffect(() => drawOn(canvas.current, (context, width, height) => drawBars(context, width, height, { series, styleOf, from, to, unit })));
  const text = series.map((each) => `${each.name} ${Math.round(each.total)}`).join(", ");
  return html`
    <div class="panel"><h2>${title}</h2><div class="plot"><canvas ref=${canvas} role="img" aria-label=${`${title}: ${text || "none"}`}></canvas></div>
      <div class="legend">${series.map((each) => html`<span key=${each.name}><i class=${`swatch hue-${styleOf(each)}`}></i>${each.name} ${Math.round(each.total)}</span>`)}</div></div>`;
}

function drawBars(context, width, height, { series, styleOf, from, to, unit }) {
  const colors = themeColors();
  const bottom = height - 18;
  const left = 34;
  const sums = new Float64Array(BARS);
  for (const each of series) each.counts.forEach((count, index) => {
    sums[index] += count;
  });
  const most = Math.max(1, ...sums);
  const seconds = (to - from) / 1000 / BARS;
  context.font = `11px ${colors.font}`;
  context.fillStyle = colors.muted;
  const rate = unit ? most / seconds : most;
  context.fillText(rate >= 10 ? rate.toFixed(0) : rate.toFixed(1), 0, 10);
  context.fillText(unit, 0, 24);
  for (const share of [0, 0.5, 1]) context.fillText(timeText(from + (to - from) * share, { digits: 0 }), left + (width - left - 50) * share, height - 4);
  context.fillStyle = colors.line;
  context.fillRect(left, bottom, width - left, 1);
  const step = (width - left) / BARS;
  const base = new Float64Array(BARS);
  for (const each of series) {
    context.fillStyle = colors.hues[styleOf(each)];
    for (let index = 0; index < BARS; index += 1) {
      const size = (each.counts[index] / most) * (bottom - 4);
      if (!size) continue;
      context.fillRect(left + index * step, bottom - base[index] - size, Math.max(1, step - 1), size);
      base[index] += size;
    }
  }
}
