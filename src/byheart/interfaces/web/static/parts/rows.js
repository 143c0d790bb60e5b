// A memory as a row of a list.
import { ago, moment, nameOf, saysOf, shorten, visible } from "../core/format.js";
import { classes, html } from "../core/lib.js";
import { addressOf } from "../core/router.js";
import { splitSnippet } from "../core/snippets.js";
import { Marked, Snippet, Why, lines } from "./hits.js";
import { Icon } from "./icons.js";

/** @param {string | null | undefined} at */
const isPast = (at) => Boolean(at) && Date.parse(String(at)) < Date.now();

/** A small fact; the comma keeps screen readers from reading it as one word with the next. @param {string} text @param {string} [tone] @param {string} [title] */
const badge = (text, tone, title) => html`<span class=${classes("badge", tone && `badge-${tone}`)} title=${title}>${text}</span><span class="unseen">, </span>`;

/** The small facts of a memory: kind, session, tags, state. @param {{item: any, plain?: boolean}} props */
export const Badges = ({ item }) => html`
  <span class="badges">
    ${badge(item.kind)}
    ${item.replaced_at && badge("earlier text", "warn")}
    ${item.superseded_by && badge("superseded", "warn")}
    ${item.untrusted_at && badge("untrusted", "warn", "It enters no prompt until somebody trusts it.")}
    ${isPast(item.expires_at) && badge("expired", "warn")}
    ${item.pinned_at && badge("pinned", "accent")}
    ${item.stale && badge("stale", "warn", "Its file was changed or deleted since it was indexed.")}
    ${item.damaged && badge("damaged", "bad")}
    ${item.session_id && html`<a class="badge" dir="auto" href=${addressOf("search", [], { session_id: item.session_id })}>${shorten(item.session_id, 30)}</a>`}
    ${item.tags?.slice(0, 6).map((each) => html`<a class="badge" key=${each} dir="auto" href=${addressOf("search", [], { tags: each })}>#${shorten(each, 30)}</a>`)}
  </span>`;

/** A moment as "3 hours ago", with the exact time on hover. @param {{at: string}} props */
export const When = ({ at }) => html`<time datetime=${at} title=${moment(at)}>${ago(at)}</time>`;

/** @param {any} hit @returns {string[]} */
const markedWords = (hit) => splitSnippet(hit.snippet, hit.snippet_marks).filter((each) => each.marked).map((each) => each.text);

/** Whether a title would only repeat the passage below it. @param {any} hit */
export const repeatsPassage = (hit) => !hit.title && hit.chunk_content.length < 200 && hit.chunk_content.trim().startsWith(hit.summary.slice(0, 60));

/**
 * A hit of a search, or a memory of a list.
 * @param {{item: any, best?: number, chosen: boolean, opened?: boolean, writes: boolean, onToggle: () => void, onWhy?: () => void, onForget: () => void, onRestore?: () => void}} props
 */
export function HitRow({ item, best = 0, chosen, opened, writes, onToggle, onWhy, onForget, onRestore }) {
  const gone = Boolean(item.forgotten_at);
  const name = nameOf(item);
  const isHit = item.chunk_content !== undefined;
  const repeats = isHit && repeatsPassage(item);
  const address = addressOf("memory", [item.memory_id], isHit && item.start_line > 1 ? { lines: `${item.start_line}-${item.end_line}` } : {});
  return html`
    <div class="hit">
      <input type="checkbox" checked=${chosen} aria-keyshortcuts="x" aria-label="Select: ${name}" onChange=${onToggle} />
      <div class="hit-main">
        <div class="hit-head">
          <a class="hit-name" href=${address} dir="auto">${repeats ? html`<${Marked} snippet=${item.snippet} marks=${item.snippet_marks} />` : name}</a>
          <span class="hit-when">${item.version > 1 && "changed "}<${When} at=${item.version > 1 ? item.updated_at : item.created_at} /></span>
        </div>
        ${isHit && !repeats && html`<${Snippet} snippet=${item.snippet} marks=${item.snippet_marks} />`}
        ${!isHit && item.title && html`<p class="snippet row-says" dir="auto">${shorten(saysOf(item), 240)}</p>`}
        <div class="hit-foot">
          <${Badges} item=${item} />
          ${item.path && html`<span class="hit-path mono" dir="auto" title=${visible(item.path)}>${visible(item.relative_path ?? item.path)}${isHit ? ` · ${lines(item.start_line, item.end_line)}` : ""}</span>`}
          ${!item.path && isHit && item.header_path && html`<span class="hit-path" dir="auto">${shorten(item.header_path, 80)}</span>`}
          <span class="hit-tools">
            ${item.explanation && html`<button class="text-button" aria-expanded=${!!opened} aria-keyshortcuts="w" aria-label="Why: ${name}" onClick=${onWhy}>Why</button>`}
            ${writes && gone && html`<button class="text-button" aria-label="Restore: ${name}" onClick=${onRestore}>Restore</button>`}
            ${writes && !gone && html`<a class="icon-button" href=${addressOf("memory", [item.memory_id], { edit: 1 })} aria-keyshortcuts="e" aria-label="Edit: ${name}" title="Edit (e)"><${Icon} name="edit" /></a>`}
            ${writes && !gone && html`<button class="icon-button" aria-keyshortcuts="#" aria-label="Forget: ${name}" title="Forget (#)" onClick=${onForget}><${Icon} name="trash" /></button>`}
          </span>
        </div>
        ${opened && item.explanation && html`<${Why} explanation=${item.explanation} best=${best} words=${markedWords(item)} />`}
      </div>
    </div>`;
}
