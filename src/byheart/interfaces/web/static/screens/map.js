// The map of a space: points that are near are alike in meaning; a lasso selects them into a list.
import { get, usePages, useRequest } from "../core/api.js";
import { loadBriefs } from "../core/briefs.js";
import { live, onChanges } from "../core/events.js";
import { COMMON_FILTERS, readFilters } from "../core/filters.js";
import { count, counted, nameOf, visible } from "../core/format.js";
import { html, useCell, useEffect, useMemo, useRef, useState } from "../core/lib.js";
import { addressOf, place, setQuery } from "../core/router.js";
import { theme } from "../core/theme.js";
import { Figure } from "../parts/charts.js";
import { FilterChips } from "../parts/chips.js";
import { Icon } from "../parts/icons.js";
import { MemoryList } from "../parts/memory_list.js";
import { Empty, Note, Screen, Waiting } from "../parts/page.js";
import { inside, nearest, paint, projection, readPalette, readPolygon, writePolygon } from "./map_canvas.js";

const TONES = ["keywords", "meaning", "neighbours", "warn", "bad", "good", "accent", "soft"];
const MOST_POINTS = 20_000;
const WHOLE = { x: 0.5, y: 0.5, zoom: 1 };
const CLICK_PX = 6;
/** The parts of the address that name a selection. */
const NOTHING_SELECTED = { lasso: null, region: null, memory: null };

/** Name the memory under the pointer. @param {{id: string | null}} props */
function Under({ id }) {
  const [name, setName] = useState("");
  useEffect(() => {
    setName("");
    if (!id) return;
    const controller = new AbortController();
    const timer = setTimeout(() => loadBriefs([id], controller.signal).then(([found]) => setName(found ? nameOf(found) : ""), () => {}), 120);
    return () => { clearTimeout(timer); controller.abort(); };
  }, [id]);
  return html`<p class="map-under hint" dir="auto">${name || "Draw around points to list them, or click one."}</p>`;
}

/** Draw points, and let the pointer move, zoom and draw a lasso. @param {{data: any, points: any, picked: Uint8Array | null, lasso: any}} props */
function Picture({ data, points, picked, lasso }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState(WHOLE);
  const [moves, setMoves] = useState(false);
  const [drawn, setDrawn] = useState(/** @type {[number, number][]} */ ([]));
  const [under, setUnder] = useState(/** @type {string | null} */ (null));
  const [size, setSize] = useState(0);
  const gesture = useRef(/** @type {any} */ (null));
  const colors = useCell(theme);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const fit = () => {
      const bounds = element.getBoundingClientRect();
      const [width, height] = [bounds.width, bounds.height].map((each) => Math.round(each * (devicePixelRatio || 1)));
      // Setting a size clears the picture.
      if (width === element.width && height === element.height) return;
      [element.width, element.height] = [width, height];
      setSize(width * 100_000 + height);
    };
    const watch = new ResizeObserver(fit);
    watch.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const again = () => setSize((before) => -before);
    dark.addEventListener("change", again);
    fit();
    return () => { watch.disconnect(); dark.removeEventListener("change", again); };
  }, []);
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      if (!canvas.current || !box.current) return;
      const took = paint(canvas.current, { points, view, palette: readPalette(box.current), picked, drawn: drawn.length ? drawn : lasso, density: devicePixelRatio || 1 });
      canvas.current.dataset.paintMs = took.toFixed(2);
    });
    return () => cancelAnimationFrame(frame);
  }, [points, view, picked, drawn, lasso, size, colors]);

  const zoom = (by, x = view.x, y = view.y) => setView((before) => {
    const next = Math.max(1, Math.min(40, before.zoom * by));
    const part = 1 - before.zoom / next;
    return next === 1 ? WHOLE : { zoom: next, x: before.x + (x - before.x) * part, y: before.y + (y - before.y) * part };
  });
  const at = (event) => {
    const element = /** @type {HTMLCanvasElement} */ (canvas.current);
    const bounds = element.getBoundingClientRect();
    const [left, top] = [(event.clientX - bounds.left) * (element.width / bounds.width), (event.clientY - bounds.top) * (element.height / bounds.height)];
    return { left, top, map: projection(view, element.width, element.height).toMap(left, top) };
  };
  const find = (event) => {
    const { left, top } = at(event);
    return nearest(points, view, /** @type {HTMLCanvasElement} */ (canvas.current), left, top, 10 * (devicePixelRatio || 1));
  };
  const down = (event) => {
    canvas.current?.setPointerCapture(event.pointerId);
    gesture.current = { x: event.clientX, y: event.clientY, far: 0, start: at(event).map, line: [at(event).map] };
  };
  const move = (event) => {
    const now = gesture.current;
    if (!now) {
      const found = find(event);
      setUnder(found < 0 ? null : data.memory_ids[found]);
      return;
    }
    now.far = Math.max(now.far, Math.hypot(event.clientX - now.x, event.clientY - now.y));
    const [x, y] = at(event).map;
    if (moves) setView((before) => ({ ...before, x: before.x - x + now.start[0], y: before.y - y + now.start[1] }));
    else {
      now.line.push([x, y]);
      if (now.far >= CLICK_PX) setDrawn([...now.line]);
    }
  };
  const up = (event) => {
    const now = gesture.current;
    gesture.current = null;
    setDrawn([]);
    if (!now) return;
    if (now.far < CLICK_PX) {
      const found = find(event);
      setQuery({ ...NOTHING_SELECTED, memory: found < 0 ? null : data.memory_ids[found] });
    } else if (!moves) setQuery({ ...NOTHING_SELECTED, lasso: writePolygon(now.line) });
  };
  const wheel = (event) => {
    // Without a key the wheel scrolls the page, as everywhere.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const [x, y] = at(event).map;
    zoom(event.deltaY < 0 ? 1.25 : 0.8, x, y);
  };
  return html`
    <div class="map" ref=${box}>
      <div class="map-tools">
        <div class="segments" role="group" aria-label="What dragging does">
          <button aria-pressed=${!moves} onClick=${() => setMoves(false)}>Lasso</button>
          <button aria-pressed=${moves} onClick=${() => setMoves(true)}>Move</button>
        </div>
        <button class="icon-button" aria-label="Zoom in" title="Zoom in" onClick=${() => zoom(1.6)}><${Icon} name="plus" /></button>
        <button class="icon-button" aria-label="Zoom out" title="Zoom out" disabled=${view.zoom === 1} onClick=${() => zoom(1 / 1.6)}><${Icon} name="minus" /></button>
        ${view.zoom > 1 && html`<button class="button small" onClick=${() => setView(WHOLE)}>Whole map</button>`}
        <div class="legend">${data.kinds.map((kind, index) => html`<span key=${kind}><i class="key bar-${TONES[Math.min(index, TONES.length - 1)]}" data-tone aria-hidden="true"></i>${visible(kind)}</span>`)}</div>
      </div>
      <canvas ref=${canvas} class=${moves ? "map-moves" : ""} role="img"
        aria-label="Map of ${counted(data.memory_ids.length, "memory", "memories")} in ${counted(data.regions.length, "region")}. The table below has the same regions."
        onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${() => { gesture.current = null; setDrawn([]); }}
        onPointerLeave=${() => setUnder(null)} onWheel=${wheel}></canvas>
      <${Under} id=${under} />
    </div>`;
}

/** The selected memories, page by page. @param {{ids: string[], title: string}} props */
function Selected({ ids, title }) {
  const pages = usePages(async (offset, limit, signal) => ({
    items: await loadBriefs(ids.slice(offset, offset + limit), signal),
    total: ids.length,
    hasMore: offset + limit < ids.length,
  }), [ids.join(" ")]);
  return html`
    <section class="map-list" aria-label="Chosen on the map">
      <div class="list-title context-head"><h2>${title} <span class="hint">${count(ids.length)}</span></h2><button class="button small" onClick=${() => setQuery(NOTHING_SELECTED)}>Clear the choice</button></div>
      <${MemoryList} pages=${pages} label="Memories chosen on the map" empty=${html`<p class="hint">There is no memory in this part of the map.</p>`} />
    </section>`;
}

/** @param {{data: any, filters: Record<string, any>}} props */
function Map2D({ data, filters }) {
  const { query } = useCell(place);
  const lassoText = query.get("lasso") ?? "";
  const region = query.get("region");
  const memory = query.get("memory");
  const regions = useMemo(() => [...data.regions].sort((a, b) => b.memories - a.memories), [data]);
  const points = useMemo(() => ({ xs: data.x, ys: data.y, tone: data.kind.map((each) => Math.min(each, TONES.length - 1)), regions }), [data]);
  const lasso = useMemo(() => readPolygon(lassoText), [lassoText]);
  const picked = useMemo(() => {
    if (lasso.length > 2) return inside(points, lasso);
    if (region !== null) return Uint8Array.from(data.region, (each) => (each === Number(region) ? 1 : 0));
    if (memory) return Uint8Array.from(data.memory_ids, (each) => (each === memory ? 1 : 0));
    return null;
  }, [points, lasso, region, memory]);
  const ids = useMemo(() => (picked ? data.memory_ids.filter((_, at) => picked[at]) : []), [picked]);
  const named = regions.find((each) => String(each.region) === region);
  return html`
    <${Picture} data=${data} points=${points} picked=${picked} lasso=${lasso} />
    ${picked && html`<${Selected} ids=${ids} title=${named ? visible(named.terms.join(", ")) : "Chosen"} />`}
    <${Figure} title="Regions" columns=${["Terms", "Memories", "List"]}
      note="Terms that are frequent in a region and rare elsewhere. They are a hint: the picture shows two dimensions of many."
      rows=${regions.map((each) => [visible(each.terms.join(", ")) || "no telling terms", each.memories, html`<a href=${addressOf("map", [], { ...filters, region: each.region })}>Show${" "}<span class="unseen">${each.terms.join(", ")}</span></a>`])} />`;
}

/** The last map, as long as nothing has changed: the way back from a memory does not wait again.
 * @type {{key: string, data: any} | null} */
let drawn = null;
let changes = 0;
onChanges(() => { drawn = null; changes += 1; });

/** @param {Record<string, any>} filters @param {AbortSignal} signal */
async function loadMap(filters, signal) {
  const key = JSON.stringify(filters);
  if (drawn?.key === key && live.get()) return drawn.data;
  const before = changes;
  const data = await get("/map", { ...filters, limit: MOST_POINTS }, signal);
  if (changes === before && live.get()) drawn = { key, data };
  return data;
}

export default function MapScreen() {
  const { query } = useCell(place);
  const filters = readFilters(query, COMMON_FILTERS);
  const asked = useRequest((signal) => loadMap(filters, signal), [JSON.stringify(filters)]);
  const { data } = asked;
  const drawAgain = () => { drawn = null; asked.reload(); };
  const lead = data && data.memory_ids.length > 0 && `${counted(data.memory_ids.length, "memory", "memories")}${data.total > data.memory_ids.length ? ` of ${count(data.total)}` : ""}. The picture is a hint: near points are often alike in meaning, far ones are not always different.`;
  return html`
    <${Screen} title="Map" lead=${lead} wide actions=${html`<button class="button" onClick=${drawAgain}>Draw again</button>`}>
      <div class="screen-filters"><${FilterChips} names=${COMMON_FILTERS} /></div>
      ${!data && html`<${Waiting} request=${asked} label="Drawing the map" />`}
      ${data?.degraded && html`<${Note} tone="warn">${data.degraded}</${Note}>`}
      ${data && (data.memory_ids.length
        ? html`<${Map2D} data=${data} filters=${filters} />`
        : html`<${Empty} title="No map yet" icon="map"><p>A map needs memories with vectors. Save some; if vectors are pending, the server is making them, and <code>byheart worker</code> helps.</p></${Empty}>`)}
    </${Screen}>`;
}
