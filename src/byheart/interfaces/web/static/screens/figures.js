// Figures: growth, kinds, speed, verdicts, pending vectors, slow queries, and what the doctor finds.
import { exportAddress } from "../core/actions.js";
import { get, useRequest } from "../core/api.js";
import { ago, bytes, count, day as spellDay, milliseconds, moment, percent, shorten, visible } from "../core/format.js";
import { classes, html, useEffect, useState } from "../core/lib.js";
import { addressOf } from "../core/router.js";
import { Bars, Figure, Lines, StackedBar } from "../parts/charts.js";
import { VERDICTS } from "../parts/hits.js";
import { Icon } from "../parts/icons.js";
import { ErrorNote, Loading, Note, Screen, Waiting } from "../parts/page.js";

const DAY_MS = 86_400_000;
// A process of the server hands over its counts of searches within five seconds.
const UPDATE_MS = 6000;

const MODES = /** @type {Record<string, string>} */ ({ hybrid: "Both", fts: "Keywords", vector: "Meaning", listing: "List" });
const GRANULARITIES = /** @type {Record<string, string>} */ ({ medium: "sections", coarse: "whole memories" });

/** Name a kind of search as the search screen does. @param {string} kind such as "hybrid/fine" or "context" */
function searchName(kind) {
  const [mode, granularity] = kind.split("/");
  return [MODES[mode] ?? mode[0].toUpperCase() + mode.slice(1), GRANULARITIES[granularity]].filter(Boolean).join(", ");
}

/** Sum the days up to a total for each day. @param {any[]} days @returns {[string, number][]} */
function growthOf(days) {
  const found = new Map(days.map((each) => [each.day, each.memories]));
  const rows = /** @type {[string, number][]} */ ([]);
  if (!days.length) return rows;
  let sum = 0;
  for (let at = Date.parse(days[0].day); at <= Date.now(); at += DAY_MS) {
    const day = new Date(at).toISOString().slice(0, 10);
    sum += found.get(day) ?? 0;
    rows.push([day, sum]);
  }
  return rows;
}

/** @param {{days: any[]}} props */
function Growth({ days }) {
  const rows = growthOf(days);
  const step = Math.max(1, Math.ceil(rows.length / 300));
  const points = rows.filter((_, at) => (rows.length - 1 - at) % step === 0);
  return html`
    <${Figure} title="Growth" columns=${["Day", "Memories"]} rows=${[...rows].reverse().slice(0, 400)} note=${rows.length ? "Memories that are still there, by the day on which they were saved." : "No memory was saved yet."}>
      ${rows.length > 0 && html`<${Lines} series=${[{ name: "Memories", tone: "accent", values: points.map(([, value]) => value) }]}
        labels=${points.length ? [spellDay(`${points[0][0]}T12:00`), "today"] : []} />`}
    </${Figure}>`;
}

/** @param {{kinds: Record<string, number>}} props */
function Kinds({ kinds }) {
  const rows = Object.entries(kinds).sort((a, b) => b[1] - a[1]);
  return html`
    <${Figure} title="Kinds" columns=${["Kind", "Memories"]} rows=${rows.map(([kind, value]) => [html`<a href=${addressOf("search", [], { kind })}>${visible(kind)}</a>`, value])} note=${rows.length ? null : "No memory was saved yet."}>
      <${Bars} bars=${rows.slice(0, 10).map(([label, value]) => ({ label: visible(label), value }))} />
    </${Figure}>`;
}

/** @param {{queries: any}} props */
function Speed({ queries }) {
  const rows = Object.entries(queries.kinds).filter(([, each]) => each.count).sort((a, b) => b[1].count - a[1].count);
  const spell = (value) => (value === null ? "–" : milliseconds(value));
  return html`
    <${Figure} title="Speed of searches" columns=${["Search", "Count", "p50", "p95"]}
      rows=${rows.map(([kind, each]) => [searchName(kind), each.count, spell(each.p50_ms), spell(each.p95_ms)])}
      note=${rows.length ? "p50: half of the searches are faster. p95: 19 of 20 are." : "No search was counted yet."}>
      ${rows.slice(0, 6).map(([kind, each]) => html`
        <div class="speed" key=${kind}>
          <p aria-hidden="true">${searchName(kind)}</p>
          <${Bars} bars=${[{ label: "p50", value: each.p50_ms ?? 0 }, { label: "p95", value: each.p95_ms ?? 0 }]} spell=${milliseconds} most=${Math.max(...rows.map(([, one]) => one.p95_ms ?? 0))} />
        </div>`)}
    </${Figure}>`;
}

const VERDICT_TONES = { answered: "good", weak: "warn", none: "soft" };

/** @param {{verdicts: Record<string, number>}} props */
function Verdicts({ verdicts }) {
  const rows = Object.keys(VERDICTS).map((name) => ({ name: VERDICTS[name][0], tone: VERDICT_TONES[name], value: verdicts[name] ?? 0 }));
  const sum = rows.reduce((total, each) => total + each.value, 0);
  return html`
    <${Figure} title="Verdicts of searches" columns=${["Verdict", "Searches", "Share"]} rows=${rows.map((each) => [each.name, each.value, sum ? percent(each.value / sum) : "–"])}
      note=${sum ? null : "No verdict was counted yet."}>
      <${StackedBar} parts=${rows} />
    </${Figure}>`;
}

/** @param {{stats: any}} props */
const Vectors = ({ stats }) => html`
  <${Figure} title="Vectors" columns=${["State", "Chunks"]} rows=${[["with a vector", stats.chunks - stats.pending_vectors], ["pending", stats.pending_vectors]]}
    note=${!stats.chunks ? "There is no text yet." : stats.pending_vectors ? "Texts without a vector are found by their words only. The server makes the rest in the background." : `Every text can be found by meaning${stats.model ? `, with the model ${stats.model}` : ""}.`}>
    <${StackedBar} parts=${[{ name: "With a vector", tone: "good", value: stats.chunks - stats.pending_vectors }, { name: "Pending", tone: "warn", value: stats.pending_vectors }]} />
  </${Figure}>`;

/** @param {{queries: any}} props */
const Slowest = ({ queries }) => html`
  <section class="figure figure-wide" aria-labelledby="slowest">
    <h2 id="slowest" class="figure-title">Slowest searches</h2>
    ${queries.slowest.length ? html`
      <div class="scroll-x" tabindex="0" role="region" aria-label="Slowest searches, table">
        <table>
          <thead><tr><th scope="col">Question</th><th scope="col">Search</th><th scope="col">Time</th><th scope="col">When</th></tr></thead>
          <tbody>${queries.slowest.map((each, at) => html`
            <tr key=${at}><th scope="row" dir="auto"><a href=${addressOf("search", [], { q: each.query })}>${shorten(each.query, 90)}</a></th><td>${searchName(each.kind)}</td><td class="nowrap">${milliseconds(each.elapsed_ms)}</td><td class="nowrap">${moment(each.at)}</td></tr>`)}
          </tbody>
        </table>
      </div>` : html`<p class="hint">No search was counted yet.</p>`}
    <p class="hint">Searches above ${milliseconds(queries.slow_query_ms)} count as slow: ${count(queries.total.slow)} of ${count(queries.total.count)}, besides ${count(queries.cold_starts)} first ones that waited for the model.</p>
  </section>`;

/** The checks of the doctor. */
function Doctor() {
  const [again, setAgain] = useState(0);
  const { data, error, loading, reload } = useRequest((signal) => get("/doctor", { again: again > 0 || undefined }, signal), [again]);
  return html`
    <section class="figure figure-wide" aria-labelledby="doctor">
      <div class="context-head"><h2 id="doctor" class="figure-title">Doctor</h2><button class="button small" disabled=${loading} onClick=${() => setAgain(again + 1)}>Check again</button></div>
      ${error && (error.kind === "forbidden" ? html`<p class="hint">${error.detail}. ${error.hint}.</p>` : html`<${ErrorNote} error=${error} retry=${reload} />`)}
      ${!data && !error && html`<${Loading} rows=${2} label="Checking the store" />`}
      ${data && html`
        <ul class="findings">${[...data.findings].sort((a, b) => Number(a.ok) - Number(b.ok)).map((each) => html`
          <li key=${each.check}>
            <span class=${classes("finding", each.ok ? "finding-good" : "finding-bad")}><${Icon} name=${each.ok ? "check" : "warning"} /><span class="unseen">${each.ok ? "Fine: " : "Problem: "}</span></span>
            <span><strong>${each.check}</strong> ${each.message}${each.hint && html`<span class="hint"> ${each.hint}</span>`}</span>
          </li>`)}</ul>
        <p class="hint">${data.findings.every((each) => each.ok) ? "All checks passed" : "Some checks failed"}, in ${milliseconds(data.elapsed_ms)}, ${ago(data.checked_at)}.</p>`}
    </section>`;
}

/** @param {AbortSignal} [signal] */
const loadStats = (signal) => get("/stats", {}, signal);
/** @param {AbortSignal} [signal] */
const loadDays = (signal) => get("/timeline", { limit: 1, utc_offset_minutes: -new Date().getTimezoneOffset() }, signal);

/** Follow the figures while the screen is open. @param {[any, any] | null} data @param {(data: [any, any]) => void} setData */
function useUpdates(data, setData) {
  useEffect(() => {
    if (!data) return undefined;
    const controller = new AbortController();
    const update = async () => {
      if (document.visibilityState !== "visible") return;
      const stats = await loadStats(controller.signal);
      // The days change only with the memories.
      const same = JSON.stringify(stats.kinds) === JSON.stringify(data[0].kinds);
      setData([stats, same ? data[1] : await loadDays(controller.signal)]);
    };
    // A server that is gone is told above every screen; the next try may succeed.
    const timer = setInterval(() => void update().catch(() => null), UPDATE_MS);
    return () => { clearInterval(timer); controller.abort(); };
  }, [data]);
}

export default function FiguresScreen() {
  const asked = useRequest((signal) => Promise.all([loadStats(signal), loadDays(signal)]), []);
  const { data } = asked;
  useUpdates(data, asked.setData);
  const [stats, timeline] = data ?? [];
  return html`
    <${Screen} title="Figures" lead=${stats && `${count(stats.memories)} memories, ${count(stats.chunks)} chunks${stats.sizes ? `, ${bytes(Object.values(stats.sizes).reduce((sum, each) => sum + each, 0))}` : ""}`} wide
      actions=${html`<a class="button" href=${exportAddress()} download><${Icon} name="download" />Export all memories</a>`}>
      ${!data && html`<${Waiting} request=${asked} label="Counting" />`}
      ${stats && !stats.collecting && html`<${Note}>Queries are not counted (setting collect_stats): only the contents are shown.</${Note}>`}
      ${stats && html`
        <div class="figures">
          <div class="figures-column"><${Growth} days=${timeline.days} /><${Speed} queries=${stats.queries} /></div>
          <div class="figures-column">
            <${Kinds} kinds=${stats.kinds} />
            <${Verdicts} verdicts=${stats.queries.verdicts} />
            <${Vectors} stats=${stats} />
          </div>
          <${Slowest} queries=${stats.queries} />
          <${Doctor} />
        </div>`}
    </${Screen}>`;
}
