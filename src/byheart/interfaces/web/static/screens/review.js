// Review: one queue of memories that somebody should look at, worked by keyboard.
import { pageOf, usePages } from "../core/api.js";
import { diff } from "../core/diff.js";
import { COMMON_FILTERS, readFilters } from "../core/filters.js";
import { count, counted, moment, nameOf, visible } from "../core/format.js";
import { useKeys } from "../core/keys.js";
import { classes, html, useCell, useEffect, useState } from "../core/lib.js";
import { canWrite, login } from "../core/login.js";
import { addressOf, go, place } from "../core/router.js";
import { exportAddress } from "../core/actions.js";
import { FilterChips } from "../parts/chips.js";
import { Icon } from "../parts/icons.js";
import { WindowedList, useRows } from "../parts/list.js";
import { ListFoot } from "../parts/memory_list.js";
import { Empty, Loading, Note, Screen } from "../parts/page.js";
import { Badges, When } from "../parts/rows.js";
import { untilDone } from "../parts/toast.js";
import { actionsFor, run } from "./review_actions.js";

/** @type {Record<string, [string, string, string]>} the name of each reason, that of one item, and its badge */
const REASONS = {
  secret: ["Secrets", "Secret", "badge-bad"],
  contradiction: ["Contradictions", "Contradiction", "badge-warn"],
  untrusted: ["Untrusted", "Untrusted", "badge-warn"],
  expiring: ["Expiring", "Expiring", "badge-warn"],
  duplicate: ["Near-duplicates", "Near-duplicate", ""],
  unused: ["Unused", "Unused", ""],
};

/** The memory that stays if an item has several: the newest, unless another one was chosen. @param {any} item @param {Map<string, string>} picks */
const keptOf = (item, picks) => item.memories.find((each) => each.memory_id === picks.get(item.item_id))
  ?? item.memories.reduce((best, each) => (each.updated_at > best.updated_at ? each : best));

/** A text with the words marked that another one does not have. @param {{text: string, other: string | undefined}} props */
const Apart = ({ text, other }) => (other === undefined ? visible(text) : diff(other, text)
  .filter((piece) => piece.kind !== "gone")
  .map((piece, at) => (piece.kind === "new" && piece.text.trim() ? html`<mark key=${at}>${visible(piece.text)}</mark>` : visible(piece.text))));

/** The sentences of the reason are left out where the cards show them. @param {any} item */
const whyOf = (item) => (item.memories.length > 1 && item.memories.every((each) => item.why.includes(`“${each.summary}”`))
  ? `they ${item.why.slice(item.why.lastIndexOf("”") + 1).trim()}`
  : item.why);

/** @type {Record<string, string>} */
const origins = { user: "from a user", agent: "from an agent", tool: "from a tool", file: "from a file", import: "from an import" };

/** The text that a memory is compared with: that of the one that stays. @param {any} item @param {any} memory @param {any} kept */
const otherOf = (item, memory, kept) => (memory === kept ? item.memories.find((each) => each !== kept) : kept)?.summary;

/** @param {{item: any, memory: any, kept: any, writes: boolean, onPick: () => void}} props */
const Card = ({ item, memory, kept, writes, onPick }) => html`
  <div class=${classes("review-card", item.memories.length > 1 && kept === memory && "review-kept")}>
    <a class="hit-name" href=${addressOf("memory", [memory.memory_id])} dir="auto">${memory.title ? nameOf(memory) : html`<${Apart} text=${memory.summary} other=${otherOf(item, memory, kept)} />`}</a>
    ${memory.title && html`<p class="snippet" dir="auto"><${Apart} text=${memory.summary} other=${otherOf(item, memory, kept)} /></p>`}
    <div class="hit-foot">
      <${Badges} item=${memory} />
      <span>${origins[memory.origin] ?? visible(memory.origin)}, <${When} at=${memory.updated_at} />,${" "}
        ${memory.access_count ? `used ${counted(memory.access_count, "time")}` : "never used"}${memory.expires_at && html`, expires ${moment(memory.expires_at)}`}</span>
    </div>
    ${writes && item.memories.length > 1 && html`
      <label class="review-pick"><input type="radio" name=${item.item_id} aria-keyshortcuts=${item.memories.indexOf(memory) + 1} checked=${kept === memory} onChange=${onPick} /> This one stays <kbd aria-hidden="true">${item.memories.indexOf(memory) + 1}</kbd></label>`}
  </div>`;

/** @param {{item: any, kept: any, chosen: boolean, writes: boolean, onPick: (id: string) => void, onToggle: () => void, act: (name: string) => void}} props */
function Item({ item, kept, chosen, writes, onPick, onToggle, act }) {
  const [, name, tone] = REASONS[item.reason] ?? ["", item.reason, ""];
  return html`
    <div class="review-item">
      <div class="review-head">
        ${writes && html`<input type="checkbox" checked=${chosen} aria-keyshortcuts="x" aria-label="Select: ${nameOf(item.memories[0])}" onChange=${onToggle} />`}
        <span class=${classes("badge", tone)}>${name}</span><span class="unseen">: </span><span class="review-why" dir="auto">${visible(whyOf(item))}</span>
      </div>
      <div class=${classes("review-cards", item.memories.length > 1 && "review-pair")}>
        ${item.memories.map((memory) => html`<${Card} key=${memory.memory_id} item=${item} memory=${memory} kept=${kept} writes=${writes} onPick=${() => onPick(memory.memory_id)} />`)}
      </div>
      ${writes && html`
        <div class="review-actions">
          ${actionsFor([item]).map(([key, action]) => html`
            <button key=${key} class="button small" title=${action.help} aria-keyshortcuts=${action.key} onClick=${() => act(key)}>${action.label} <kbd aria-hidden="true">${action.key}</kbd></button>`)}
        </div>`}
    </div>`;
}

/** Actions on all selected items. @param {{items: any[], act: (name: string) => void, onClear: () => void}} props */
const Bulk = ({ items, act, onClear }) => items.length > 0 && html`
  <div class="bulk" role="region" aria-label="Selected items">
    <strong role="status">${counted(items.length, "item")} selected</strong>
    ${actionsFor(items).map(([key, action]) => html`
      <button key=${key} class="button small" aria-keyshortcuts=${action.key} onClick=${() => act(key)}>${action.label} <kbd aria-hidden="true">${action.key}</kbd></button>`)}
    <a class="button small" href=${exportAddress([...new Set(items.flatMap((item) => item.memories.map((each) => each.memory_id)))])} download><${Icon} name="download" />Export</a>
    <button class="button small" onClick=${onClear}>Clear</button>
  </div>`;

/** @param {{counts: Record<string, number>, reason: string, filters: Record<string, any>}} props */
const Tabs = ({ counts, reason, filters }) => html`
  <nav class="tabs" aria-label="Reasons">
    ${[["", "All"], ...Object.entries(REASONS).map(([key, [name]]) => [key, name])].map(([key, name]) => html`
      <a key=${key} href=${addressOf("review", [], { ...filters, reason: key })} aria-current=${reason === key ? "page" : undefined}>${name} <span class="hint">${count(key ? counts[key] ?? 0 : Object.values(counts).reduce((sum, each) => sum + each, 0))}</span></a>`)}
  </nav>`;

export default function ReviewScreen() {
  const { query } = useCell(place);
  const reason = query.get("reason") ?? "";
  const filters = readFilters(query, COMMON_FILTERS);
  const shown = JSON.stringify([reason, filters]);
  const pages = usePages(pageOf("/review", "items", { reason, ...filters }), [shown], 20);
  const { items, answer } = pages;
  const rows = useRows(items.length);
  const [picks, setPicks] = useState(/** @type {Map<string, string>} */ (new Map()));
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  useEffect(() => { setChosen(new Set()); rows.setActive(0); }, [shown]);
  const writes = Boolean(useCell(login) && canWrite());
  const selected = items.filter((each) => chosen.has(each.item_id));
  const active = items[rows.active];
  const pick = (item, id) => setPicks((before) => new Map(before).set(item.item_id, id));
  const toggle = (item) => setChosen((before) => {
    const next = new Set(before);
    if (!next.delete(item.item_id)) next.add(item.item_id);
    return next;
  });
  const act = async (name, these, at = rows.active) => {
    const jobs = these.map((item) => ({ item, kept: keptOf(item, picks) }));
    // The next item takes the place of the finished one at once, so the keyboard goes on.
    if (jobs.length === 1) {
      pages.change((all) => all.filter((each) => each !== these[0]));
      rows.focus(at);
    }
    const done = await untilDone(run(name, jobs, pages.refresh));
    if (done) setChosen(new Set());
    // Other items may have changed too: a memory can be part of several.
    if (done || jobs.length === 1) pages.refresh();
  };
  const these = selected.length ? selected : active ? [active] : [];
  useKeys({
    ...rows.keys,
    ...(active && { Enter: { label: "Open the memory", hidden: true, run: () => go(addressOf("memory", [keptOf(active, picks).memory_id])) } }),
    ...(active && writes && { x: { label: "Select", run: () => toggle(active) } }),
    ...(active && active.memories.length > 1 && writes && Object.fromEntries(active.memories.slice(0, 9).map((memory, at) => [String(at + 1), { label: `Memory ${at + 1} stays`, run: () => pick(active, memory.memory_id) }]))),
    ...(writes && Object.fromEntries(actionsFor(these).map(([name, action]) => [action.key, { label: action.label, run: () => void act(name, these) }]))),
  });
  const left = pages.total ?? 0;
  const filtered = reason || Object.keys(filters).length > 0;
  return html`
    <${Screen} title="Review" lead=${answer ? (left ? `${counted(left, "item")} to look at` : "Nothing to look at") : null}>
      <div class="screen-filters"><${FilterChips} names=${COMMON_FILTERS} /></div>
      ${answer && html`<${Tabs} counts=${answer.counts} reason=${reason} filters=${filters} />`}
      ${answer?.degraded && html`<${Note} tone="warn">${answer.degraded}</${Note}>`}
      ${!answer && !pages.error && html`<${Loading} label="Looking for memories that need a look" />`}
      ${answer && !items.length && !pages.loading && html`
        <${Empty} title="All done" icon="check"><p>${filtered ? html`Nothing here. <a href="/ui/review">See the whole queue</a>.` : "No near-duplicates, contradictions, expiring, unused or untrusted memories, and no secrets."}</p></${Empty}>`}
      <${WindowedList} items=${items} keyOf=${(each) => each.item_id} label="To review" rows=${rows} total=${pages.total} estimate=${170} onEnd=${pages.more}
        row=${(item, at) => html`<${Item} item=${item} kept=${keptOf(item, picks)} chosen=${chosen.has(item.item_id)} writes=${writes}
          onPick=${(id) => { rows.setActive(at); pick(item, id); }} onToggle=${() => { rows.setActive(at); toggle(item); }}
          act=${(name) => { rows.setActive(at); void act(name, [item], at); }} />`} />
      <${ListFoot} pages=${pages} />
      ${writes && html`<${Bulk} items=${selected} act=${(name) => void act(name, selected)} onClear=${() => setChosen(new Set())} />`}
    </${Screen}>`;
}
