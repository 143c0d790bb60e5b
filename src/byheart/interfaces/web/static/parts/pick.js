// A dialog that finds another memory and gives it back.
import { get, memoryPath, post, useRequest } from "../core/api.js";
import { nameOf } from "../core/format.js";
import { html, useState } from "../core/lib.js";
import { Dialog } from "./dialog.js";
import { ErrorNote } from "./page.js";
import { Badges } from "./rows.js";

/**
 * @param {{title: string, lead: string, without: string, onPick: (memory: any) => void, onClose: () => void}} props
 * `without` is the memory that cannot be picked; memories similar to it come first.
 */
export default function PickMemory({ title, lead, without, onPick, onClose }) {
  const [text, setText] = useState("");
  const [query, setQuery] = useState("");
  const found = useRequest(async (signal) => {
    if (!query) return (await get(memoryPath(without, "/similar"), { limit: 8 }, signal)).similar;
    return (await post("/search", { query, limit: 8, granularity: "coarse" }, signal)).results;
  }, [query]);
  const items = (found.data ?? []).filter((each) => each.memory_id !== without);
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <p>${lead}</p>
      <form class="filter-input" role="search" onSubmit=${(event) => { event.preventDefault(); setQuery(text.trim()); }}>
        <input type="search" aria-label="Find a memory" placeholder="Search for it" value=${text} autocomplete="off" onInput=${(event) => setText(event.target.value)} />
        <button class="button" type="submit">Find</button>
      </form>
      ${found.error && html`<${ErrorNote} error=${found.error} retry=${found.reload} />`}
      <p class="hint pick-hint" role="status">${found.loading ? "Looking…" : query ? `${items.length} found` : items.length ? "Similar memories" : "No similar memory: search for one."}</p>
      <ul class="picks">
        ${items.map((each) => html`
          <li key=${each.memory_id}><button class="menu-item pick" onClick=${() => onPick(each)}>
            <span dir="auto">${nameOf(each)}</span>${each.kind && html`<${Badges} item=${{ kind: each.kind }} />`}
          </button></li>`)}
      </ul>
    </${Dialog}>`;
}
