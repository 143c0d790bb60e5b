// Keep the focus: if the control that had it disappears, its neighbour or the control before it gets it.

const MOST_KNOWN = 8;

/** @typedef {{element: HTMLElement, path: string, list: Element | null, index: number}} Known */

/** @param {HTMLElement} element @returns {Known} */
function describe(element) {
  const row = element.closest(".list > [data-index]");
  return { element, path: location.pathname, list: row?.parentElement ?? null, index: Number(row?.getAttribute("data-index")) };
}

/** Find the row that took the place of one that is gone. @param {Known} known @returns {Element | null | undefined} */
function rowFor({ list, index }) {
  const rows = list?.isConnected ? [...list.querySelectorAll(":scope > [data-index]")] : [];
  const last = rows.at(-1);
  const isEnd = Number(last?.getAttribute("data-index")) + 1 === Number(last?.getAttribute("aria-setsize"));
  return rows.find((each) => Number(each.getAttribute("data-index")) === index) ?? (isEnd ? last : null);
}

/** Move the focus of a control that disappears: otherwise Tab and screen readers begin again at the top of the page. */
export function startFocusKeeping() {
  /** @type {Known[]} the controls that had the focus, the latest last */
  let known = [];
  document.addEventListener("focusin", ({ target }) => {
    if (target instanceof HTMLElement) known = [...known.slice(1 - MOST_KNOWN), describe(target)];
  });
  // A click on the page itself takes the focus away on purpose.
  document.addEventListener("pointerdown", ({ target }) => {
    if (target instanceof Element && !target.closest("a, button, input, label, summary, [tabindex]")) known = [];
  });
  new MutationObserver(() => {
    const lost = known.at(-1);
    if (!lost || lost.element.isConnected || document.activeElement !== document.body) return;
    // Another screen gives its heading the focus.
    if (lost.path !== location.pathname) return;
    // A row that was only scrolled out of the window keeps its place.
    if (lost.list?.isConnected && !rowFor(lost)) return;
    for (const each of known.filter(({ path }) => path === lost.path).reverse()) {
      const row = rowFor(each);
      const next = row ? row.querySelector("a, button") : each.element.matches("input[type=search]") ? null : each.element;
      if (next instanceof HTMLElement && next.isConnected) next.focus({ preventScroll: true });
      if (document.activeElement !== document.body) return;
    }
    /** @type {HTMLElement | null} */ (document.querySelector("h1"))?.focus({ preventScroll: true });
  }).observe(document.body, { childList: true, subtree: true });
}
