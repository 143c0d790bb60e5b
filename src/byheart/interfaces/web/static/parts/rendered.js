// Rendered Markdown: the only HTML that this page takes from the server, which has sanitised it.
import { classes, html, useEffect, useRef } from "../core/lib.js";

/** @type {{createHTML: (text: string) => any} | null} */
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("byheart", { createHTML: (text) => text }) ?? null;

/** Let a wide table scroll by itself, by keyboard too. @param {HTMLTableElement} table */
function frame(table) {
  const box = document.createElement("div");
  box.className = "table-frame";
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Table");
  table.replaceWith(box);
  box.append(table);
}

/** `plain` shows a text that is neither Markdown nor code. @param {{text: string, plain?: boolean}} props */
export function Rendered({ text, plain }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!box.current) return;
    box.current.innerHTML = policy ? policy.createHTML(text) : text;
    box.current.querySelectorAll("table").forEach(frame);
  }, [text]);
  return html`<div class=${classes("rendered", plain && "rendered-plain")} ref=${box} dir="auto"></div>`;
}
