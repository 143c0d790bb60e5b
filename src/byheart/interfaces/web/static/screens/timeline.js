// Timeline: days as a heat map, sessions as lanes, memories below; a slider shows the store at a time.
import { get, pageOf, usePages, useRequest } from "../core/api.js";
import { useNews } from "../core/events.js";
import { COMMON_FILTERS, readFilters } from "../core/filters.js";
import { count, counted, day as spellDay, localDay, moment, shorten } from "../core/format.js";
import { useKeys } from "../core/keys.js";
import { html, useCell, useEffect, useId, useRef, useState } from "../core/lib.js";
import { addressOf, place, setQuery } from "../core/router.js";
import { Figure, HeatMap } from "../parts/charts.js";
import { FilterChips } from "../parts/chips.js";
import { Icon } from "../parts/icons.js";
import { ListFoot, MemoryList } from "../parts/memory_list.js";
import { Empty, Loading, NewsPill, Note, Screen, Waiting } from "../parts/page.js";

const DAY_MS = 86_400_000;
const SHOWN_DAYS = 364;

/** Move a day. @param {string} day @param {number} by */
const shift = (day, by) => new Date(Date.parse(day) + by * DAY_MS).toISOString().slice(0, 10);

/** The bounds of a day as moments. @param {string} day */
const boundsOf = (day) => ({ created_after: new Date(`${day}T00:00`).toISOString(), created_before: new Date(`${shift(day, 1)}T00:00`).toISOString() });

/** The slider of days; its end is now. @param {{first: string, asOf: string | null}} props */
function AsOf({ first, asOf }) {
  const id = useId();
  const from = localDay(first);
  const most = Math.max(1, Math.round((Date.parse(localDay(Date.now())) - Date.parse(from)) / DAY_MS));
  const value = asOf ? Math.round((Date.parse(localDay(asOf)) - Date.parse(from)) / DAY_MS) : most;
  const [shown, setShown] = useState(value);
  useEffect(() => setShown(value), [value]);
  const spell = (at) => (at >= most ? "now" : `the end of ${spellDay(`${shift(from, at)}T12:00`)}`);
  // The last moment of the day where the person is.
  const momentOf = (at) => (at >= most ? null : new Date(new Date(`${shift(from, at + 1)}T00:00`).getTime() - 1).toISOString());
  return html`
    <div class="as-of">
      <label for=${id}>Show the store as of <strong>${asOf && shown === value ? moment(asOf) : spell(shown)}</strong></label>
      <input id=${id} type="range" min="0" max=${most} value=${shown} aria-valuetext=${spell(shown)}
        onInput=${(event) => setShown(Number(event.target.value))}
        onChange=${(event) => setQuery({ as_of: momentOf(Number(event.target.value)) }, { replace: true })} />
      <button class="button small" disabled=${!asOf} onClick=${() => setQuery({ as_of: null })}>Now</button>
    </div>`;
}

/** The day that is shown, and the ways to another one. @param {{day: string | null, last: string}} props */
const DayPicker = ({ day, last }) => html`
  <div class="day-picker" role="group" aria-label="Day">
    <button class="icon-button" aria-keyshortcuts="[" aria-label="Day before" title="Day before ( [ )" onClick=${() => setQuery({ day: shift(day ?? last, day ? -1 : 0) })}><${Icon} name="left" /></button>
    <input type="date" aria-label="Show one day" value=${day ?? ""} onChange=${(event) => setQuery({ day: event.target.value })} />
    <button class="icon-button" aria-keyshortcuts="]" aria-label="Day after" title="Day after ( ] )" disabled=${!day} onClick=${() => day && setQuery({ day: shift(day, 1) })}><${Icon} name="right" /></button>
    ${day && html`<button class="button small" onClick=${() => setQuery({ day: null })}>All days</button>`}
  </div>`;

/** The days as a heat map; the newest are in view. @param {{days: any[], from: Date, to: Date, day: string | null}} props */
function Days({ days, from, to, day }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { if (box.current) box.current.scrollLeft = box.current.scrollWidth; }, [days.length > 0]);
  return html`
    <${Figure} title="Saved per day" columns=${["Day", "Memories", "Kinds"]}
      rows=${[...days].reverse().map((each) => [each.day, each.memories, Object.entries(each.kinds).map(([kind, number]) => `${number} ${kind}`).join(", ")])}>
      <div class="heat-scroll" ref=${box} tabindex="0" role="region" aria-label="Heat map of days">
        <${HeatMap} days=${new Map(days.map((each) => [each.day, each.memories]))} from=${from} to=${to} chosen=${day}
          onDay=${(each) => setQuery({ day: each === day ? null : each })} />
      </div>
    </${Figure}>`;
}

/** Sessions as lanes over the time that is shown. @param {{query: Record<string, any>, from: number, to: number}} props */
function Lanes({ query, from, to }) {
  const pages = usePages(pageOf("/timeline", "sessions", query), [JSON.stringify(query)], 12);
  if (!pages.answer && !pages.error) return html`<${Loading} rows=${2} label="Loading the sessions" />`;
  const place = (at) => Math.max(0, Math.min(100, ((Date.parse(at) - from) / Math.max(1, to - from)) * 100));
  return html`
    <section class="lanes" aria-label="Sessions">
      <h2 class="list-title">Sessions <span class="hint">${count(pages.total ?? 0)}</span></h2>
      ${!pages.items.length && !pages.error && html`<p class="hint lane-none">No session in this time.</p>`}
      <ol>${pages.items.map((each) => {
        const left = Math.min(99, place(each.first_at));
        return html`
          <li class="lane" key=${each.session_id}>
            <a href=${addressOf("sessions", [each.session_id])} dir="auto" title="${moment(each.first_at)} to ${moment(each.last_at)}">${shorten(each.session_id, 60)}</a>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><line x1="0" x2="100" y1="5" y2="5" /><rect class="bar-accent" x=${left} width=${Math.max(1, place(each.last_at) - left)} y="1" height="8" /></svg>
            <span class="hint">${counted(each.memories, "memory", "memories")}<span class="unseen">, ${moment(each.first_at)} to ${moment(each.last_at)}</span></span>
          </li>`;
      })}</ol>
      <${ListFoot} pages=${pages} />
    </section>`;
}

/** The memories of the time that is shown. @param {{query: Record<string, any>, news: any, onNews: () => void}} props */
function Memories({ query, news, onNews }) {
  const pages = usePages(pageOf("/memories", "memories", query), [JSON.stringify(query)]);
  return html`
    <${NewsPill} news=${news} onShow=${() => { pages.reload(); onNews(); }} />
    <h2 class="list-title">Memories <span class="hint">${pages.total === null ? "" : count(pages.total)}</span></h2>
    <${MemoryList} pages=${pages} label="Memories" empty=${html`<${Empty} title="Nothing was saved then" icon="timeline"><p>Choose another day, or take a filter away.</p></${Empty}>`} />`;
}

export default function TimelineScreen() {
  const { query } = useCell(place);
  const asOf = query.get("as_of");
  const given = query.get("day") ?? "";
  const day = /^\d{4}-\d{2}-\d{2}$/.test(given) && !Number.isNaN(Date.parse(given)) ? given : null;
  const filters = readFilters(query, COMMON_FILTERS);
  const shared = { ...filters, as_of: asOf };
  const zone = { utc_offset_minutes: -new Date().getTimezoneOffset() };
  const whole = useRequest((signal) => get("/timeline", { ...shared, ...zone, limit: 1 }, signal), [JSON.stringify(shared)]);
  // The slider keeps its length while it moves: an earlier store may have been empty.
  const now = useRequest((signal) => (asOf ? get("/timeline", { ...filters, ...zone, limit: 1 }, signal) : null), [JSON.stringify(filters), !asOf]);
  const news = useNews();
  const today = localDay(Date.now());
  useKeys({
    "[": { label: "Day before", run: () => setQuery({ day: shift(day ?? today, day ? -1 : 0) }) },
    "]": { label: "Day after", run: () => day && setQuery({ day: shift(day, 1) }) },
  });
  const { data } = whole;
  const isWhole = !Object.keys(filters).length && !asOf && !day;
  const first = data?.first_at ?? new Date().toISOString();
  const last = localDay(asOf ?? Date.now());
  // The heat map has room for a year; older days are reached by their date.
  const from = Date.parse(last) - SHOWN_DAYS * DAY_MS;
  const limits = day ? boundsOf(day) : {};
  const lanes = day
    ? [Date.parse(boundsOf(day).created_after), Date.parse(boundsOf(day).created_before)]
    : [Math.max(Date.parse(first), from), asOf ? Date.parse(asOf) : Date.now()];
  const lead = data && (data.memories ? `${counted(data.memories, "memory", "memories")} since ${spellDay(first)}` : "No memories");
  return html`
    <${Screen} title="Timeline" lead=${lead} actions=${html`<${DayPicker} day=${day} last=${last} />`}>
      <div class="screen-filters"><${FilterChips} names=${COMMON_FILTERS} /></div>
      ${!data && html`<${Waiting} request=${whole} label="Loading the timeline" />`}
      ${data && !data.memories && isWhole && html`<${NewsPill} news=${news} onShow=${whole.reload} /><${Empty} title="No memories yet" icon="timeline"><p>Here you will see when they were saved. <a href="/">How to save one</a></p></${Empty}>`}
      ${data && (data.memories || !isWhole) && html`
        <${AsOf} first=${now.data?.first_at ?? first} asOf=${asOf} />
        ${asOf && html`<${Note}>This is what the store held then: later memories are left out, later changes are taken back. Forgotten memories stay hidden.</${Note}>`}
        <${Days} days=${data.days} from=${new Date(from)} to=${new Date(Date.parse(last))} day=${day} />
        ${day && html`<h2 class="day-title">${spellDay(`${day}T12:00`)}</h2>`}
        <${Lanes} query=${{ ...shared, ...zone, ...limits }} from=${lanes[0]} to=${lanes[1]} />
        <${Memories} query=${{ ...shared, ...limits }} news=${news} onNews=${whole.reload} />`}
    </${Screen}>`;
}
