// Keywords, meaning and both, side by side: which retriever finds what.
import { post, useRequest } from "../core/api.js";
import { milliseconds, nameOf } from "../core/format.js";
import { html } from "../core/lib.js";
import { addressOf } from "../core/router.js";
import { Marked, ScoreBar, Snippet, VERDICTS } from "../parts/hits.js";
import { Waiting } from "../parts/page.js";
import { repeatsPassage } from "../parts/rows.js";

/** @type {[string, string][]} */
const COLUMNS = [["hybrid", "Both"], ["fts", "Keywords"], ["vector", "Meaning"]];

/** @param {{answer: any, label: string, places: Map<string, number>}} props */
function Column({ answer, label, places }) {
  const best = Math.max(0, ...answer.results.map((each) => each.score));
  return html`
    <section class="compare-column" aria-label=${label}>
      <h2>${label}</h2>
      <p class="hint">${VERDICTS[answer.verdict]?.[0] ?? answer.verdict} · ${milliseconds(answer.elapsed_ms)}</p>
      ${answer.degraded && html`<p class="hint">${answer.degraded}</p>`}
      <ol>
        ${answer.results.map((hit, at) => html`
          <li key=${hit.chunk_id}>
            <div class="compare-head">
              <span class="compare-place">${at + 1}</span>
              <a href=${addressOf("memory", [hit.memory_id])} dir="auto">${repeatsPassage(hit) ? html`<${Marked} snippet=${hit.snippet} marks=${hit.snippet_marks} />` : nameOf(hit)}</a>
              ${label !== "Both" && html`<span class="badge">${places.has(hit.chunk_id) ? `place ${(places.get(hit.chunk_id) ?? 0) + 1} in Both` : "not in Both"}</span>`}
            </div>
            ${hit.explanation && html`<${ScoreBar} explanation=${hit.explanation} best=${best} />`}
            ${!repeatsPassage(hit) && html`<${Snippet} snippet=${hit.snippet} marks=${hit.snippet_marks} />`}
          </li>`)}
        ${!answer.results.length && html`<li class="hint">Nothing found this way.</li>`}
      </ol>
    </section>`;
}

/** @param {{query: string, filters: Record<string, any>}} props */
export default function Compare({ query, filters }) {
  const asked = useRequest(
    (signal) => Promise.all(COLUMNS.map(([mode]) => post("/search", { query, mode, limit: 10, explain: true, ...filters }, signal))),
    [query, JSON.stringify(filters)],
  );
  const { data } = asked;
  if (!data) return html`<${Waiting} request=${asked} label="Searching in three ways" />`;
  const places = new Map(data[0].results.map((hit, at) => [hit.chunk_id, at]));
  return html`
    <div class="compare">
      ${COLUMNS.map(([mode, label], at) => html`<${Column} key=${mode} label=${label} answer=${data[at]} places=${places} />`)}
    </div>`;
}
