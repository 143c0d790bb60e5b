// The replay of a session: what was said, what tools answered, what was saved, and each context.
import { get, post, usePages, useRequest } from "../core/api.js";
import { useNews } from "../core/events.js";
import { count, counted, moment, nameOf, visible } from "../core/format.js";
import { useKeys } from "../core/keys.js";
import { html, useCell, useState } from "../core/lib.js";
import { addressOf, go, place, setQuery } from "../core/router.js";
import { WindowedList, useRows } from "../parts/list.js";
import { ListFoot } from "../parts/memory_list.js";
import { Action, Empty, Loading, NewsPill, Note, Screen, Waiting } from "../parts/page.js";
import { Receipt } from "../parts/receipt.js";
import { Badges } from "../parts/rows.js";

const TURNS = 40;
const MOST_SAVES = 200;
const MOST_RECEIPTS = 200;
const SHOWN_CHARS = 1200;
// A context is asked for just before or after its turn is logged.
const NEAR_MS = 120_000;

/** @param {string} id @param {string} rest */
const sessionPath = (id, rest) => `/sessions/${encodeURIComponent(id)}${rest}`;

/** Tell whether a receipt may belong to a turn of the user. @param {any} receipt @param {any} turn */
const fits = (receipt, turn) => turn.role === "user" && Math.abs(Date.parse(receipt.at) - Date.parse(turn.created_at)) < NEAR_MS
  && (!receipt.query || turn.content.startsWith(receipt.query.slice(0, 200)) || receipt.query.startsWith(turn.content.slice(0, 200)));

/** Find the turn that a receipt belongs to: if the same was asked twice, the last one before it. @param {any} receipt @param {any[]} turns in their order */
function turnOf(receipt, turns) {
  const fitting = turns.filter((each) => fits(receipt, each));
  // Both times are written to the microsecond, and a turn may come less than a millisecond after a receipt.
  return fitting.findLast((each) => each.created_at <= receipt.at) ?? fitting[0] ?? null;
}

/**
 * Load a page of turns, with what was saved and given in the same time.
 * @param {string} id @param {number} offset @param {any[]} receipts @param {AbortSignal} signal
 */
async function loadEvents(id, offset, receipts, signal) {
  // One more turn than shown tells where the next page begins.
  const page = await get(sessionPath(id, "/transcript"), { limit: TURNS + 1, offset }, signal);
  const turns = page.turns.slice(0, TURNS);
  const start = offset ? turns[0]?.created_at : undefined;
  const end = page.turns[TURNS]?.created_at;
  const saved = await get("/memories", { session_id: id, include_global: false, created_after: start, created_before: end, limit: MOST_SAVES }, signal);
  const isInside = (at) => (!start || at >= start) && (!end || at < end);
  const owners = new Map(receipts.map((each) => [each, turnOf(each, turns)]));
  const events = [
    ...turns.map((turn) => ({ type: "turn", at: turn.created_at, key: turn.memory_id, turn, receipts: receipts.filter((each) => owners.get(each) === turn).reverse() })),
    ...saved.memories.filter((each) => each.role === null).map((each) => ({ type: "save", at: each.created_at, key: each.memory_id, memory: each })),
    ...receipts.filter((each) => isInside(each.at) && !owners.get(each)).map((each) => ({ type: "receipt", at: each.at, key: each.receipt_id, receipts: [each] })),
  ];
  // The order of turns is the server's; only the others are placed by their time.
  const order = new Map(turns.map((turn, at) => [turn.memory_id, at]));
  events.sort((a, b) => (order.has(a.key) && order.has(b.key) ? (order.get(a.key) ?? 0) - (order.get(b.key) ?? 0) : a.at < b.at ? -1 : Number(a.at > b.at)));
  return { events, turns: turns.length, total: page.total, hasMore: page.total > offset + turns.length, cut: saved.has_more };
}

/** A long text, of which the start is shown. @param {{text: string}} props */
function Text({ text }) {
  const [whole, setWhole] = useState(false);
  const isLong = text.length > SHOWN_CHARS;
  return html`
    <div class="turn-text" dir="auto">${visible(whole || !isLong ? text : `${text.slice(0, SHOWN_CHARS)}…`)}</div>
    ${isLong && html`<button class="text-button" aria-expanded=${whole} onClick=${() => setWhole(!whole)}>${whole ? "Show less" : `Show all ${count(text.length)} characters`}</button>`}`;
}

/** The context that was really given. @param {{receipt: any}} props */
function KeptContext({ receipt }) {
  const asked = useRequest((signal) => get(`/receipts/${encodeURIComponent(receipt.receipt_id)}`, {}, signal), [receipt.receipt_id]);
  return asked.data ? html`<${Receipt} receipt=${asked.data.receipt} level=${2} />` : html`<${Waiting} request=${asked} rows=${2} label="Loading the receipt" />`;
}

/** What a context for this turn would have been. @param {{id: string, turn: any}} props */
function MadeContext({ id, turn }) {
  const asked = useRequest((signal) => post("/context", {
    // The server takes recent turns from the end of the session, not from the time of this turn.
    // A moment earlier, because the turn itself would answer its own question best.
    session_id: id, query: turn.content.slice(0, 2000), as_of: new Date(Date.parse(turn.created_at) - 1).toISOString(), recent: 0, preview: true,
  }, signal), [turn.memory_id]);
  const { data } = asked;
  if (!data) return html`<${Waiting} request=${asked} rows=${2} label="Reconstructing the context" />`;
  return html`
    <${Note} tone="warn"><strong>Reconstructed.</strong> No receipt was kept for this turn. This is what Byheart would have given then, with today's settings, besides the turns above; the agent may have got less, or nothing.</${Note}>
    <${Receipt} receipt=${data.receipt} level=${2} />
    <details class="block"><summary>The block as text</summary><pre dir="auto">${visible(data.text)}</pre></details>`;
}

const VERBS = /** @type {Record<string, string>} */ ({ context: "Context", remind: "Reminder" });

/** The line under a turn that opens its context. @param {{id: string, turn?: any, receipt?: any}} props */
function TurnContext({ id, turn, receipt }) {
  const [open, setOpen] = useState(false);
  const label = receipt
    ? `${VERBS[receipt.verb] ?? receipt.verb} given: ${counted(receipt.items, "item")}, ${receipt.left_out} left out, ${count(receipt.used_tokens)} of ${count(receipt.max_tokens)} tokens`
    : "Context at this turn (reconstructed)";
  return html`
    <div class="turn-context">
      <button class="text-button" aria-expanded=${open} onClick=${() => setOpen(!open)}>${label}</button>
      ${open && (receipt ? html`<${KeptContext} receipt=${receipt} />` : html`<${MadeContext} id=${id} turn=${turn} />`)}
    </div>`;
}

const ROLES = { user: "User", assistant: "Assistant", system: "System", tool: "Tool" };

/** @param {{id: string, event: any, offersContexts: boolean}} props */
function EventRow({ id, event, offersContexts }) {
  const { type, turn, memory, receipts } = event;
  const when = html`<time class="hit-when" datetime=${event.at}>${moment(event.at)}</time>`;
  if (type === "receipt") {
    const [receipt] = receipts;
    return html`
      <div class="turn turn-note">
        <div class="hit-head"><strong>${VERBS[receipt.verb] ?? receipt.verb}</strong>${when}</div>
        ${receipt.query && html`<${Text} text=${receipt.query} />`}
        <${TurnContext} id=${id} receipt=${receipt} />
      </div>`;
  }
  if (type === "save") {
    return html`
      <div class="turn turn-save">
        <div class="hit-head"><span><strong>Saved</strong> <a href=${addressOf("memory", [memory.memory_id])} dir="auto">${nameOf(memory)}</a></span>${when}</div>
        <div class="hit-foot"><${Badges} item=${{ ...memory, session_id: null }} /></div>
      </div>`;
  }
  const isTool = turn.kind !== "message";
  return html`
    <div class="turn turn-${turn.role === "user" ? "user" : isTool ? "tool" : "other"}">
      <div class="hit-head">
        <span><strong dir="auto">${ROLES[turn.role] ?? visible(turn.role)}</strong> <a class="hint" href=${addressOf("memory", [turn.memory_id])}>${isTool ? visible(turn.title ?? turn.path ?? turn.kind) : "open"}<span class="unseen"> this turn</span></a></span>
        ${when}
      </div>
      ${isTool && turn.content.length > 240
        ? html`<details class="block"><summary>${counted(turn.content.split("\n").length, "line")}, ${counted(turn.content.length, "character")}</summary><${Text} text=${turn.content} /></details>`
        : html`<${Text} text=${turn.content} />`}
      ${receipts.map((each) => html`<${TurnContext} key=${each.receipt_id} id=${id} turn=${turn} receipt=${each} />`)}
      ${offersContexts && turn.role === "user" && !receipts.length && html`<${TurnContext} id=${id} turn=${turn} />`}
    </div>`;
}

/** @param {{id: string}} props */
export function Replay({ id }) {
  const { query } = useCell(place);
  const from = Math.max(0, Math.trunc(Number(query.get("turn") ?? 0)) || 0);
  const receipts = useRequest((signal) => get("/receipts", { session_id: id, limit: MOST_RECEIPTS }, signal), [id]);
  const kept = receipts.data?.receipts ?? [];
  // A server without receipts cannot try contexts either.
  const offersContexts = receipts.error?.kind !== "missing";
  const [reached] = useState({ turns: 0 });
  const pages = usePages(async (offset, _limit, signal) => {
    if (receipts.loading) return { items: [], hasMore: false, answer: null };
    // The list counts events, the server counts turns.
    const done = offset ? reached.turns : 0;
    const page = await loadEvents(id, from + done, kept, signal);
    reached.turns = done + page.turns;
    return { items: page.events, total: page.total, hasMore: page.hasMore, answer: page };
  }, [id, from, receipts.loading], TURNS);
  const rows = useRows(pages.items.length);
  const news = useNews((change) => change.operation === "create" && change.session_id === id);
  useKeys({
    ...rows.keys,
    ...(pages.items[rows.active] && { Enter: { label: "Open", hidden: true, run: () => go(addressOf("memory", [pages.items[rows.active].key])) } }),
  });
  const total = pages.total ?? 0;
  const isReady = pages.answer && !receipts.loading;
  return html`
    <${Screen} title=${visible(id)} lead=${isReady ? `${counted(total, "turn")}${from ? `, from turn ${count(from + 1)} on` : ""}` : null}
      actions=${html`
        ${offersContexts && html`<a class="button" href=${addressOf("context", [], { session: id })}>Context</a>`}
        <a class="button" href=${addressOf("search", [], { session_id: id, include_global: "false" })}>Search in it</a>
        ${from > 0 && html`<${Action} onClick=${() => setQuery({ turn: null })}>From the start</${Action}>`}
        ${total > TURNS && html`<${Action} onClick=${() => setQuery({ turn: Math.max(0, total - TURNS) })}>Latest</${Action}>`}`}>
      <p class="crumb"><a href="/ui/sessions">All sessions</a></p>
      ${receipts.data?.kept_days === 0 && html`<${Note}>Receipts are switched off (setting receipt_days): every context here is reconstructed.</${Note}>`}
      ${!isReady && !pages.error && html`<${Loading} label="Loading the session" />`}
      ${isReady && !pages.items.length && html`<${Empty} title="Nothing is left of this session" icon="sessions"><p>It was forgotten, or it never existed. <a href="/ui/sessions">See all sessions</a>.</p></${Empty}>`}
      ${pages.answer?.cut && html`<${Note}>Only the latest ${count(MOST_SAVES)} memories saved in this part are shown.</${Note}>`}
      <${WindowedList} items=${pages.items} keyOf=${(each) => each.key} label="Replay" rows=${rows} estimate=${110} onEnd=${pages.more}
        row=${(event) => html`<${EventRow} id=${id} event=${event} offersContexts=${offersContexts} />`} />
      <${ListFoot} pages=${pages} />
      <${NewsPill} news=${news} onShow=${() => setQuery({ turn: Math.max(0, total - TURNS + news.count) })} />
    </${Screen}>`;
}
