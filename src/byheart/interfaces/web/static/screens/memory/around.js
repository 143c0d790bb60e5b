// What belongs to a memory: its chunks, similar memories, and the contexts that it was part of.
import { get, memoryPath, pageOf, usePages, useRequest } from "../../core/api.js";
import { count, counted, nameOf, percent, shorten, visible } from "../../core/format.js";
import { html } from "../../core/lib.js";
import { addressOf } from "../../core/router.js";
import { lines } from "../../parts/hits.js";
import { WindowedList } from "../../parts/list.js";
import { Empty, Note, Waiting } from "../../parts/page.js";
import { When } from "../../parts/rows.js";

const MOST_CHARS = 4000;
// Below it, memories have little more in common than their language.
const LEAST_SIMILARITY = 0.35;

/** @param {{memory: any}} props */
export function Chunks({ memory }) {
  const pages = usePages(pageOf(memoryPath(memory.memory_id, "/chunks"), "chunks", {}), [memory.memory_id, memory.version]);
  if (pages.error || !pages.answer) return html`<${Waiting} request=${pages} />`;
  return html`
    <p class="hint tab-hint">A search finds and ranks these passages. Each is an exact slice of the text.</p>
    <${WindowedList} items=${pages.items} keyOf=${(each) => each.chunk_id} label="Chunks" total=${pages.total} estimate=${140} onEnd=${pages.more}
      row=${(each) => html`
        <div class="chunk">
          <div class="hit-foot">
            <strong>${each.index + 1}</strong>
            <a href=${addressOf("memory", [memory.memory_id], { lines: `${each.start_line}-${each.end_line}` })}>${lines(each.start_line, each.end_line)}</a>
            <span>${counted(each.token_count, "token")}</span><span class="badge">${each.chunk_type}</span>
            ${each.header_path && html`<span dir="auto">${shorten(each.header_path, 100)}</span>`}
          </div>
          <pre dir="auto">${visible(each.content.slice(0, MOST_CHARS))}${each.content.length > MOST_CHARS ? " …" : ""}</pre>
        </div>`} />`;
}

/** @param {{memory: any}} props */
export function Similar({ memory }) {
  const asked = useRequest((signal) => get(memoryPath(memory.memory_id, "/similar"), { limit: 20, threshold: LEAST_SIMILARITY }, signal), [memory.memory_id, memory.version]);
  const { data } = asked;
  if (!data) return html`<${Waiting} request=${asked} />`;
  return html`
    ${data.degraded && html`<${Note} tone="warn">${data.degraded}</${Note}>`}
    ${!data.similar.length && html`<${Empty} title="Nothing similar" icon="layers"><p>No other memory says nearly the same.</p></${Empty}>`}
    <ul>
      ${data.similar.map((each) => html`
        <li class="row similar" key=${each.memory_id}>
          <a class="hit-name" dir="auto" href=${addressOf("memory", [each.memory_id])}>${nameOf(each)}</a>
          <span class="badge">${percent(each.similarity)} alike</span>
        </li>`)}
    </ul>`;
}

/** @param {{memory: any}} props */
export function Used({ memory }) {
  const pages = usePages(pageOf("/receipts", "receipts", { memory_id: memory.memory_id }), [memory.memory_id], 20);
  if (pages.error || !pages.answer) return html`<${Waiting} request=${pages} />`;
  const kept = pages.answer.kept_days;
  if (!pages.items.length) {
    return html`
      <${Empty} title="In no context" icon="context">
        <p>${kept ? `No context of the last ${counted(kept, "day")} contained this memory.` : "Receipts of contexts are switched off: set receipt_days to keep them."}</p>
        <p>It was read ${counted(memory.access_count, "time")} in all.</p>
      </${Empty}>`;
  }
  return html`
    <p class="hint tab-hint">${counted(pages.total ?? pages.items.length, "context")} of the last ${counted(kept, "day")} contained this memory.</p>
    <${WindowedList} items=${pages.items} keyOf=${(each) => each.receipt_id} label="Contexts" total=${pages.total} estimate=${64} onEnd=${pages.more}
      row=${(each) => html`
        <div class="similar">
          <div>
            <a class="hit-name" dir="auto" href=${addressOf("context", [], { receipt: each.receipt_id })}>${each.query ? shorten(each.query) : "without a question"}</a>
            <div class="hit-foot"><span class="badge">${each.verb}</span><span dir="auto">${shorten(each.session_id, 60)}</span><span>${count(each.used_tokens)} of ${count(each.max_tokens)} tokens</span></div>
          </div>
          <span class="hit-when"><${When} at=${each.at} /></span>
        </div>`} />`;
}
