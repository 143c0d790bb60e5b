// The fields of a memory.
import { counted, moment, shorten, visible } from "../../core/format.js";
import { html } from "../../core/lib.js";
import { addressOf } from "../../core/router.js";
import { Icon } from "../../parts/icons.js";
import { say } from "../../parts/toast.js";

/** A value that leads to all memories that share it. @param {string} filter @param {string} value */
const filtered = (filter, value) => html`<a key=${value} dir="auto" href=${addressOf("search", [], { [filter]: value })}>${shorten(value, 80)}</a>`;

const SHOWN_AT_ONCE = 12;

/** @param {string} filter @param {string[]} values */
const several = (filter, values) => values.length > 0 && html`
  <span class="fact-list">${values.slice(0, SHOWN_AT_ONCE).map((each) => filtered(filter, each))}</span>
  ${values.length > SHOWN_AT_ONCE && html`
    <details><summary>${counted(values.length - SHOWN_AT_ONCE, "more", "more")}</summary>
      <span class="fact-list">${values.slice(SHOWN_AT_ONCE).map((each) => filtered(filter, each))}</span></details>`}`;

/** @param {any} memory @returns {[string, unknown][]} */
const rows = (memory) => [
  ["Kind", filtered("kind", memory.kind)],
  ["Session", memory.session_id && filtered("session_id", memory.session_id)],
  ["Agent", memory.agent_id && filtered("agent_id", memory.agent_id)],
  ["Role", memory.role],
  ["Origin", filtered("origin", memory.origin)],
  ["Source", memory.source],
  ["Task", memory.task_code && filtered("task_code", memory.task_code)],
  ["Iteration", memory.session_iter],
  ["Path", memory.path && html`<span class="mono" dir="auto">${visible(memory.path)}</span>`],
  ["Tags", several("tags", memory.tags)],
  ["Entities", several("entities", memory.entities)],
  ["Language", memory.language !== "und" && filtered("language", memory.language)],
  ["Importance", memory.importance],
  ["Saved", moment(memory.created_at)],
  ["Changed", memory.version > 1 && moment(memory.updated_at)],
  ["Expires", memory.expires_at ? moment(memory.expires_at) : "never"],
  ["Valid from", memory.valid_from && moment(memory.valid_from)],
  ["Valid until", memory.valid_until && moment(memory.valid_until)],
  ["Untrusted", memory.untrusted_at && `since ${moment(memory.untrusted_at)}: it enters no prompt unasked`],
  ["Pinned", memory.pinned_at && moment(memory.pinned_at)],
  ["Last read", memory.accessed_at && `${moment(memory.accessed_at)}, ${counted(memory.access_count, "time")} in all`],
  ["Version", memory.version],
  ["Format", memory.format],
  ["Derived", memory.derived.join(", ")],
  ["Summary", memory.title && memory.summary && html`<span dir="auto">${shorten(memory.summary, 400)}</span>`],
  ["Metadata", Object.keys(memory.metadata).length > 0 && html`<pre dir="auto">${shorten(JSON.stringify(memory.metadata, null, 1), 4000)}</pre>`],
  ["Hash", html`<span class="mono">${memory.content_hash.slice(0, 16)}…</span>`],
];

/** @param {{memory: any}} props */
export function Facts({ memory }) {
  const copy = async () => {
    await navigator.clipboard.writeText(memory.memory_id);
    say("Copied the id.");
  };
  return html`
    <aside class="memory-side" aria-label="Fields">
      <div class="fact-id">
        <code>${visible(memory.memory_id)}</code>
        <button class="icon-button" aria-label="Copy the id" title="Copy the id" onClick=${() => void copy()}><${Icon} name="copy" /></button>
      </div>
      <dl class="facts">
        ${rows(memory).filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "").map(([name, value]) => html`
          <div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
      </dl>
    </aside>`;
}
