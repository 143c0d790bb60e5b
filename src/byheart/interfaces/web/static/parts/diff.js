// A difference of two texts, readable without colours as well.
import { diff } from "../core/diff.js";
import { visible } from "../core/format.js";
import { html } from "../core/lib.js";

const MOST_CHARS = 20_000;
const CONTEXT_CHARS = 200;

/** Shorten a long part that is the same in both. @param {string} text */
function fold(text) {
  if (text.length <= 2 * CONTEXT_CHARS + 100) return visible(text);
  return `${visible(text.slice(0, CONTEXT_CHARS))} ⋯ ${visible(text.slice(-CONTEXT_CHARS))}`;
}

/** @param {string} text */
const cut = (text) => visible(text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)} ⋯` : text);

/** @param {{before: string, after: string}} props */
export const Diff = ({ before, after }) => html`
  <pre class="diff" dir="auto">${diff(before, after).map((piece, at) => {
    if (piece.kind === "same") return fold(piece.text);
    return piece.kind === "gone" ? html`<del key=${at}>${cut(piece.text)}</del>` : html`<ins key=${at}>${cut(piece.text)}</ins>`;
  })}</pre>`;
