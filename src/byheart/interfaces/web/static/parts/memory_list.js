// Memories as rows that the keyboard can work on: open, edit, select, tag, forget.
import { bringBack, forget, tag } from "../core/actions.js";
import { nameOf } from "../core/format.js";
import { useKeys } from "../core/keys.js";
import { html, useCell, useMemo, useState } from "../core/lib.js";
import { canWrite, login } from "../core/login.js";
import { addressOf, go } from "../core/router.js";
import { BulkBar } from "./bulk.js";
import { WindowedList, useRows } from "./list.js";
import { ErrorNote, Loading } from "./page.js";
import { HitRow } from "./rows.js";

/** Show what follows the rows of a list: its errors, and the way to the next page. @param {{pages: import("../core/api.js").Pages<any>}} props */
export const ListFoot = ({ pages }) => html`
  ${pages.loading && pages.items.length > 0 && html`<div class="list-foot" role="status">Loading…</div>`}
  ${pages.error && html`<${ErrorNote} error=${pages.error} retry=${pages.items.length ? pages.more : pages.reload} />`}
  ${pages.hasMore && !pages.loading && !pages.error && html`<div class="list-foot"><button class="button" onClick=${pages.more}>Show more</button></div>`}`;

/** The key of a row: hits of one memory are different passages. */
export const keyOf = (item) => item.chunk_id ?? item.memory_id;

/** @template T @param {Map<string, T> | Set<T>} before @returns {any} */
const copyOf = (before) => new /** @type {any} */ (before.constructor)(before);

/**
 * @param {{pages: import("../core/api.js").Pages<any>, label: string, empty?: unknown, estimate?: number, onChange?: () => void}} props
 * `onChange` loads the list again after an action.
 */
export function MemoryList({ pages, label, empty, estimate = 84, onChange = pages.reload }) {
  const { items } = pages;
  const rows = useRows(items.length);
  const [chosen, setChosen] = useState(/** @type {Map<string, any>} */ (new Map()));
  const [opened, setOpened] = useState(/** @type {Set<string>} */ (new Set()));
  const writes = useCell(login) && canWrite();
  const best = useMemo(() => Math.max(0, ...items.map((each) => each.score ?? 0)), [items]);
  const active = items[rows.active];
  const selected = [...chosen.values()];
  const toggle = (item) => setChosen((before) => {
    const next = copyOf(before);
    if (!next.delete(item.memory_id)) next.set(item.memory_id, item);
    return next;
  });
  const toggleWhy = (item) => setOpened((before) => {
    const next = copyOf(before);
    if (!next.delete(keyOf(item))) next.add(keyOf(item));
    return next;
  });
  const forgetThese = async (these) => {
    const ids = [...new Set(these.map((each) => each.memory_id))];
    if (await forget(ids, onChange, these.map(nameOf))) setChosen(new Map());
  };
  const bringBackThese = async (these) => {
    await bringBack(these.map((each) => each.memory_id), onChange);
    setChosen(new Map());
  };
  const open = (query = {}) => active && go(addressOf("memory", [active.memory_id], query));
  const forgetNow = () => {
    const these = (selected.length ? selected : active ? [active] : []).filter((each) => !each.forgotten_at);
    if (these.length) void forgetThese(these);
  };
  useKeys({
    ...rows.keys,
    Enter: { label: "Open the memory", hidden: true, run: () => open() },
    x: { label: "Select", run: () => active && toggle(active) },
    ...(items[0]?.explanation && { w: { label: "Show why", run: () => active && toggleWhy(active) } }),
    ...(writes && { e: { label: "Edit", run: () => open({ edit: 1 }) } }),
    ...(writes && { "#": { label: "Forget", run: forgetNow } }),
  });
  if (!pages.answer && !pages.error) return html`<${Loading} label=${label} />`;
  return html`
    ${!items.length && !pages.error && empty}
    <${WindowedList} items=${items} keyOf=${keyOf} label=${label} rows=${rows} total=${pages.total} estimate=${estimate} onEnd=${pages.more}
      row=${(item, at) => html`
        <${HitRow} item=${item} best=${best} chosen=${chosen.has(item.memory_id)} opened=${opened.has(keyOf(item))} writes=${writes}
          onToggle=${() => { rows.setActive(at); toggle(item); }} onWhy=${() => toggleWhy(item)}
          onForget=${() => void forgetThese([item])} onRestore=${() => void bringBackThese([item])} />`} />
    <${ListFoot} pages=${pages} />
    <${BulkBar} items=${selected} writes=${writes} onRestore=${() => void bringBackThese(selected)} onForget=${() => void forgetThese(selected)}
      onTag=${() => void tag(selected, onChange)} onClear=${() => setChosen(new Map())}>
      <button class="button small" onClick=${() => setChosen(new Map(items.map((each) => [each.memory_id, each])))}>Select all shown</button>
    </${BulkBar}>`;
}
