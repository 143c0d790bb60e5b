// Parts of a whole as one bar.
import { html } from "../core/lib.js";

/** @typedef {{name: string, tone: string, value: number}} Part */

/** @param {{parts: Part[], whole?: number}} props */
export function Stack({ parts, whole = 0 }) {
  const sum = Math.max(whole, parts.reduce((total, each) => total + each.value, 0), 1e-9);
  let x = 0;
  return html`
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-rest" width="100" height="10" />
      ${parts.map((each) => {
        const width = (each.value / sum) * 100;
        const rect = html`<rect key=${each.name} class="bar-${each.tone}" x=${x} width=${width} height="10" />`;
        x += width;
        return rect;
      })}
    </svg>`;
}
