// Sessions: a list, and the replay of one of them.
import { pageOf, usePages } from "../core/api.js";
import { useNews } from "../core/events.js";
import { readFilters } from "../core/filters.js";
import { counted, moment, shorten } from "../core/format.js";
import { useKeys } from "../core/keys.js";
import { html, useCell } from "../core/lib.js";
import { addressOf, go, place } from "../core/router.js";
import { FilterChips } from "../parts/chips.js";
import { WindowedList, useRows } from "../parts/list.js";
import { ListFoot } from "../parts/memory_list.js";
import { Empty, Loading, NewsPill, Screen } from "../parts/page.js";
import { When } from "../parts/rows.js";
import { Replay } from "./replay.js";

const NAMES = ["agent_id", "tags", "task_code", "created_after", "created_before", "as_of"];

/** @param {{each: any}} props */
const SessionRow = ({ each }) => html`
  <div class="session">
    <div class="hit-head">
      <a class="hit-name" href=${addressOf("sessions", [each.session_id])} dir="auto">${shorten(each.session_id, 120)}</a>
      <span class="hit-when"><${When} at=${each.last_at} /></span>
    </div>
    <div class="hit-foot">
      ${each.agents.map((agent) => html`<span class="badge" key=${agent} dir="auto">${shorten(agent, 30)}</span>`)}
      <span>${counted(each.turns, "turn")}, ${counted(each.memories, "memory", "memories")}</span>
      <span>since ${moment(each.first_at)}</span>
      <span class="hit-tools"><a class="text-button" href=${addressOf("context", [], { session: each.session_id })}>Context<span class="unseen"> of ${shorten(each.session_id, 60)}</span></a></span>
    </div>
  </div>`;

function SessionList() {
  const { query } = useCell(place);
  const filters = Object.fromEntries(Object.entries(readFilters(query)).filter(([name]) => NAMES.includes(name)));
  const pages = usePages(pageOf("/timeline", "sessions", filters), [JSON.stringify(filters)]);
  const rows = useRows(pages.items.length);
  const active = pages.items[rows.active];
  const news = useNews((change) => change.operation === "create" && change.session_id !== null);
  useKeys({ ...rows.keys, ...(active && { Enter: { label: "Open the session", hidden: true, run: () => go(addressOf("sessions", [active.session_id])) } }) });
  const isNew = !Object.keys(filters).length;
  return html`
    <${Screen} title="Sessions" lead=${pages.total === null ? null : counted(pages.total, "session")}>
      <${FilterChips} names=${NAMES} />
      <div class="session-list">
        <${NewsPill} news=${news} onShow=${pages.reload} />
        ${!pages.answer && !pages.error && html`<${Loading} label="Loading the sessions" />`}
        ${pages.answer && !pages.items.length && html`
          <${Empty} title=${isNew ? "No sessions yet" : "No session matches"} icon="sessions">
            ${isNew
              ? html`<p>An agent that is set up records what was said. You can record a turn yourself:</p><pre>byheart log my-session user "Hello"</pre>`
              : html`<p>Take a filter away.</p>`}
          </${Empty}>`}
        <${WindowedList} items=${pages.items} keyOf=${(each) => each.session_id} label="Sessions" rows=${rows} total=${pages.total} estimate=${72} onEnd=${pages.more}
          row=${(each) => html`<${SessionRow} each=${each} />`} />
        <${ListFoot} pages=${pages} />
      </div>
    </${Screen}>`;
}

export default function SessionsScreen() {
  const { parts } = useCell(place);
  return parts.length ? html`<${Replay} id=${parts.join("/")} />` : html`<${SessionList} />`;
}
