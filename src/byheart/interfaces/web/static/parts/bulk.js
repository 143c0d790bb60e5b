// The bar of actions on selected memories.
import { exportAddress } from "../core/actions.js";
import { counted } from "../core/format.js";
import { html } from "../core/lib.js";
import { Icon } from "./icons.js";

/** @param {{items: any[], writes: boolean, onForget: () => void, onTag: () => void, onClear: () => void, children?: unknown}} props */
export const BulkBar = ({ items, writes, onForget, onTag, onClear, children }) => items.length > 0 && html`
  <div class="bulk" role="region" aria-label="Selected memories">
    <strong role="status">${counted(items.length, "memory", "memories")} selected</strong>
    ${writes && html`<button class="button small" onClick=${onTag}><${Icon} name="tag" />Tag</button>`}
    ${writes && html`<button class="button small" onClick=${onForget}><${Icon} name="trash" />Forget <kbd>#</kbd></button>`}
    ${children}
    <a class="button small" href=${exportAddress(items.map((each) => each.memory_id))} download><${Icon} name="download" />Export</a>
    <button class="button small" onClick=${onClear}>Clear</button>
  </div>`;
