// What went into a context and what was left out, each with its reason.
import { useBriefs } from "../core/briefs.js";
import { count, counted, nameOf, visible } from "../core/format.js";
import { html, useMemo } from "../core/lib.js";
import { addressOf } from "../core/router.js";
import { StackedBar } from "./charts.js";

/** @type {Record<string, [string, string]>} the name and the colour of each part of a context */
export const PARTS = {
  identity: ["Identity", "accent"],
  summary: ["Summary", "good"],
  pinned: ["Pinned", "warn"],
  retrieved: ["Found", "meaning"],
  recent: ["Recent turns", "keywords"],
  frame: ["Markup", "soft"],
};

/** @type {Record<string, string>} why something was left out */
const REASONS = {
  budget: "No room in the budget",
  question: "It is the question itself",
  recent: "Already among the recent turns",
  pinned: "Already pinned",
  summary: "Already in the summary",
  retrieved: "Already found",
  duplicate: "Says the same as another one",
  similar: "Too much like another one",
  unrelated: "Probably nothing to do with the question",
  superseded: "Superseded by a newer memory",
  "not valid": "Not valid at this time",
  untrusted: "Waits for review",
  unreadable: "Not readable",
  damaged: "Damaged",
};

// The heading of the group says these as well.
const SAID = ["similar", "budget", "question", "recent"];
const MEMORY_ID = /\bmem_[0-9a-z]{26}\b/;

/** The budget by part. @param {{receipt: any}} props */
export const BudgetBar = ({ receipt }) => {
  const used = Object.values(receipt.tokens).reduce((sum, each) => sum + each, 0);
  return html`
    <div class="budget">
      <p><strong>${count(used)}</strong> of ${counted(receipt.max_tokens, "token")} used${receipt.counter === "estimate" ? html` <span class="hint">(estimated)</span>` : ""}</p>
      <${StackedBar} whole=${receipt.max_tokens}
        parts=${Object.entries(PARTS).filter(([part]) => receipt.tokens[part]).map(([part, [name, tone]]) => ({ name, tone, value: receipt.tokens[part] }))} />
    </div>`;
};

/** A memory by its name, as a link. @param {{item: any, briefs: Map<string, any> | null}} props */
const Name = ({ item, briefs }) => (item.memory_id
  ? html`<a href=${addressOf("memory", [item.memory_id])} dir="auto">${briefs ? nameOf(briefs.get(item.memory_id) ?? { title: item.title ?? item.path, memory_id: item.memory_id }) : "…"}</a>`
  : html`<span class="mono" dir="auto">${visible(item.path ?? item.title ?? "")}</span>`);

/** Why one memory was left out; another memory is named, not given by its id. @param {{item: any, briefs: Map<string, any> | null}} props */
function Tells({ item, briefs }) {
  if (SAID.includes(item.reason)) return null;
  // The heading says the rest; the confidence is in brackets.
  if (item.reason === "unrelated") return html`<span class="hint">${item.tells.match(/\(.*\)/)?.[0] ?? ""}</span>`;
  const other = item.tells.match(MEMORY_ID)?.[0];
  if (!other) return html`<span class="hint">${visible(item.tells)}</span>`;
  return html`<span class="hint">${item.tells.slice(0, item.tells.indexOf(other))}<${Name} item=${{ memory_id: other }} briefs=${briefs} /></span>`;
}

/** @param {{items: any[], briefs: Map<string, any> | null}} props */
const Given = ({ items, briefs }) => html`
  <ol class="parts">
    ${items.map((item, at) => html`
      <li key=${at}>
        <span class="part-name"><i class="key bar-${PARTS[item.part]?.[1] ?? "soft"}" aria-hidden="true"></i>${PARTS[item.part]?.[0] ?? item.part}</span>
        <span class="part-what"><${Name} item=${item} briefs=${briefs} />${item.cut && html` <span class="badge badge-warn">cut</span>`}${item.stale && html` <span class="badge badge-warn" title="Its file was changed or deleted since it was indexed.">stale</span>`}</span>
        <span class="hint">${counted(item.tokens, "token")}</span>
      </li>`)}
  </ol>`;

/** @param {{items: any[], briefs: Map<string, any> | null, level: number}} props */
const LeftOut = ({ items, briefs, level }) => [...new Set(items.map((each) => each.reason))].map((reason) => {
  const these = items.filter((each) => each.reason === reason);
  return html`
    <div class="left-out" key=${reason}>
      <${`h${level}`} class="left-out-why">${REASONS[reason] ?? reason} <span class="hint">${these.length}</span></${`h${level}`}>
      <ul class="parts">
        ${these.map((item, at) => html`
          <li key=${at}>
            <span class="part-name"><i class="key bar-${PARTS[item.part]?.[1] ?? "soft"}" aria-hidden="true"></i>${PARTS[item.part]?.[0] ?? item.part}</span>
            <span class="part-what"><${Name} item=${item} briefs=${briefs} /> <${Tells} item=${item} briefs=${briefs} /></span>
            <span class="hint">${item.score === null ? "" : `score ${item.score.toFixed(2)}`}</span>
          </li>`)}
      </ul>
    </div>`;
});

/** A receipt: the budget, everything that went in, everything left out; `level` is that of its headings. @param {{receipt: any, level?: number}} props */
export function Receipt({ receipt, level = 3 }) {
  const tag = `h${level}`;
  const ids = useMemo(() => [...receipt.items, ...receipt.left_out].flatMap((each) => [each.memory_id, each.tells?.match(MEMORY_ID)?.[0]]).filter(Boolean), [receipt]);
  const briefs = useBriefs(ids);
  return html`
    <div class="receipt">
      <${BudgetBar} receipt=${receipt} />
      <${tag} class="receipt-part">Went in <span class="hint">${receipt.items.length}</span></${tag}>
      ${receipt.items.length ? html`<${Given} items=${receipt.items} briefs=${briefs} />` : html`<p class="hint">Nothing.</p>`}
      <${tag} class="receipt-part">Left out <span class="hint">${receipt.left_out.length}</span></${tag}>
      ${receipt.left_out.length ? html`<${LeftOut} items=${receipt.left_out} briefs=${briefs} level=${level + 1} />` : html`<p class="hint">Nothing.</p>`}
    </div>`;
}
