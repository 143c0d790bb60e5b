// The bar of actions on selected memories.
import { exportAddress } from "../core/actions.js";
import { counted } from "../core/format.js";
import { html } from "../core/lib.js";
import { Icon } from "./icons.js";

/** @param {any[]} items */
const isGone = (items) => items.some((each) => each.forgotten_at);

/** @param {{items: any[], writes: boolean, onForget: () => void, onRestore: () => void, onTag: () => void, onClear: () => void, children?: unknown}} props */
export const BulkBar = ({ items, writes, onForget, onRestore, onTag, onClear, children }) => items.length > 0 && html`
  <div class="bulk" role="region" aria-label="Selected memories">
    <strong role="status">${counted(items.length, "memory", "memories")} selected</strong>
    ${writes && isGone(items) && html`<button class="button small" onClick=${onRestore}><${Icon} name="undo" />Restore</button>`}
    ${writes && !isGone(items) && html`<button class="button small" onClick=${onTag}><${Icon} name="tag" />Tag</button>`}
    ${writes && !isGone(items) && html`<button class="button small" aria-keyshortcuts="#" onClick=${onForget}><${Icon} name="trash" />Forget <kbd aria-hidden="true">#</kbd></button>`}
    ${children}
    <a class="button small" href=${exportAddress(items.map((each) => each.memory_id))} download><${Icon} name="download" />Export</a>
    <button class="button small" onClick=${onClear}>Clear</button>
  </div>`;
