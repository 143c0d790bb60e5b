// Rendered Markdown: the only HTML that this page takes from the server, which has sanitised it.
import { html, useEffect, useRef } from "../core/lib.js";

/** @type {{createHTML: (text: string) => any} | null} */
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("byheart", { createHTML: (text) => text }) ?? null;

/** @param {{text: string}} props */
export function Rendered({ text }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (box.current) box.current.innerHTML = policy ? policy.createHTML(text) : text;
  }, [text]);
  return html`<div class="rendered" ref=${box} dir="auto"></div>`;
}
