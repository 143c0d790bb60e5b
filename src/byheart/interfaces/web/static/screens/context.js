// Context: what a session would get for a question, within a budget, and what it really got before.
import { get, pageOf, post, usePages, useRequest } from "../core/api.js";
import { count, counted, milliseconds, moment, shorten, visible } from "../core/format.js";
import { html, useCell, useEffect, useId, useState } from "../core/lib.js";
import { addressOf, place, setQuery } from "../core/router.js";
import { Bars, Figure } from "../parts/charts.js";
import { ListFoot } from "../parts/memory_list.js";
import { Empty, Note, Screen, Waiting } from "../parts/page.js";
import { Receipt } from "../parts/receipt.js";

const BUDGETS = [500, 1000, 2000, 4000, 8000];
const DEFAULT_BUDGET = 2000;

/** @param {{session: string, question: string, budget: number}} props */
function Form({ session, question, budget }) {
  const id = useId();
  const [typed, setTyped] = useState({ session, question, budget: String(budget) });
  useEffect(() => setTyped({ session, question, budget: String(budget) }), [session, question, budget]);
  const sessions = useRequest((signal) => get("/sessions", { limit: 100 }, signal), []);
  const names = [...new Set((sessions.data ?? []).map((each) => each.session_id))];
  const field = (name) => ({ value: typed[name], onInput: (event) => setTyped({ ...typed, [name]: event.target.value }) });
  return html`
    <form class="context-form" onSubmit=${(event) => {
      event.preventDefault();
      setQuery({ session: typed.session.trim(), q: typed.question.trim(), tokens: Number(typed.budget) === DEFAULT_BUDGET ? null : typed.budget, receipt: null });
    }}>
      <div class="field">
        <label for="${id}-session">Session</label>
        <input id="${id}-session" required list="${id}-names" autocomplete="off" placeholder="The id of a session" ...${field("session")} />
        <datalist id="${id}-names">${names.map((each) => html`<option key=${each} value=${each} />`)}</datalist>
      </div>
      <div class="field">
        <label for="${id}-question">Question</label>
        <input id="${id}-question" autocomplete="off" placeholder="What the agent is asked; may be empty" ...${field("question")} />
      </div>
      <div class="field">
        <label for="${id}-budget">Budget in tokens</label>
        <input id="${id}-budget" type="number" required min="1" max="1000000" ...${field("budget")} />
      </div>
      <button class="button primary" type="submit">Try</button>
    </form>`;
}

/** The same question with other budgets. @param {{session: string, question: string}} props */
function OtherBudgets({ session, question }) {
  const asked = useRequest((signal) => Promise.all(BUDGETS.map((max_tokens) => post("/context", {
    session_id: session, query: question || null, max_tokens, preview: true,
  }, signal))), [session, question]);
  const { data } = asked;
  if (!data) return html`<${Waiting} request=${asked} rows=${2} label="Trying other budgets" />`;
  const spell = (value) => counted(value, "item");
  return html`
    <${Figure} title="What fits into other budgets" columns=${["Budget", "Used", "Went in", "Left out for room"]}
      rows=${data.map(({ receipt, tokens_used }) => [count(receipt.max_tokens), tokens_used, receipt.items.length, receipt.left_out.filter((each) => each.reason === "budget").length])}>
      <${Bars} bars=${data.map(({ receipt }) => ({ label: counted(receipt.max_tokens, "token"), value: receipt.items.length }))} spell=${spell} />
    </${Figure}>`;
}

/** What the session would get now. @param {{session: string, question: string, budget: number}} props */
function Trial({ session, question, budget }) {
  const [others, setOthers] = useState(false);
  const asked = useRequest((signal) => post("/context", {
    session_id: session, query: question || null, max_tokens: budget, preview: true,
  }, signal), [session, question, budget]);
  const { data, loading } = asked;
  if (!data) return html`<${Waiting} request=${asked} label="Putting the context together" />`;
  return html`
    <section aria-label="Context" aria-busy=${loading}>
      <div class="context-head">
        <h2>What it would get now</h2>
        <div class="segments" role="group" aria-label="Budget in tokens">
          ${BUDGETS.map((each) => html`<button key=${each} aria-pressed=${each === budget} onClick=${() => setQuery({ tokens: each === DEFAULT_BUDGET ? null : each })}>${count(each)}</button>`)}
        </div>
      </div>
      <p class="hint">A trial: it counts as no access, and no receipt is kept. ${milliseconds(data.elapsed_ms)}</p>
      ${data.degraded && html`<${Note} tone="warn"><strong>The search is degraded.</strong> ${data.degraded}</${Note}>`}
      ${data.remark && html`<${Note}>${data.remark}</${Note}>`}
      <${Receipt} receipt=${data.receipt} />
      <details class="block"><summary>The block as text</summary><pre dir="auto">${visible(data.text)}</pre></details>
      <div class="context-others">
        ${others ? html`<${OtherBudgets} session=${session} question=${question} />` : html`<button class="button" onClick=${() => setOthers(true)}>Compare budgets</button>`}
      </div>
    </section>`;
}

/** What a session really got. @param {{id: string}} props */
function Kept({ id }) {
  const asked = useRequest((signal) => get(`/receipts/${encodeURIComponent(id)}`, {}, signal), [id]);
  const { data } = asked;
  if (!data) return html`<${Waiting} request=${asked} label="Loading the receipt" />`;
  return html`
    <section aria-label="Receipt">
      <div class="context-head">
        <h2>${data.verb === "remind" ? "Reminder" : "Context"} given on ${moment(data.at)}</h2>
        <a class="button small" href=${addressOf("context", [], { session: data.session_id, q: data.query, tokens: data.max_tokens })}>Try the same now</a>
      </div>
      <p class="hint" dir="auto">${shorten(data.session_id ?? "", 80)}${data.query ? `: ${shorten(data.query, 300)}` : ""}</p>
      <${Receipt} receipt=${data.receipt} />
    </section>`;
}

/** The receipts of a session, or of all. @param {{session: string, chosen: string | null}} props */
function Receipts({ session, chosen }) {
  const pages = usePages(pageOf("/receipts", "receipts", { session_id: session }), [session], 20);
  const days = pages.answer?.kept_days;
  return html`
    <section class="receipts" aria-label="Receipts">
      <h2 class="list-title">Given before <span class="hint">${pages.total === null ? "" : count(pages.total)}</span></h2>
      ${days === 0 && html`<p class="hint">Receipts are switched off: set receipt_days to keep them.</p>`}
      ${pages.answer && days !== 0 && !pages.items.length && html`<p class="hint">No receipt ${session ? "of this session" : ""} in the last ${counted(days, "day")}.</p>`}
      <ul>${pages.items.map((each) => html`
        <li key=${each.receipt_id} class="receipt-line">
          <a href=${addressOf("context", [], { session, receipt: each.receipt_id })} aria-current=${chosen === each.receipt_id ? "true" : undefined} dir="auto">${shorten(each.query || (each.verb === "remind" ? "Reminder" : "Without a question"), 120)}</a>
          <span class="hint"><time datetime=${each.at}>${moment(each.at)}</time> · ${session ? "" : `${shorten(each.session_id ?? "", 40)} · `}${counted(each.items, "item")} in, ${each.left_out} out · ${count(each.used_tokens)} of ${count(each.max_tokens)} tokens</span>
        </li>`)}</ul>
      <${ListFoot} pages=${pages} />
    </section>`;
}

export default function ContextScreen() {
  const { query } = useCell(place);
  const session = query.get("session") ?? "";
  const question = query.get("q") ?? "";
  const receipt = query.get("receipt");
  const budget = Math.trunc(Number(query.get("tokens"))) || DEFAULT_BUDGET;
  return html`
    <${Screen} title="Context" lead="What goes into the prompt of a session, and what is left out.">
      <${Form} session=${session} question=${question} budget=${budget} />
      ${receipt && html`<${Kept} key=${receipt} id=${receipt} />`}
      ${!receipt && session && html`<${Trial} session=${session} question=${question} budget=${budget} />`}
      ${!receipt && !session && html`<${Empty} title="Choose a session" icon="context"><p>Type a session and a question. You see what an agent would get, part by part, and why the rest was left out.</p></${Empty}>`}
      <${Receipts} session=${session} chosen=${receipt} />
    </${Screen}>`;
}
