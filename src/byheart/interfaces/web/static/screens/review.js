// Review: one queue of memories that somebody should look at, worked by keyboard.
import { get, usePages } from "../core/api.js";
import { count, counted, moment, nameOf, visible } from "../core/format.js";
import { useKeys } from "../core/keys.js";
import { classes, html, useCell, useEffect, useState } from "../core/lib.js";
import { canWrite, login } from "../core/login.js";
import { addressOf, go, place } from "../core/router.js";
import { exportAddress } from "../core/actions.js";
import { Icon } from "../parts/icons.js";
import { WindowedList, useRows } from "../parts/list.js";
import { ListFoot } from "../parts/memory_list.js";
import { Empty, Loading, Note, Screen } from "../parts/page.js";
import { Badges, When } from "../parts/rows.js";
import { ACTIONS, run } from "./review_actions.js";

/** @type {Record<string, [string, string]>} the name of each reason, and its badge */
const REASONS = {
  duplicate: ["Near-duplicates", ""],
  contradiction: ["Contradictions", "badge-warn"],
  expiring: ["Expiring", "badge-warn"],
  unused: ["Unused", ""],
  untrusted: ["Untrusted origin", "badge-warn"],
  secret: ["Secrets", "badge-bad"],
};

/** The memory that stays if an item has several: the newest, unless another one was chosen. @param {any} item @param {Map<string, string>} picks */
const keptOf = (item, picks) => item.memories.find((each) => each.memory_id === picks.get(item.item_id))
  ?? item.memories.reduce((best, each) => (each.updated_at > best.updated_at ? each : best));

/** @param {{item: any, memory: any, kept: any, writes: boolean, onPick: () => void}} props */
const Card = ({ item, memory, kept, writes, onPick }) => html`
  <div class=${classes("review-card", item.memories.length > 1 && kept === memory && "review-kept")}>
    <a class="hit-name" href=${addressOf("memory", [memory.memory_id])} dir="auto">${nameOf(memory)}</a>
    ${memory.title && html`<p class="snippet" dir="auto">${visible(memory.summary)}</p>`}
    <div class="hit-foot">
      <${Badges} item=${memory} />
      <span>${visible(memory.origin)}, <${When} at=${memory.updated_at} /></span>
      ${memory.expires_at && html`<span>expires ${moment(memory.expires_at)}</span>`}
      <span>${memory.access_count ? `used ${counted(memory.access_count, "time")}` : "never used"}</span>
    </div>
    ${writes && item.memories.length > 1 && html`
      <label class="review-pick"><input type="radio" name=${item.item_id} checked=${kept === memory} onChange=${onPick} /> This one stays</label>`}
  </div>`;

/** @param {{item: any, kept: any, chosen: boolean, writes: boolean, onPick: (id: string) => void, onToggle: () => void, act: (name: string) => void}} props */
function Item({ item, kept, chosen, writes, onPick, onToggle, act }) {
  const [name, tone] = REASONS[item.reason] ?? [item.reason, ""];
  return html`
    <article class="review-item">
      <div class="review-head">
        ${writes && html`<input type="checkbox" checked=${chosen} aria-label="Select: ${nameOf(item.memories[0])}" onChange=${onToggle} />`}
        <span class=${classes("badge", tone)}>${name}</span><span dir="auto">${visible(item.why)}</span>
      </div>
      <div class=${classes("review-cards", item.memories.length > 1 && "review-pair")}>
        ${item.memories.map((memory) => html`<${Card} key=${memory.memory_id} item=${item} memory=${memory} kept=${kept} writes=${writes} onPick=${() => onPick(memory.memory_id)} />`)}
      </div>
      ${writes && html`
        <div class="review-actions">
          ${Object.entries(ACTIONS).filter(([, action]) => action.fits(item)).map(([key, action]) => html`
            <button key=${key} class="button small" title=${action.help} onClick=${() => act(key)}>${action.label(item)} <kbd>${action.key}</kbd></button>`)}
        </div>`}
    </article>`;
}

/** Actions on all selected items. @param {{items: any[], act: (name: string) => void, onClear: () => void}} props */
const Bulk = ({ items, act, onClear }) => items.length > 0 && html`
  <div class="bulk" role="region" aria-label="Selected items">
    <strong role="status">${counted(items.length, "item")} selected</strong>
    ${Object.entries(ACTIONS).filter(([, action]) => items.every(action.fits)).map(([key, action]) => html`
      <button key=${key} class="button small" onClick=${() => act(key)}>${action.many} <kbd>${action.key}</kbd></button>`)}
    <a class="button small" href=${exportAddress([...new Set(items.flatMap((item) => item.memories.map((each) => each.memory_id)))])} download><${Icon} name="download" />Export</a>
    <button class="button small" onClick=${onClear}>Clear</button>
  </div>`;

/** @param {{counts: Record<string, number>, reason: string}} props */
const Tabs = ({ counts, reason }) => html`
  <nav class="tabs" aria-label="Reasons">
    ${[["", "All"], ...Object.entries(REASONS).map(([key, [name]]) => [key, name])].map(([key, name]) => html`
      <a key=${key} href=${addressOf("review", [], { reason: key })} aria-current=${reason === key ? "page" : undefined}>${name} <span class="hint">${count(key ? counts[key] ?? 0 : Object.values(counts).reduce((sum, each) => sum + each, 0))}</span></a>`)}
  </nav>`;

export default function ReviewScreen() {
  const { query } = useCell(place);
  const reason = query.get("reason") ?? "";
  const pages = usePages(async (offset, limit, signal) => {
    const answer = await get("/review", { reason, limit, offset }, signal);
    return { items: answer.items, total: answer.total, hasMore: answer.has_more, answer };
  }, [reason], 20);
  const { items, answer } = pages;
  const rows = useRows(items.length);
  const [picks, setPicks] = useState(/** @type {Map<string, string>} */ (new Map()));
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  useEffect(() => { setChosen(new Set()); rows.setActive(-1); }, [reason]);
  const writes = Boolean(useCell(login) && canWrite());
  const selected = items.filter((each) => chosen.has(each.item_id));
  const active = items[rows.active];
  const pick = (item, id) => setPicks((before) => new Map(before).set(item.item_id, id));
  const toggle = (item) => setChosen((before) => {
    const next = new Set(before);
    if (!next.delete(item.item_id)) next.add(item.item_id);
    return next;
  });
  const act = async (name, these) => {
    const jobs = these.filter(ACTIONS[name].fits).map((item) => ({ item, kept: keptOf(item, picks) }));
    if (!jobs.length || !await run(name, jobs, pages.reload)) return;
    const done = new Set(jobs.map(({ item }) => item.item_id));
    setChosen(new Set());
    // The next item takes the place of the finished one, so the keyboard goes on.
    pages.change((all) => all.filter((each) => !done.has(each.item_id)));
    if (items.length === done.size) pages.reload();
  };
  const keys = Object.entries(ACTIONS).filter(([, action]) => writes && (selected.length ? selected.every(action.fits) : active && action.fits(active)));
  useKeys({
    ...rows.keys,
    ...(active && { Enter: { label: "Open the memory", hidden: true, run: () => go(addressOf("memory", [keptOf(active, picks).memory_id])) } }),
    ...(active && writes && { x: { label: "Select", run: () => toggle(active) } }),
    ...(active && active.memories.length > 1 && writes && Object.fromEntries(active.memories.slice(0, 9).map((memory, at) => [String(at + 1), { label: `Let the ${at + 1}. one stay`, run: () => pick(active, memory.memory_id) }]))),
    ...Object.fromEntries(keys.map(([name, action]) => [action.key, { label: action.many, run: () => void act(name, selected.length ? selected : [active]) }])),
  });
  const left = (pages.total ?? 0);
  return html`
    <${Screen} title="Review" lead=${answer ? (left ? `${counted(left, "item")} to look at` : "Nothing to look at") : null}>
      ${answer && html`<${Tabs} counts=${answer.counts} reason=${reason} />`}
      ${answer?.degraded && html`<${Note} tone="warn">${answer.degraded}</${Note}>`}
      ${!answer && !pages.error && html`<${Loading} label="Looking for what needs a look" />`}
      ${answer && !items.length && !pages.loading && html`
        <${Empty} title="All done" icon="check"><p>${reason ? html`Nothing here. <a href="/ui/review">See all reasons</a>.` : "No near-duplicates, contradictions, expiring, unused or untrusted memories, and no secrets."}</p></${Empty}>`}
      <${WindowedList} items=${items} keyOf=${(each) => each.item_id} label="To review" active=${rows.active} total=${pages.total} estimate=${170} onEnd=${pages.more}
        row=${(item, at) => html`<${Item} item=${item} kept=${keptOf(item, picks)} chosen=${chosen.has(item.item_id)} writes=${writes}
          onPick=${(id) => { rows.setActive(at); pick(item, id); }} onToggle=${() => { rows.setActive(at); toggle(item); }} act=${(name) => void act(name, [item])} />`} />
      <${ListFoot} pages=${pages} />
      ${writes && html`<${Bulk} items=${selected} act=${(name) => void act(name, selected)} onClear=${() => setChosen(new Set())} />`}
    </${Screen}>`;
}
