// Long lists: only the rows near the window are in the document.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../core/lib.js";
import { Icon } from "./icons.js";

const MARGIN_PX = 800;

/** @typedef {{active: number, setActive: (at: number) => void, focus: (at: number) => void, move: (step: number) => void, keys: import("../core/keys.js").KeyMap}} Rows */

/** The buttons of the keys `j` and `k`; they stay in view while the list scrolls. @param {{rows: Rows, last: number}} props */
const Steps = ({ rows, last }) => html`
  <div class="steps" role="group" aria-label="Move through the list">
    <button class="icon-button" aria-label="Previous" title="Previous (k)" aria-keyshortcuts="k" disabled=${rows.active <= 0} onClick=${() => rows.move(-1)}><${Icon} name="up" /></button>
    <button class="icon-button" aria-label="Next" title="Next (j)" aria-keyshortcuts="j" disabled=${rows.active >= last} onClick=${() => rows.move(1)}><${Icon} name="down" /></button>
  </div>`;

/**
 * A list of rows of any height that scrolls with the page. `rows` knows the row that the keyboard
 * is at; it is scrolled into view when it changes.
 * @template T
 * @param {{items: T[], keyOf: (item: T) => string, row: (item: T, index: number) => unknown,
 *   estimate?: number, label: string, rows?: Rows, total?: number | null, onEnd?: () => void}} props
 */
export function WindowedList({ items, keyOf, row, estimate = 96, label, rows, total, onEnd }) {
  const active = rows?.active ?? -1;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const heights = useRef(/** @type {Map<string, number>} */ (new Map()));
  const [range, setRange] = useState({ from: 0, to: Math.min(items.length, 30), measured: 0 });
  const state = useRef({ items, keyOf, onEnd });
  state.current = { items, keyOf, onEnd };

  const heightOf = (item) => heights.current.get(keyOf(item)) ?? estimate;

  const settle = () => {
    if (!box.current) return;
    const now = state.current;
    const above = -box.current.getBoundingClientRect().top - MARGIN_PX;
    const below = above + innerHeight + 2 * MARGIN_PX;
    let at = 0;
    let y = 0;
    const height = (item) => heights.current.get(now.keyOf(item)) ?? estimate;
    while (at < now.items.length && y + height(now.items[at]) < above) y += height(now.items[at++]);
    const from = at;
    while (at < now.items.length && y < below) y += height(now.items[at++]);
    const to = at;
    setRange((before) => (before.from === from && before.to === to ? before : { ...before, from, to }));
    if (to >= now.items.length) now.onEnd?.();
  };

  useEffect(() => {
    let waiting = 0;
    const later = () => {
      waiting ||= requestAnimationFrame(() => { waiting = 0; settle(); });
    };
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    return () => {
      cancelAnimationFrame(waiting);
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
    };
  }, []);
  useEffect(settle, [items, range.measured]);

  useLayoutEffect(() => {
    let changed = false;
    for (const element of box.current?.querySelectorAll(":scope > [data-key]") ?? []) {
      const key = /** @type {HTMLElement} */ (element).dataset.key ?? "";
      const height = element.getBoundingClientRect().height;
      if (Math.abs((heights.current.get(key) ?? 0) - height) > 0.5) {
        heights.current.set(key, height);
        changed = true;
      }
    }
    if (changed) setRange((before) => ({ ...before, measured: before.measured + 1 }));
  });

  useEffect(() => {
    if (active < 0 || !box.current || active >= items.length) return;
    const shown = box.current.querySelector(`:scope > [data-index="${active}"]`);
    if (shown) {
      shown.scrollIntoView({ block: "nearest" });
      return;
    }
    let y = box.current.getBoundingClientRect().top + scrollY;
    for (let at = 0; at < active; at += 1) y += heightOf(items[at]);
    scrollTo(0, y - innerHeight / 3);
  }, [active]);

  const to = Math.min(range.to, items.length);
  const from = Math.min(range.from, to);
  let before = 0;
  for (let at = 0; at < from; at += 1) before += heightOf(items[at]);
  let after = 0;
  for (let at = to; at < items.length; at += 1) after += heightOf(items[at]);
  return html`
    <div class="list" role="list" aria-label=${label} ref=${box} style=${{ paddingTop: `${before}px`, paddingBottom: `${after}px` }}>
      ${items.slice(from, to).map((item, at) => html`
        <div role="listitem" key=${keyOf(item)} data-key=${keyOf(item)} data-index=${from + at}
          aria-setsize=${total ?? items.length} aria-posinset=${from + at + 1}
          class=${from + at === active ? "row row-active" : "row"}>
          ${row(item, from + at)}
        </div>`)}
    </div>
    ${rows && items.length > 0 && html`<${Steps} rows=${rows} last=${items.length - 1} />`}`;
}

/**
 * Move through a list with the keyboard: the active row, and the keys `j` and `k`.
 * @param {number} length
 * @returns {Rows}
 */
export function useRows(length) {
  const [active, setActive] = useState(-1);
  const at = Math.min(active, length - 1);
  /** Give a row the focus; a row that is far away is first scrolled into the document. @param {number} row @param {number} [tries] */
  const focus = (row, tries = 30) => void requestAnimationFrame(() => {
    const link = document.querySelector(`.list > [data-index="${row}"] a, .list > [data-index="${row}"] button`);
    if (link instanceof HTMLElement) link.focus({ preventScroll: true });
    else if (tries) focus(row, tries - 1);
  });
  /** @param {number} step */
  const move = (step) => {
    const next = Math.max(0, Math.min(length - 1, at + step));
    setActive(length ? next : -1);
    focus(next);
  };
  return {
    active: at,
    setActive,
    focus,
    move,
    keys: {
      j: { label: "Next", run: () => move(1) },
      k: { label: "Previous", run: () => move(-1) },
    },
  };
}
