// The frame of a screen: its heading, and what it shows while it loads, fails or is empty.
import { html, useEffect, useRef } from "../core/lib.js";
import { Icon } from "./icons.js";
import { announce } from "./toast.js";

/** @typedef {import("../core/api.js").ApiError} ApiError */

/**
 * A screen with its heading. The heading gets the focus when the screen appears.
 * @param {{title: string, lead?: unknown, actions?: unknown, hideTitle?: boolean, wide?: boolean, takeFocus?: boolean, children?: unknown}} props
 */
export function Screen({ title, lead, actions, hideTitle, wide, takeFocus = true, children }) {
  const heading = useRef(/** @type {HTMLHeadingElement | null} */ (null));
  useEffect(() => {
    document.title = `${title} · Byheart`;
  }, [title]);
  useEffect(() => {
    // The first screen leaves the focus at the start of the document.
    if (takeFocus && document.documentElement.dataset.moved) heading.current?.focus({ preventScroll: true });
    document.documentElement.dataset.moved = "yes";
  }, []);
  return html`
    <div class=${wide ? "screen screen-wide" : "screen"}>
      <header class=${hideTitle ? "unseen" : "screen-head"}>
        <div class="screen-title">
          <h1 ref=${heading} tabindex="-1">${title}</h1>
          ${lead && html`<p class="lead">${lead}</p>`}
        </div>
        ${actions && html`<div class="screen-actions">${actions}</div>`}
      </header>
      ${children}
    </div>`;
}

/** Rows in the shape of what is to come. @param {{rows?: number, label?: string}} props */
export const Loading = ({ rows = 4, label = "Loading" }) => html`
  <div class="skeleton" role="status">
    <span class="unseen">${label}…</span>
    ${Array.from({ length: rows }, (_, at) => html`<div key=${at} class="skeleton-row" aria-hidden="true"><i></i><i></i></div>`)}
  </div>`;

/** An error with what to do next. @param {{error: ApiError, retry?: () => void}} props */
export const ErrorNote = ({ error, retry }) => html`
  <div class="note note-bad" role="alert">
    <${Icon} name="warning" />
    <div>
      <strong>${error.title}</strong>
      <p class="sentence">${error.detail}</p>
      ${error.hint && html`<p class="hint sentence">${error.hint}</p>`}
      ${error.kind === "missing"
        ? html`<a class="button small" href="/">Back to the search</a>`
        : retry && html`<button class="button small" onClick=${retry}>Try again</button>`}
    </div>
  </div>`;

/** What stands in for the answer of a request: its error, or rows in the shape of what is to come. @param {{request: {error: ApiError | null, reload: () => void}, rows?: number, label?: string}} props */
export const Waiting = ({ request, ...look }) => (request.error
  ? html`<${ErrorNote} error=${request.error} retry=${request.reload} />`
  : html`<${Loading} ...${look} />`);

/** A remark of the server, such as a degraded search. @param {{children?: unknown, tone?: "info"|"warn"}} props */
export const Note = ({ children, tone = "info" }) => html`
  <div class=${`note note-${tone}`} role="note">
    <${Icon} name=${tone === "warn" ? "warning" : "info"} /><div>${children}</div>
  </div>`;

/** A place without content, and how to fill it. @param {{title: string, icon?: string, children?: unknown}} props */
export const Empty = ({ title, icon = "layers", children }) => html`
  <div class="empty">
    <${Icon} name=${icon} />
    <h2>${title}</h2>
    <div class="prose">${children}</div>
  </div>`;

/** The button that shows changes: lists do not jump by themselves. @param {{news: {count: number, more: boolean, clear: () => void}, onShow: () => void}} props */
export function NewsPill({ news, onShow }) {
  const isNews = news.count > 0 || news.more;
  useEffect(() => {
    if (isNews) announce("There are new memories: the button above the list shows them.");
  }, [isNews]);
  return html`
    <div class="news">
      ${isNews && html`<button class="pill" onClick=${() => { news.clear(); onShow(); }}>${news.count}${news.more ? "+" : ""} new</button>`}
    </div>`;
}

/** A button with an icon and the key that does the same. @param {any} props */
export const Action = ({ icon, children, hint, ...rest }) => html`
  <button class="button" aria-keyshortcuts=${hint} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}<span>${children}</span>${hint && html`<kbd aria-hidden="true">${hint}</kbd>`}
  </button>`;
