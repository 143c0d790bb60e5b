// The text of a memory: rendered, or exactly as it was saved.
import { get, memoryPath, useRequest } from "../../core/api.js";
import { bytes, count, visible } from "../../core/format.js";
import { html, useCell, useEffect, useMemo, useRef, useState } from "../../core/lib.js";
import { place, setQuery } from "../../core/router.js";
import { Icon } from "../../parts/icons.js";
import { Note, Waiting } from "../../parts/page.js";
import { Rendered } from "../../parts/rendered.js";
import { say } from "../../parts/toast.js";

/** The number of characters that are shown at once: more in one line make a browser slow. */
const STEP = 100_000;

/** @param {{memory: any}} props */
function RenderedText({ memory }) {
  const asked = useRequest((signal) => get(memoryPath(memory.memory_id, "/rendered"), {}, signal), [memory.memory_id, memory.version]);
  const { data } = asked;
  if (!data) return html`<${Waiting} request=${asked} rows=${2} />`;
  return html`
    ${data.cut && html`<${Note}>Only the beginning is rendered: the text is long. “As saved” shows all of it.</${Note}>`}
    <${Rendered} text=${data.html} plain=${memory.format === "text" && !memory.path && memory.kind !== "tool_output"} />`;
}

/** Find the characters of a range of lines. @param {string} text @param {string | null} wanted such as "3-8" */
function findLines(text, wanted) {
  const [first, last] = (wanted ?? "").split("-").map(Number);
  if (!first) return null;
  let start = 0;
  for (let line = 1; line < first && start >= 0; line += 1) start = text.indexOf("\n", start) + 1 || -1;
  if (start < 0) return null;
  let end = start;
  for (let line = first; line <= (last || first) && end >= 0; line += 1) end = text.indexOf("\n", end) + 1 || -1;
  return { start, end: end < 0 ? text.length : end };
}

/** @param {{text: string, lines: string | null}} props */
function SavedText({ text, lines }) {
  const marked = useMemo(() => findLines(text, lines), [text, lines]);
  const [from, setFrom] = useState(marked && marked.start > STEP ? Math.max(0, marked.start - STEP / 4) : 0);
  const to = Math.min(text.length, from + STEP);
  const passage = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => passage.current?.scrollIntoView({ block: "center" }), []);
  const low = marked ? Math.max(from, Math.min(marked.start, to)) : to;
  const high = marked ? Math.max(from, Math.min(marked.end, to)) : to;
  return html`
    ${from > 0 && html`<button class="button small" onClick=${() => setFrom(Math.max(0, from - STEP))}>Show what is before</button>`}
    <pre class="saved" dir="auto" tabindex="0" aria-label="The text as saved">${visible(text.slice(from, low))}${high > low && html`<mark ref=${passage}>${visible(text.slice(low, high))}</mark>`}${visible(text.slice(high, to))}</pre>
    ${to < text.length && html`
      <div class="list-foot"><span>Characters ${count(from + 1)} to ${count(to)} of ${count(text.length)}</span>
      <button class="button small" onClick=${() => setFrom(to)}>Show what is after</button></div>`}`;
}

/** @param {{memory: any}} props */
export function TextView({ memory }) {
  const { query } = useCell(place);
  const lines = query.get("lines");
  const raw = query.get("view") === "saved" || (lines !== null && query.get("view") !== "rendered");
  const copy = async () => {
    await navigator.clipboard.writeText(memory.content);
    say("Copied the text as it was saved.");
  };
  return html`
    <h2 class="unseen">Text</h2>
    <div class="text-tools">
      <div class="segments" role="group" aria-label="How to show the text">
        <button aria-pressed=${!raw} onClick=${() => setQuery({ view: lines ? "rendered" : null }, { replace: true })}>Rendered</button>
        <button aria-pressed=${raw} onClick=${() => setQuery({ view: "saved" }, { replace: true })}>As saved</button>
      </div>
      <span class="hint">${bytes(new Blob([memory.content]).size)}</span>
      <button class="icon-button" aria-label="Copy the text" title="Copy the text" onClick=${() => void copy()}><${Icon} name="copy" /></button>
    </div>
    ${raw ? html`<${SavedText} text=${memory.content} lines=${lines} />` : html`<${RenderedText} memory=${memory} />`}`;
}
