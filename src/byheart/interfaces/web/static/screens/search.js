// Search, the first screen: one box, filters as chips, the verdict first, then the hits.
import { pageOf, post, usePages } from "../core/api.js";
import { useNews } from "../core/events.js";
import { readFilters } from "../core/filters.js";
import { count, counted, milliseconds } from "../core/format.js";
import { html, useCell, useEffect, useMemo, useRef, useState } from "../core/lib.js";
import { place, setQuery } from "../core/router.js";
import { FilterChips } from "../parts/chips.js";
import { Verdict, verdictOf } from "../parts/hits.js";
import { Icon } from "../parts/icons.js";
import { lazy } from "../parts/lazy.js";
import { MemoryList } from "../parts/memory_list.js";
import { Empty, NewsPill, Note, Screen } from "../parts/page.js";
import { announce } from "../parts/toast.js";

const Compare = lazy(() => import("./compare.js"));

/** @type {[string, string, string][]} */
export const MODES = [
  ["hybrid", "Both", "Keywords and meaning together"],
  ["fts", "Keywords", "Only by words"],
  ["vector", "Meaning", "Only by meaning"],
  ["compare", "Compare", "All three side by side"],
];

/** @param {{query: string, mode: string}} props */
function SearchBox({ query, mode }) {
  const [text, setText] = useState(query);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => setText(query), [query]);
  useEffect(() => {
    if (place.get().query.has("focus")) {
      input.current?.focus();
      setQuery({ focus: null }, { replace: true });
    }
  }, []);
  return html`
    <form class="search-box" role="search" onSubmit=${(event) => {
      event.preventDefault();
      document.getElementById("results")?.focus(); // so that j and k move through the hits
      setQuery({ q: text.trim() });
    }}>
      <div class="search-input">
        <${Icon} name="search" />
        <input ref=${input} type="search" aria-keyshortcuts="/" aria-label="Question or words" placeholder="Search your memories" autocomplete="off"
          value=${text} onInput=${(event) => setText(event.target.value)} />
        <kbd aria-hidden="true">/</kbd>
      </div>
      <button class="button primary" type="submit">Search</button>
    </form>
    <div class="search-tools">
      <${FilterChips} />
      <div class="segments" role="group" aria-label="How to search">
        ${MODES.map(([name, label, title]) => html`
          <button key=${name} type="button" aria-pressed=${mode === name} title=${title}
            onClick=${() => setQuery({ mode: name === "hybrid" ? null : name })}>${label}</button>`)}
      </div>
    </div>`;
}

const NewStore = () => html`
  <${Empty} title="No memories yet" icon="layers">
    <p>Your agents save memories here once they are set up:</p>
    <pre>byheart setup claude-code</pre>
    <p>Or save one yourself; it appears here within a second:</p>
    <pre>byheart save "The deploy key is kept in the vault."</pre>
  </${Empty}>`;

/** @param {{filtered: boolean}} props */
const Nothing = ({ filtered }) => html`
  <${Empty} title="Nothing found" icon="search">
    <p>${filtered ? "Take a filter away, or try other words." : "Try other words, or fewer."}</p>
  </${Empty}>`;

/** The heading above the newest or the forgotten memories, and the way to the others. @param {{forgotten: boolean, total: number | null}} props */
const ListTitle = ({ forgotten, total }) => html`
  <div class="list-title list-head">
    <h2>${forgotten ? "Forgotten" : "Newest"} <span class="hint">${total === null ? "" : count(total)}</span></h2>
    <button class="text-button" onClick=${() => setQuery({ forgotten: forgotten ? null : "true" })}>${forgotten ? "Back to the newest" : "Forgotten ones"}</button>
  </div>`;

/** The hits of a search, or the newest or the forgotten memories. @param {{query: string, mode: string, forgotten: boolean, filters: Record<string, any>}} props */
function Results({ query, mode, forgotten, filters }) {
  const pages = usePages(async (offset, limit, signal) => {
    if (query) {
      const answer = await post("/search", { query, mode, limit, offset, explain: true, ...filters }, signal);
      return { items: answer.results, total: answer.total_results, hasMore: answer.has_more, answer };
    }
    return pageOf("/memories", "memories", { ...(forgotten && { forgotten }), ...filters })(offset, limit, signal);
  }, [], query ? 20 : 50);
  const news = useNews();
  const reload = () => { news.clear(); pages.reload(); };
  const { items, answer } = pages;
  const filtered = Object.keys(filters).length > 0;
  useEffect(() => {
    if (!answer) return;
    const [word, meaning] = verdictOf(answer.verdict, items.length);
    announce(query ? `${word}: ${meaning}` : counted(pages.total ?? 0, "memory", "memories"));
  }, [!answer]);
  return html`
    <${NewsPill} news=${news} onShow=${reload} />
    ${answer?.degraded && html`<${Note} tone="warn"><strong>The search is degraded.</strong> ${answer.degraded}</${Note}>`}
    ${answer?.remark && html`<${Note}>${answer.remark}</${Note}>`}
    ${query
      ? answer && html`<${Verdict} verdict=${answer.verdict} confidence=${answer.confidence} total=${items.length} elapsed=${milliseconds(answer.elapsed_ms)} />`
      : answer && html`<${ListTitle} forgotten=${forgotten} total=${pages.total} />`}
    <${MemoryList} pages=${pages} label=${query ? "Hits" : forgotten ? "Forgotten memories" : "Newest memories"} estimate=${query ? 130 : 84} onChange=${reload}
      empty=${forgotten ? html`<${Empty} title="Nothing is forgotten" icon="trash"><p>Forgotten memories wait here until they are restored or erased.</p></${Empty}>`
        : query || filtered ? html`<${Nothing} filtered=${filtered} />` : html`<${NewStore} />`} />`;
}

export default function SearchScreen() {
  const { query } = useCell(place);
  const asked = query.get("q") ?? "";
  const wanted = query.get("mode") ?? "hybrid";
  const mode = MODES.some(([name]) => name === wanted) ? wanted : "hybrid";
  const filters = useMemo(() => readFilters(query), [query.toString()]);
  const forgotten = !asked && query.get("forgotten") === "true";
  return html`
    <${Screen} title=${asked ? `${asked} · Search` : "Search"} hideTitle wide=${mode === "compare"}>
      <${SearchBox} query=${asked} mode=${mode} />
      <section id="results" tabindex="-1" aria-label="Results">
        ${mode === "compare" && asked
          ? html`<${Compare} query=${asked} filters=${filters} />`
          : html`<${Results} key=${JSON.stringify([asked, mode, filters, forgotten])} query=${asked} forgotten=${forgotten} mode=${mode === "compare" ? "hybrid" : mode} filters=${filters} />`}
      </section>
    </${Screen}>`;
}
