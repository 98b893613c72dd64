// Timeline: a lane for each object, grouped by owner; marks for writes in the colour of the author, bars for states.
import { CONTROL } from "../api.js";
import { drawing, handle, pointIn, themeColors, tipStyle } from "../canvas.js";
import { hueOf, inOrderOfInterest, naturally, shortUser, timeText } from "../health.js";
import { firstIndex, TYPES } from "../history.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { rankOfNamespace } from "../objects.js";
import { Requests } from "../requests.js";
import { HIDDEN } from "./objects.js";

const BAR = 20;
const AXIS = 26;
/** Where the names of objects are: beside the bars, or above them where there is no room. */
const WIDE = { gutter: 250, lane: BAR, above: 0 };
const NARROW = { gutter: 8, lane: BAR + 16, above: 16 };
const NARROW_WIDTH = 600;
const LABEL_ROOM = 10;
const MAX_TICKS = 400;
const NEVER = new Set(["events", "events.events.k8s.io"]);
const STEPS = [0.001, 0.01, 0.1, 1, 5, 10, 50, 100, 500, 1e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5, 216e5, 864e5, 6048e5];
const MIN_SPAN = 0.01;
const POLL_MS = 5000;
const LAYOUT_MS = 300;

/** Return the lanes to show, by namespace and owner: `{ lane, depth }`. */
function lanesOf(history, filter, showsAll) {
  const groups = new Map();
  for (const lane of history.lanes) {
    if (NEVER.has(lane.resource) || (!showsAll && HIDDEN.has(lane.resource))) continue;
    const root = history.rootOf(lane);
    if (filter.namespace && lane.namespace !== filter.namespace) continue;
    const isFound = !filter.text || [lane, root].some((each) => `${each.kind} ${each.name}`.toLowerCase().includes(filter.text));
    if (!isFound) continue;
    if (!groups.has(root)) groups.set(root, []);
    groups.get(root).push(lane);
  }
  const compare = (a, b) => rankOfNamespace(a.namespace) - rankOfNamespace(b.namespace) || naturally(a.namespace, b.namespace) || naturally(a.kind, b.kind) || naturally(a.name, b.name);
  return [...groups.keys()].sort(compare).flatMap((root) => inOrderOfOwners(history, groups.get(root)));
}

/** Return the lanes of one group: each below its owner. */
function inOrderOfOwners(history, lanes) {
  const shown = new Set(lanes);
  const children = new Map();
  for (const lane of lanes) {
    const owner = history.laneByUid.get(lane.owner);
    const parent = shown.has(owner) && owner !== lane ? owner : null;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(lane);
  }
  const rows = [];
  const add = (lane, depth) => {
    rows.push({ lane, depth });
    if (depth < 10) for (const child of (children.get(lane) ?? []).sort((a, b) => naturally(a.kind, b.kind) || naturally(a.name, b.name))) add(child, depth + 1);
  };
  for (const lane of children.get(null) ?? []) add(lane, 0);
  return rows;
}

/** Return the lanes of clients: the requests of each user. */
function clientLanes(requests) {
  const lanes = new Map();
  for (const item of requests.items) {
    if (!lanes.has(item.user)) lanes.set(item.user, { client: item.user || "nobody", items: [] });
    lanes.get(item.user).items.push(item);
  }
  return [...lanes.values()].sort((a, b) => b.items.length - a.items.length);
}

export function Timeline(props) {
  const { history, filter, change, moment, selectedKey, span = 0, name = "Writes of each object over time" } = props;
  const canvas = useRef(null);
  const [showsAll, setShowsAll] = useState(props.showsAll ?? false);
  const [showsRequests, setShowsRequests] = useState(false);
  const [hover, setHover] = useState(null);
  const [, update] = useState(0);
  const view = useRef({ from: 0, to: 0, top: 0, focus: -1, follows: true, redraw: () => undefined, notes: [] });
  const state = view.current;
  Object.assign(state, { history, filter, showsAll, moment: Number(moment), selectedKey, change, span });
  useRequests(state, showsRequests);
  useEffect(() => {
    let lanes = 0;
    const { redraw, stop } = drawing(canvas.current, (context, width, height) => draw(context, width, height, state));
    state.redraw = redraw;
    const onHistory = () => {
      state.isOld = true;
      if (state.follows) state.redraw();
      if (Math.abs(history.lanes.length - lanes) > 0 || !lanes) {
        lanes = history.lanes.length;
        update((count) => count + 1);
      }
    };
    history.listeners.add(onHistory);
    const timer = setInterval(state.redraw, 500);
    state.redraw();
    return () => {
      stop();
      clearInterval(timer);
      history.listeners.delete(onHistory);
    };
  }, [history]);
  useEffect(() => pollNotes(state), []);
  useEffect(() => listen(canvas.current, state, setHover, props), [history]);
  useEffect(() => {
    state.laneCount = undefined;
    state.redraw();
  }, [filter.namespace, filter.text, showsAll, showsRequests, moment, selectedKey]);
  const zoom = (factor) => {
    zoomAt(state, factor, 0.5);
    state.redraw();
  };
  const authors = topAuthors(history);
  return html`
    <div class="bar">
      <label><input type="checkbox" checked=${showsAll} onChange=${(event) => setShowsAll(event.target.checked)} /> all kinds</label>
      <label><input type="checkbox" checked=${showsRequests} onChange=${(event) => setShowsRequests(event.target.checked)} /> requests</label>
      <div class="legend" aria-label="Authors">${authors.map((user) => html`<span key=${user} title=${user}><i class=${`swatch hue-${hueOf(user)}`}></i>${shortUser(user)}</span>`)}</div>
      <span class="push"></span>
      <span><button onClick=${() => zoom(0.6)} aria-label="Zoom in" title="Zoom in (+)">+</button> <button onClick=${() => zoom(1 / 0.6)} aria-label="Zoom out" title="Zoom out (−)">−</button>
      ${" "}<button onClick=${() => { state.follows = true; state.redraw(); }} title="Show the whole history (0)">All</button></span>
    </div>
    <div class="canvas timeline">
      <canvas ref=${canvas} tabindex="0" role="application" aria-label=${`${name}. Arrow up and down choose an object, Enter opens it; arrow left and right move, plus and minus zoom, 0 shows all.`}></canvas>
      ${hover && html`<div class="tip" style=${hover.style}><b>${hover.title}</b>${hover.lines.map((line) => html`<div class="muted">${line}</div>`)}</div>`}
      <div class="offscreen" role="status">${hover ? `${hover.title}, ${hover.lines.join(", ")}` : ""}</div>
    </div>`;
}

function useRequests(state, isShown) {
  useEffect(() => {
    if (!isShown) {
      state.requests = null;
      return undefined;
    }
    const requests = new Requests(state.history.server);
    state.requests = requests;
    requests.listeners.add(() => {
      state.isOld = true;
    });
    requests.run();
    return () => requests.close();
  }, [isShown]);
}

/** Read Marks and Faults now and then: they are few. */
function pollNotes(state) {
  const abort = new AbortController();
  const read = async () => {
    const [marks, faults] = await Promise.all(["marks", "faults"].map((plural) => state.history.server.get(`${CONTROL}/${plural}`, { signal: abort.signal }).catch(() => ({ items: [] }))));
    state.notes = [
      ...marks.items.map((each) => ({ text: each.metadata.name, revision: each.spec.revision, level: "accent" })),
      ...faults.items.map((each) => ({ text: `fault ${each.metadata.name}`, time: Date.parse(each.metadata.creationTimestamp), level: "bad" })),
    ];
  };
  read();
  const timer = setInterval(read, POLL_MS);
  return () => {
    abort.abort();
    clearInterval(timer);
  };
}

function topAuthors(history) {
  const counts = new Uint32Array(history.authors.length);
  const step = Math.max(1, Math.floor(history.count / 5000));
  for (let index = 0; index < history.count; index += step) counts[history.author[index]] += 1;
  const byAuthor = new Map(history.authors.map((author, index) => [author, counts[index]]));
  return inOrderOfInterest(history.authors, byAuthor).slice(0, 8);
}

function draw(context, width, height, state) {
  const { history } = state;
  const colors = themeColors();
  context.font = `12px ${colors.font}`;
  if (state.laneCount === undefined || (state.isOld && performance.now() - state.laidOut > LAYOUT_MS)) {
    state.rows = [...(state.requests ? clientLanes(state.requests) : []), ...lanesOf(history, state.filter, state.showsAll)];
    state.laneCount = state.rows.length;
    state.begin = state.rows.reduce((least, { lane }) => (lane ? Math.min(least, history.time[lane.records[0]]) : least), history.end);
    state.isOld = false;
    state.laidOut = performance.now();
  }
  if (state.follows && history.count) {
    const margin = Math.max((history.end - state.begin) * 0.02, 0.05);
    state.from = state.begin - margin;
    state.to = Math.max(history.end, state.begin + state.span) + margin;
  }
  if (!history.count) {
    context.fillStyle = colors.muted;
    context.fillText("Reading the history …", 14, 50);
    return;
  }
  const { gutter, lane, above } = width < NARROW_WIDTH ? NARROW : WIDE;
  const scale = (width - gutter) / (state.to - state.from);
  const x = (time) => gutter + (time - state.from) * scale;
  state.geometry = { gutter, lane, above, scale, width, height };
  state.top = Math.max(0, Math.min(state.top, state.rows.length * lane - height + AXIS + 8));
  const first = Math.floor(state.top / lane);
  const last = Math.min(state.rows.length, Math.ceil((state.top + height - AXIS) / lane));
  const ticks = axisTicks(state);
  state.shownNotes = notesOf(state);
  // Lines are below the bars and all texts.
  context.fillStyle = colors.line;
  for (const time of ticks.times) context.fillRect(x(time), AXIS - 6, 1, height);
  drawNoteLines(context, state, x, colors);
  for (let index = first; index < last; index += 1) drawRow(context, state, index, AXIS + index * lane - state.top, x, colors);
  drawAxis(context, state, ticks, x, colors);
  drawNoteTexts(context, state, x, colors);
}

function drawRow(context, state, index, y, x, colors) {
  const row = state.rows[index];
  const { gutter, lane, above, width } = state.geometry;
  const isChosen = index === state.focus || (row.lane && row.lane.key === state.selectedKey);
  if (isChosen || (row.lane && row.depth === 0 && row.lane.namespace !== undefined && index % 2 === 0)) {
    context.fillStyle = colors.raised;
    if (isChosen) context.fillRect(0, y, width, lane);
  }
  context.save();
  context.beginPath();
  context.rect(gutter, y + above, width - gutter, BAR);
  context.clip();
  if (row.lane) {
    const bars = drawStates(context, row.lane, y + above, x, state, colors);
    drawWrites(context, row.lane, y + above, x, state, colors);
    for (const bar of bars) drawStateText(context, bar, row.lane, y + above, x, state, colors);
  } else drawRequests(context, row.items, y + above, x, state, colors);
  context.restore();
  drawLabel(context, row, y, state.geometry, colors);
  context.fillStyle = colors.line;
  context.globalAlpha = 0.5;
  context.fillRect(0, y + lane - 1, width, 1);
  context.globalAlpha = 1;
}

function drawLabel(context, row, y, { gutter, width, above }, colors) {
  const room = above ? width : gutter;
  const indent = 8 + (row.depth ?? 0) * 10;
  const kind = row.lane ? `${row.lane.kind} ` : "requests ";
  const name = row.lane ? row.lane.name : shortUser(row.client);
  context.save();
  context.beginPath();
  context.rect(0, y, room - 6, BAR);
  context.clip();
  const left = indent + context.measureText(kind).width;
  const text = fitting(context, name, room - 8 - left);
  if (above) {
    context.fillStyle = colors.surface; // no line crosses the name
    context.fillRect(indent - 2, y + 2, left + context.measureText(text).width + 4 - indent, 15);
  }
  context.fillStyle = colors.muted;
  context.fillText(kind, indent, y + 14);
  context.fillStyle = colors.ink;
  context.fillText(text, left, y + 14);
  context.restore();
}

/** Return a text, or its end if it is too wide: names of pods differ at their ends. */
function fitting(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let cut = text.slice(1);
  while (cut.length > 3 && context.measureText(`…${cut}`).width > room) cut = cut.slice(1);
  return `…${cut}`;
}

/** Draw the states of an object, and return their bars: from where to where, and the text. */
function drawStates(context, lane, y, x, state, colors) {
  const { states } = lane;
  const bars = [];
  context.globalAlpha = 0.32;
  for (let index = 0; index < states.length; index += 1) {
    const { time, text, level } = states[index];
    if (level === "gone" || (level === "none" && !text)) continue;
    const end = states[index + 1]?.time ?? Math.max(state.history.end, state.to);
    if (end < state.from || time > state.to) continue;
    const left = Math.max(x(time), state.geometry.gutter);
    const size = Math.max(1, x(Math.min(end, state.to)) - left);
    context.fillStyle = colors[level];
    context.fillRect(left, y + 3, size, BAR - 7);
    if (text) bars.push({ text, left, right: left + size });
  }
  context.globalAlpha = 1;
  return bars;
}

/** Draw the text of a state at the first place of its bar that no write and no note crosses; nowhere if there is none. */
function drawStateText(context, { text, left, right }, lane, y, x, state, colors) {
  const size = context.measureText(text).width + LABEL_ROOM;
  if (right - left < size) return;
  const { history } = state;
  const lines = state.shownNotes.map(({ time }) => x(time)).filter((each) => each >= left && each <= right);
  for (let position = firstAt(lane.records, history.time, timeAt(state, left)), count = 0; position < lane.records.length && count < MAX_TICKS; position += 1, count += 1) {
    const tick = x(history.time[lane.records[position]]);
    if (tick > right) break;
    lines.push(tick);
  }
  let begin = left;
  for (const line of [...lines.sort((a, b) => a - b), right]) {
    if (line - begin >= size) {
      context.fillStyle = colors.ink;
      context.fillText(text, begin + LABEL_ROOM / 2, y + 14);
      return;
    }
    begin = Math.max(begin, line);
  }
}

const timeAt = (state, px) => state.from + (px - state.geometry.gutter) / state.geometry.scale;

/** Return the position of the first of some records, which are ordered, at or after a time. */
const firstAt = (records, times, time, low = 0) => firstIndex(low, records.length, (position) => times[records[position]] >= time);

function drawWrites(context, lane, y, x, state, colors) {
  const { history, from, to } = state;
  const { records } = lane;
  const pixel = 1 / state.geometry.scale;
  for (let position = firstAt(records, history.time, from); position < records.length;) {
    const record = records[position];
    const time = history.time[record];
    if (time > to) break;
    context.fillStyle = colors.hues[hueOf(history.authors[history.author[record]])];
    const isChange = history.type[record] === 1;
    context.fillRect(Math.round(x(time)) - 1, isChange ? y + 4 : y + 1, isChange ? 2 : 3, isChange ? BAR - 9 : BAR - 3);
    position = pixel > 0.2 ? firstAt(records, history.time, time + pixel, position + 1) : position + 1;
  }
}

function drawRequests(context, items, y, x, state, colors) {
  let before = -1;
  for (const item of items) {
    const left = Math.round(x(item.time));
    if (item.time > state.to || left < state.geometry.gutter) continue;
    const isBad = item.code >= 400 || item.isCut;
    if (left === before && !isBad) continue;
    before = left;
    context.fillStyle = item.fault || item.code >= 500 ? colors.bad : isBad ? colors.busy : colors.density;
    context.fillRect(left, y + 4, Math.max(1.5, item.verb === "watch" ? 2 : item.seconds * 1000 * state.geometry.scale), BAR - 9);
  }
}

/** Return the times that the axis names, and the span between them. */
function axisTicks(state) {
  const { gutter, width } = state.geometry;
  const step = STEPS.find((each) => (state.to - state.from) / each <= (width - gutter) / 120) ?? STEPS.at(-1);
  const times = [];
  for (let time = Math.ceil(state.from / step) * step; time <= state.to; time += step) times.push(time);
  return { step, times };
}

function drawAxis(context, state, { step, times }, x, colors) {
  const { gutter, above, width, height } = state.geometry;
  const span = state.to - state.from;
  const length = span >= 12e4 ? `${Math.round(span / 6e4)} min` : span >= 1000 ? `${(span / 1000).toFixed(1)} s` : `${span.toFixed(2)} ms`;
  const title = above ? length : `${length} in view`;
  const begin = Math.max(gutter, 8 + context.measureText(title).width + LABEL_ROOM);
  context.fillStyle = colors.surface;
  context.fillRect(0, 0, width, AXIS - 2);
  const digits = step >= 1000 ? 0 : 3;
  for (const time of times) {
    const left = x(time);
    const text = timeText(time, { withDate: step >= 864e5, digits }) + (step < 1 ? `+${(time % 1).toFixed(3).slice(1)}` : "");
    context.fillStyle = colors.line;
    context.fillRect(left, AXIS - 6, 1, 4);
    context.fillStyle = colors.muted;
    if (left >= begin && left + 4 + context.measureText(text).width <= width) context.fillText(text, left + 4, 15);
  }
  context.fillStyle = colors.line;
  context.fillRect(0, AXIS - 1, width, 1);
  if (!above) context.fillRect(gutter - 3, 0, 1, height);
  context.fillStyle = colors.muted;
  context.fillText(title, 8, 15);
}

/** Return the lines that cross all rows, by time: Marks, Faults, and the moment that is shown. */
function notesOf(state) {
  const notes = state.notes.map((note) => ({ ...note, time: note.time ?? state.history.timeOf(note.revision), size: 1 }));
  if (state.moment) notes.push({ text: "shown", time: state.history.timeOf(state.moment), level: "busy", size: 2 });
  return notes.sort((a, b) => a.time - b.time);
}

function drawNoteLines(context, { geometry, shownNotes }, x, colors) {
  for (const { time, level, size } of shownNotes) {
    const left = x(time);
    context.fillStyle = colors[level];
    if (left >= geometry.gutter) context.fillRect(left - size / 2, AXIS - 6, size, geometry.height);
  }
}

function drawNoteTexts(context, { geometry, shownNotes }, x, colors) {
  const { gutter, width, height } = geometry;
  const ends = []; // of the texts of each row: one that does not fit beside the others is in a row above
  for (const { time, text, level } of shownNotes) {
    const left = x(time);
    if (left < gutter || left > width) continue;
    const wide = context.measureText(text).width + 8;
    const begin = Math.min(left - 0.5, width - wide); // all of a text at the right edge
    const free = ends.findIndex((end) => end < begin);
    const row = free < 0 ? ends.length : free;
    ends[row] = begin + wide;
    const bottom = height - row * 20;
    context.fillStyle = colors[level];
    context.fillRect(begin, bottom - 18, wide, 18);
    context.fillStyle = colors.surface;
    context.fillText(text, begin + 3, bottom - 5);
  }
}

function zoomAt(state, factor, place) {
  const span = state.to - state.from;
  const next = Math.max(MIN_SPAN, Math.min(span * factor, 365 * 864e5));
  const fixed = state.from + span * place;
  state.from = fixed - next * place;
  state.to = state.from + next;
  state.follows = false;
}

/** Return what is at a place of the canvas: the row, and the record next to it. */
function hit(state, px, py) {
  const { geometry, history } = state;
  if (!geometry || py < AXIS) return null;
  const place = py - AXIS + state.top;
  const index = Math.floor(place / geometry.lane);
  const row = state.rows?.[index];
  if (!row) return null;
  if (px < geometry.gutter || place % geometry.lane < geometry.above || !row.lane) return { index, row };
  const time = timeAt(state, px);
  const { records } = row.lane;
  const position = firstAt(records, history.time, time);
  const near = [records[position - 1], records[position]].filter((each) => each !== undefined)
    .map((record) => ({ record, distance: Math.abs(history.time[record] - time) * geometry.scale }))
    .filter(({ distance }) => distance < 6).sort((a, b) => a.distance - b.distance);
  const shown = row.lane.states.filter((each) => each.time <= time).at(-1);
  return { index, row, record: near[0]?.record, state: shown?.text };
}

function describe(found, history) {
  const { row, record, state } = found;
  if (!row.lane) return { title: row.client, lines: [`${row.items.length} requests`] };
  const { lane } = row;
  const lines = [lane.namespace ? `in ${lane.namespace}` : "", `${lane.records.length} writes`];
  if (record !== undefined) lines.push(`${TYPES[history.type[record]]} by ${history.authors[history.author[record]] || "unknown"}`, timeText(history.time[record], { withDate: true }), `revision ${history.revision[record]}`);
  else if (state) lines.push(state);
  return { title: `${lane.kind} ${lane.name}`, lines: lines.filter(Boolean) };
}

function listen(canvas, state, setHover, { change }) {
  if (!canvas) return undefined;
  let drag = null;
  let moved = 0;
  const at = (event) => pointIn(canvas, event);
  const placeOf = (px) => (px - state.geometry.gutter) / (state.geometry.width - state.geometry.gutter);
  const tip = (found, x, y) => setHover({ ...describe(found, state.history), style: tipStyle(canvas, x, y) });
  const open = (found) => {
    if (found?.row.lane) change({ select: found.row.lane.key, tab: "changes" });
  };
  const move = (share) => {
    const shift = (state.to - state.from) * share;
    state.from += shift;
    state.to += shift;
    state.follows = false;
  };
  const handlers = {
    wheel: (event) => {
      event.preventDefault();
      const [px, py] = at(event);
      if (event.ctrlKey || event.metaKey || py < AXIS) zoomAt(state, Math.exp(event.deltaY / 300), placeOf(px));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move((event.deltaX || event.deltaY) / 1000);
      else state.top += event.deltaY;
      state.redraw();
    },
    pointerdown: (event) => {
      drag = at(event);
      moved = 0;
      canvas.setPointerCapture(event.pointerId);
    },
    pointermove: (event) => {
      const [x, y] = at(event);
      if (drag) {
        moved += Math.abs(x - drag[0]) + Math.abs(y - drag[1]);
        if (moved > 4) {
          move((drag[0] - x) / (state.geometry.width - state.geometry.gutter));
          state.top += drag[1] - y;
          drag = [x, y];
          state.redraw();
        }
        return;
      }
      const found = hit(state, x, y);
      if (found) tip(found, x, y);
      else setHover(null);
    },
    pointerup: (event) => {
      drag = null;
      if (moved > 4) return;
      const [x, y] = at(event);
      if (y < AXIS && x > state.geometry.gutter) {
        const revision = state.history.revisionAt(timeAt(state, x));
        change({ at: revision ? String(revision) : "" });
      } else open(hit(state, x, y));
    },
    pointercancel: () => {
      drag = null;
    },
    pointerleave: () => setHover(null),
    dblclick: (event) => {
      zoomAt(state, 0.4, placeOf(at(event)[0]));
      state.redraw();
    },
    keydown: (event) => {
      if (!state.rows || event.ctrlKey || event.metaKey) return;
      const focus = (index) => {
        state.focus = Math.max(0, Math.min(state.rows.length - 1, index));
        const { lane } = state.geometry;
        const y = state.focus * lane;
        if (y < state.top) state.top = y;
        if (y > state.top + canvas.clientHeight - AXIS - lane) state.top = y - canvas.clientHeight + AXIS + 2 * lane;
        if (state.rows.length) tip({ index: state.focus, row: state.rows[state.focus] }, state.geometry.gutter, AXIS + y - state.top + lane);
      };
      const actions = {
        ArrowDown: () => focus(state.focus + 1),
        ArrowUp: () => focus(state.focus - 1),
        PageDown: () => focus(state.focus + 20),
        PageUp: () => focus(state.focus - 20),
        ArrowLeft: () => move(-0.1),
        ArrowRight: () => move(0.1),
        "+": () => zoomAt(state, 0.6, 0.5),
        "=": () => zoomAt(state, 0.6, 0.5),
        "-": () => zoomAt(state, 1 / 0.6, 0.5),
        0: () => {
          state.follows = true;
        },
        Enter: () => open({ row: state.rows[state.focus] ?? {} }),
      };
      if (!actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
      state.redraw();
    },
  };
  return handle(canvas, handlers);
}
