// The changes of a memory: who, when, and the texts as a difference.
import { get, memoryPath, useRequest } from "../../core/api.js";
import { moment, shorten, visible } from "../../core/format.js";
import { html } from "../../core/lib.js";
import { Diff } from "../../parts/diff.js";
import { Waiting } from "../../parts/page.js";
import { When } from "../../parts/rows.js";

/** @type {Record<string, string>} */
const WORDS = {
  create: "saved it", update: "changed it", supersede: "marked it as superseded", forget: "forgot it",
  restore: "restored it", pin: "pinned it", unpin: "unpinned it",
};
/** Fields that Byheart derives again from each text. */
const DERIVED = new Set(["summary", "entities", "importance", "language"]);

/** @param {unknown} value */
const spell = (value) => (value === null || value === undefined ? "nothing" : shorten(typeof value === "string" ? value : JSON.stringify(value), 200));

/** @param {{changes: Record<string, {from: any, to: any}>}} props */
function Changes({ changes }) {
  const fields = Object.entries(changes).filter(([name]) => name !== "content");
  const own = fields.filter(([name]) => !changes.content || !DERIVED.has(name));
  const derived = fields.filter(([name]) => changes.content && DERIVED.has(name)).map(([name]) => name);
  return html`
    ${changes.content && html`<${Diff} before=${String(changes.content.from ?? "")} after=${String(changes.content.to ?? "")} />`}
    ${own.length > 0 && html`
      <dl class="facts">${own.map(([name, { from, to }]) => html`
        <div key=${name}><dt>${name}</dt><dd dir="auto"><del>${spell(from)}</del> → <ins>${spell(to)}</ins></dd></div>`)}</dl>`}
    ${derived.length > 0 && html`<p class="hint">Derived again: ${derived.join(", ")}.</p>`}`;
}

/** @param {{memory: any}} props */
export default function History({ memory }) {
  const asked = useRequest((signal) => get(memoryPath(memory.memory_id, "/history"), {}, signal), [memory.memory_id, memory.version]);
  const { data } = asked;
  if (!data) return html`<${Waiting} request=${asked} />`;
  return html`
    <ol class="history">
      ${[...data].reverse().map((entry, at) => html`
        <li key=${at}>
          <p><strong>${visible(entry.who)}</strong> ${WORDS[entry.operation] ?? entry.operation} <span class="hint"><${When} at=${entry.at} />, version ${entry.version}, ${moment(entry.at)}</span></p>
          ${entry.reason && html`<p class="hint" dir="auto">Reason: ${shorten(entry.reason, 400)}</p>`}
          <${Changes} changes=${entry.changes} />
        </li>`)}
    </ol>`;
}
