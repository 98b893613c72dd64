// Cluster: each node is a tile, each pod a cell of it. Drawn once into a picture, which moves and zooms without being drawn again.
import { drawing, handle, pointIn, themeColors, tipStyle } from "../canvas.js";
import { hueOf, naturally, quantity, stateOf } from "../health.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { matches } from "./objects.js";
import { ClusterActions } from "./actions.js";

const COLOURS = ["phase", "workload", "namespace"];
const ZONE = "topology.kubernetes.io/zone";
const GAP = 6;
const LARGE = 2000;
const REDRAW_MS = 250;
const MAX_PICTURE = 4096;
const WAITING = "not scheduled";

/** Return the nodes with their pods, by zone and name; pods without a node have a tile of their own. */
function tilesOf(objects) {
  const byNode = new Map();
  for (const entry of objects.of("pods")) {
    const name = entry.object.spec?.nodeName ?? "";
    if (!byNode.has(name)) byNode.set(name, []);
    byNode.get(name).push(entry);
  }
  const tiles = objects.of("nodes").map((entry) => {
    const pods = byNode.get(entry.name) ?? [];
    byNode.delete(entry.name);
    return { entry, name: entry.name, zone: entry.object.metadata.labels?.[ZONE] ?? "", pods, usage: usageOf(entry, pods) };
  });
  tiles.sort((a, b) => naturally(a.zone, b.zone) || naturally(a.name, b.name));
  const waiting = [...byNode.values()].flat();
  if (waiting.length) tiles.unshift({ entry: null, name: WAITING, zone: "", pods: waiting, usage: 0 });
  return tiles;
}

/** Return the share of the CPU of a node that its pods request. */
function usageOf(node, pods) {
  const all = quantity(node.object.status?.allocatable?.cpu);
  if (!all) return 0;
  let used = 0;
  for (const pod of pods) {
    const containers = pod.object.spec?.containers ?? [];
    for (const each of containers) if (each.resources?.requests?.cpu) used += quantity(each.resources.requests.cpu);
  }
  return Math.min(1, used / all);
}

/** Return where tiles lie: `{ x, y }` of each, the size of cells and tiles, and that of the whole. */
function layoutOf(tiles, width, height) {
  const most = Math.max(4, ...tiles.map((tile) => tile.pods.length));
  const columns = Math.ceil(Math.sqrt(most * 1.6));
  const rows = Math.ceil(most / columns);
  for (let cell = 24; ; cell -= 1) {
    const hasName = cell >= 9;
    const inner = Math.max(columns * (cell + 1) + 4, hasName ? 96 : 0);
    const tile = { width: inner, height: rows * (cell + 1) + 6 + (hasName ? 17 : 0) };
    const gap = cell >= 6 ? GAP : 2;
    const perRow = Math.max(1, Math.floor((width - GAP) / (tile.width + gap)));
    const placed = place(tiles, tile, perRow, gap);
    if (placed.height <= height || cell <= 2) return { ...placed, cell, columns: Math.max(1, Math.floor((inner - 3) / (cell + 1))), tile, hasName, perRow, width };
  }
}

function place(tiles, tile, perRow, gap) {
  const positions = [];
  const zones = [];
  let column = 0;
  let y = GAP;
  let zone = null;
  const hasZones = tiles.some((each) => each.zone);
  for (const each of tiles) {
    if (hasZones && each.zone !== zone) {
      if (zone !== null) y += tile.height + gap;
      zone = each.zone;
      column = 0;
      zones.push({ y, text: zone || "no zone" });
      y += 20;
    }
    if (column === perRow) {
      column = 0;
      y += tile.height + gap;
    }
    positions.push({ x: GAP + column * (tile.width + gap), y });
    column += 1;
  }
  return { positions, zones, height: y + tile.height + GAP };
}

function colourOf(pod, colour, objects, colors) {
  if (colour === "phase") return colors[stateOf("Pod", pod.object).level] ?? colors.none;
  const name = colour === "namespace" ? pod.namespace : workloadOf(pod, objects);
  return colors.hues[hueOf(name, colour)];
}

function workloadOf(pod, objects) {
  const root = objects.rootOf(pod);
  return `${root.kind.kind} ${root.name}`;
}

function paint(tiles, layout, { colour, objects, filter, scale }) {
  const colors = themeColors();
  const picture = document.createElement("canvas");
  const ratio = Math.min((devicePixelRatio || 1) * scale, MAX_PICTURE / Math.max(layout.width, layout.height));
  picture.width = Math.ceil(layout.width * ratio);
  picture.height = Math.ceil(layout.height * ratio);
  const context = picture.getContext("2d");
  context.scale(ratio, ratio);
  context.font = `11px ${colors.font}`;
  context.fillStyle = colors.muted;
  for (const zone of layout.zones) context.fillText(zone.text, GAP, zone.y + 14);
  context.fillStyle = colors.raised;
  for (const { x, y } of layout.positions) context.fillRect(x, y, layout.tile.width, layout.tile.height);
  const byColour = new Map();
  tiles.forEach((tile, index) => {
    const { x, y } = layout.positions[index];
    const top = y + 2 + (layout.hasName ? 17 : 0);
    tile.pods.forEach((pod, position) => {
      const color = matches(pod, filter) ? colourOf(pod, colour, objects, colors) : colors.line;
      if (!byColour.has(color)) byColour.set(color, []);
      byColour.get(color).push(x + 2 + (position % layout.columns) * (layout.cell + 1), top + Math.floor(position / layout.columns) * (layout.cell + 1));
    });
  });
  for (const [color, corners] of byColour) {
    context.fillStyle = color;
    for (let index = 0; index < corners.length; index += 2) context.fillRect(corners[index], corners[index + 1], layout.cell, layout.cell);
  }
  tiles.forEach((tile, index) => paintFrame(context, tile, layout.positions[index], layout, colors));
  return picture;
}

function paintFrame(context, tile, { x, y }, layout, colors) {
  const state = tile.entry ? stateOf("Node", tile.entry.object) : { text: "", level: "busy" };
  const { level } = state;
  const mark = /cordoned|tainted|NotReady/.exec(state.text)?.[0] ?? "";
  context.fillStyle = colors.accent;
  if (tile.usage > 0) context.fillRect(x, y + layout.tile.height - 2, layout.tile.width * tile.usage, 2);
  if (level !== "good" || mark) {
    context.strokeStyle = level === "good" ? colors.muted : colors[level];
    context.setLineDash(level === "good" ? [4, 3] : []);
    context.strokeRect(x + 0.5, y + 0.5, layout.tile.width - 1, layout.tile.height - 1);
  }
  if (!layout.hasName) return;
  context.fillStyle = level === "good" ? colors.muted : colors[level];
  let text = mark ? `${tile.name}, ${mark}` : tile.name;
  const room = layout.tile.width - 6;
  if (context.measureText(text).width > room) {
    while (text.length > 3 && context.measureText(`${text}…`).width > room) text = text.slice(0, -1);
    text += "…";
  }
  context.fillText(text, x + 3, y + 13);
}

export function Cluster(props) {
  const { objects, filter, select, moment, change, selectedKey } = props;
  const [colour, setColour] = useState("phase");
  const [hover, setHover] = useState(null);
  const [showsActions, setShowsActions] = useState(false);
  const canvas = useRef(null);
  const view = useRef({ x: 0, y: 0, scale: 1, focus: -1, dirty: true, picture: null, key: "", painted: 0, zoomed: 0, redraw: () => undefined });
  const isLarge = objects.byKey.size > LARGE;
  const tick = isLarge ? Math.floor(Date.now() / 1000) : objects.version;
  const tiles = useMemo(() => tilesOf(objects), [objects, tick]);
  const state = view.current;
  state.tiles = tiles;
  state.options = { colour, objects, filter };
  state.dirty = true;
  state.selectedKey = selectedKey;
  useEffect(() => {
    const draw = (context, width, height) => drawView(context, width, height, state);
    const { redraw, stop } = drawing(canvas.current, draw);
    state.redraw = redraw;
    const onTheme = () => {
      state.dirty = true;
      state.painted = 0;
      state.redraw();
    };
    addEventListener("themechange", onTheme);
    return () => {
      stop();
      removeEventListener("themechange", onTheme);
    };
  }, []);
  useEffect(() => state.redraw());
  useEffect(() => listen(canvas.current, state, { setHover, select }), [objects]);
  const counts = useMemo(() => legendOf(tiles, colour, objects), [tiles, colour, objects]);
  const nodes = tiles.filter((tile) => tile.entry).length;
  const pods = tiles.reduce((sum, tile) => sum + tile.pods.length, 0);
  return html`
    <div class="bar">
      <label>Colour by <select value=${colour} onChange=${(event) => setColour(event.target.value)}>${COLOURS.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      <div class="legend">${counts.map(([name, count, style]) => html`<span key=${name}><i class=${`swatch ${style}`}></i>${name} ${count}</span>`)}</div>
      <span class="muted push" data-testid="size">${nodes.toLocaleString("en")} nodes, ${pods.toLocaleString("en")} pods</span>
      <button aria-expanded=${showsActions} onClick=${() => setShowsActions(!showsActions)}>Control</button>
    </div>
    ${showsActions && html`<div class="panel"><${ClusterActions} moment=${moment} change=${change} /></div>`}
    <div class="canvas">
      <canvas ref=${canvas} tabindex="0" role="application" aria-label="Nodes and their pods. Arrow keys choose a node, Enter opens it, plus, minus and 0 zoom."></canvas>
      ${hover && html`<div class="tip" style=${hover.style}><b>${hover.title}</b>${hover.lines.map((line) => html`<div class="muted">${line}</div>`)}</div>`}
      <div class="offscreen" role="status">${hover ? hover.title : ""}</div>
    </div>`;
}

function legendOf(tiles, colour, objects) {
  const counts = new Map();
  for (const tile of tiles) {
    for (const pod of tile.pods) {
      const state = colour === "phase" ? stateOf("Pod", pod.object) : null;
      const name = state ? state.text : colour === "namespace" ? pod.namespace : workloadOf(pod, objects);
      const old = counts.get(name) ?? [name, 0, state ? state.level : `hue-${hueOf(name, colour)}`];
      old[1] += 1;
      counts.set(name, old);
    }
  }
  return [...counts.values()].sort((a, b) => b[1] - a[1]).slice(0, 8);
}

function drawView(context, width, height, state) {
  const { tiles, options } = state;
  const key = `${width}x${height} ${options.colour} ${options.filter.namespace} ${options.filter.text}`;
  const now = performance.now();
  const isNew = key !== state.key;
  const sharpness = Math.min(3, Math.ceil(state.scale));
  if (sharpness !== state.sharpness) state.dirty = true; // it is drawn anew when the zoom rests
  if (isNew || (state.dirty && now - state.painted > Math.max(REDRAW_MS, (state.cost ?? 0) * 8) && now - state.zoomed > REDRAW_MS)) {
    state.layout = layoutOf(tiles, width, height);
    state.picture = paint(tiles, state.layout, { ...options, scale: sharpness });
    state.sharpness = sharpness;
    state.key = key;
    state.shownTiles = tiles;
    state.painted = performance.now();
    state.cost = state.painted - now;
    state.dirty = false;
  } else if (state.dirty) {
    clearTimeout(state.timer);
    state.timer = setTimeout(state.redraw, REDRAW_MS);
  }
  const { layout, picture, scale } = state;
  state.x = Math.min(0, Math.max(state.x, width - layout.width * scale));
  state.y = Math.min(0, Math.max(state.y, height - layout.height * scale));
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, state.x, state.y, layout.width * scale, layout.height * scale);
  const colors = themeColors();
  context.strokeStyle = colors.accent;
  context.lineWidth = 2;
  const outline = (index) => {
    const { x, y } = layout.positions[index];
    context.strokeRect(state.x + x * scale - 1, state.y + y * scale - 1, layout.tile.width * scale + 2, layout.tile.height * scale + 2);
  };
  if (state.focus >= 0 && state.focus < state.shownTiles.length) outline(state.focus);
  const chosen = state.shownTiles.findIndex((tile) => tile.entry?.key === state.selectedKey);
  if (chosen >= 0) outline(chosen);
}

/** Return the tile, and the pod in it, at a place of the canvas. */
function hit(state, px, py) {
  const { layout, shownTiles } = state;
  if (!layout) return null;
  const x = (px - state.x) / state.scale;
  const y = (py - state.y) / state.scale;
  const index = layout.positions.findIndex((place) => x >= place.x && x < place.x + layout.tile.width && y >= place.y && y < place.y + layout.tile.height);
  if (index < 0) return null;
  const place = layout.positions[index];
  const tile = shownTiles[index];
  const column = Math.floor((x - place.x - 2) / (layout.cell + 1));
  const row = Math.floor((y - place.y - 2 - (layout.hasName ? 17 : 0)) / (layout.cell + 1));
  const pod = row >= 0 && column >= 0 && column < layout.columns ? tile.pods[row * layout.columns + column] : undefined;
  return { index, tile, pod };
}

function describe(found) {
  const { tile, pod } = found;
  if (pod) return { title: pod.name, lines: [`Pod in ${pod.namespace}`, stateOf("Pod", pod.object).text, tile.name] };
  const lines = [`${tile.pods.length} pods`];
  if (tile.entry) lines.unshift(stateOf("Node", tile.entry.object).text);
  if (tile.usage) lines.push(`${Math.round(tile.usage * 100)} % of its CPU is requested`);
  return { title: tile.name, lines };
}

function listen(canvas, state, { setHover, select }) {
  if (!canvas) return undefined;
  const pointers = new Map();
  let moved = 0;
  const at = (event) => pointIn(canvas, event);
  const zoom = (factor, x, y) => {
    const scale = Math.min(12, Math.max(1, state.scale * factor));
    state.x = x - ((x - state.x) * scale) / state.scale;
    state.y = y - ((y - state.y) * scale) / state.scale;
    state.scale = scale;
    state.zoomed = performance.now();
    state.redraw();
  };
  const tip = (found, x, y) => setHover({ ...describe(found), style: tipStyle(canvas, x, y) });
  const handlers = {
    wheel: (event) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 400), ...at(event));
    },
    pointerdown: (event) => {
      pointers.set(event.pointerId, at(event));
      moved = 0;
      canvas.setPointerCapture(event.pointerId);
    },
    pointermove: (event) => {
      const [x, y] = at(event);
      const old = pointers.get(event.pointerId);
      if (old && pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const distance = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]) || 1;
        zoom(distance([x, y]) / distance(old), (x + other[0]) / 2, (y + other[1]) / 2);
        moved += 10;
      } else if (old) {
        state.x += x - old[0];
        state.y += y - old[1];
        moved += Math.abs(x - old[0]) + Math.abs(y - old[1]);
        state.redraw();
      }
      if (old) pointers.set(event.pointerId, [x, y]);
      const found = old ? null : hit(state, x, y);
      if (found) tip(found, x, y);
      else setHover(null);
    },
    pointerup: (event) => {
      pointers.delete(event.pointerId);
      if (moved > 5) return;
      const found = hit(state, ...at(event));
      if (found) {
        state.focus = found.index;
        select(found.pod ?? found.tile.entry);
      }
    },
    pointercancel: (event) => pointers.delete(event.pointerId),
    pointerleave: () => setHover(null),
    keydown: (event) => {
      const { layout, shownTiles } = state;
      if (!layout) return;
      const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: layout.perRow, ArrowUp: -layout.perRow };
      const middle = [canvas.clientWidth / 2, canvas.clientHeight / 2];
      if (event.key in steps) {
        state.focus = Math.min(shownTiles.length - 1, Math.max(0, state.focus + (state.focus < 0 ? 1 : steps[event.key])));
        const { x, y } = layout.positions[state.focus];
        tip({ tile: shownTiles[state.focus] }, state.x + (x + layout.tile.width) * state.scale, state.y + y * state.scale);
        state.redraw();
      } else if (event.key === "Enter" && state.focus >= 0) select(shownTiles[state.focus].entry);
      else if (event.key === "+" || event.key === "=") zoom(1.3, ...middle);
      else if (event.key === "-") zoom(1 / 1.3, ...middle);
      else if (event.key === "0") zoom(1 / state.scale, 0, 0);
      else return;
      event.preventDefault();
    },
  };
  return handle(canvas, handlers);
}
