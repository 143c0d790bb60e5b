// One memory: its text, where it comes from, what became of it, and what can be done with it.
import { erase, forget, restore, tag } from "../../core/actions.js";
import { get, memoryPath, post, useRequest } from "../../core/api.js";
import { useBriefs } from "../../core/briefs.js";
import { useMemoryChanges } from "../../core/events.js";
import { count, counted, moment, nameOf } from "../../core/format.js";
import { useKeys } from "../../core/keys.js";
import { html, useCallback, useCell, useEffect, useRef, useState } from "../../core/lib.js";
import { canWrite, login } from "../../core/login.js";
import { addressOf, place, setQuery } from "../../core/router.js";
import { lazy } from "../../parts/lazy.js";
import { Action, Empty, ErrorNote, Loading, Note, Screen } from "../../parts/page.js";
import { Badges, When } from "../../parts/rows.js";
import { attempt, say } from "../../parts/toast.js";
import { Chunks, Similar, Used } from "./around.js";
import { Editor } from "./editor.js";
import { Facts } from "./facts.js";
import { TextView } from "./text.js";

const History = lazy(() => import("./history.js"));
const PickMemory = lazy(() => import("../../parts/pick.js"));

/** @type {[string, string][]} */
const TABS = [["text", "Text"], ["chunks", "Chunks"], ["history", "History"], ["similar", "Similar"], ["used", "Used in"]];

/** @param {{memory: any, now: string}} props */
function Tabs({ memory, now }) {
  const numbers = /** @type {Record<string, number>} */ ({ chunks: memory.chunks });
  return html`
    <nav class="tabs" aria-label="About this memory">
      ${TABS.map(([name, label]) => html`
        <a key=${name} href=${addressOf("memory", [memory.memory_id], { tab: name === "text" ? null : name })} aria-current=${now === name ? "page" : undefined}>
          ${label}${numbers[name] !== undefined && html` <span class="hint">${count(numbers[name])}</span>`}
        </a>`)}
    </nav>`;
}

/** Name the memory that is valid instead. @param {{id: string}} props */
function SupersededBy({ id }) {
  const found = useBriefs([id])?.get(id);
  return html`<${Note} tone="warn">Superseded by <a href=${addressOf("memory", [id])} dir="auto">${found ? nameOf(found) : "another memory"}</a>. Searches rank this one lower.</${Note}>`;
}

/** @param {{memory: any}} props */
const State = ({ memory }) => html`
  ${memory.superseded_by && html`<${SupersededBy} id=${memory.superseded_by} />`}
  ${memory.expires_at && new Date(memory.expires_at) < new Date() && html`<${Note} tone="warn">Expired ${moment(memory.expires_at)}: searches leave it out.</${Note}>`}
  ${memory.damaged && html`<${Note} tone="warn"><strong>This text is not the one that was saved:</strong> the file of the store has changed. Run byheart doctor.</${Note}>`}`;

/** @param {{memory: any, reload: () => void, onErased: (proof: any) => void}} props */
function Actions({ memory, reload, onErased }) {
  const [picks, setPicks] = useState(false);
  const id = memory.memory_id;
  /** @param {string} text @param {() => Promise<unknown>} action @param {() => Promise<unknown>} back */
  const change = (text, action, back) => void attempt(async () => {
    await action();
    reload();
    say(text, { undo: async () => { await back(); reload(); } });
  });
  const pin = (on) => post(memoryPath(id, on ? "/pin" : "/unpin"));
  const pinOrNot = () => change(memory.pinned_at ? "No longer pinned." : "Pinned: it is part of every context.", () => pin(!memory.pinned_at), () => pin(memory.pinned_at));
  const supersede = (by) => {
    const replace = (other) => post(memoryPath(id, "/supersede"), { by: other });
    setPicks(false);
    change(by ? "Superseded." : "Valid again.", () => replace(by), () => replace(memory.superseded_by));
  };
  const edit = () => setQuery({ edit: 1, tab: null });
  const forgetIt = () => void forget([id], reload);
  const eraseIt = async () => {
    const proof = await erase(id);
    if (proof) onErased(proof);
  };
  useKeys({ e: { label: "Edit", run: edit }, "#": { label: "Forget", run: forgetIt } });
  return html`
    <${Action} icon="edit" hint="e" onClick=${edit}>Edit</${Action}>
    <${Action} icon="pin" aria-pressed=${!!memory.pinned_at} onClick=${pinOrNot}>${memory.pinned_at ? "Unpin" : "Pin"}</${Action}>
    <${Action} icon="tag" onClick=${() => void tag([memory], reload)}>Tag</${Action}>
    <${Action} icon="layers" onClick=${() => (memory.superseded_by ? supersede(null) : setPicks(true))}>${memory.superseded_by ? "Make valid" : "Supersede"}</${Action}>
    <${Action} icon="trash" hint="#" onClick=${forgetIt}>Forget</${Action}>
    <button class="text-button danger-text" onClick=${() => void eraseIt()}>Forget for good…</button>
    ${picks && html`<${PickMemory} title="Supersede by" lead="Choose the memory that is right instead of this one." without=${id}
      onPick=${(other) => supersede(other.memory_id)} onClose=${() => setPicks(false)} />`}`;
}

/** The proof that nothing is left of an erased memory. @param {{proof: any}} props */
function Proof({ proof }) {
  const { removal } = proof;
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), []);
  const clean = removal && !removal.traces.length && !removal.unproved && !proof.still_found.length;
  return html`
    <${Screen} title="Forgotten for good" takeFocus=${false}>
      <div ref=${heading} tabindex="-1" role="status">
        <${Note} tone=${clean ? "info" : "warn"}>
          <strong>${clean ? "No trace is left in the store." : "The memory is erased, but its absence could not be proved."}</strong>
          ${removal?.unproved && html`<p>${removal.unproved}</p>`}
        </${Note}>
      </div>
      ${removal && html`
        <dl class="facts">
          <dt>Erased</dt>
          <dd>${counted(removal.memories, "memory", "memories")}, ${counted(removal.texts, "text")}, ${counted(removal.chunks, "chunk")}, ${counted(removal.vectors, "vector")}, ${counted(removal.history, "history entry", "history entries")}</dd>
          <dt>Files searched</dt>
          <dd>${removal.files_searched.length ? removal.files_searched.map((each) => html`<div class="mono" key=${each}>${each}</div>`) : "none"}</dd>
          <dt>Traces found</dt>
          <dd>${removal.traces.length ? removal.traces.join(", ") : "none"}</dd>
        </dl>`}
      <p class="after"><a class="button" href="/">Back to the search</a></p>
    </${Screen}>`;
}

/** A memory that cannot be read: forgotten, erased or never there. @param {{id: string, error: any, reload: () => void}} props */
function Unreadable({ id, error, reload }) {
  const forgotten = error.kind === "missing" && /forgotten on/.test(error.detail);
  const bringBack = () => void attempt(async () => {
    await restore([id]);
    reload();
    say("Restored.");
  });
  if (!forgotten) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  return html`
    <${Empty} title="This memory was forgotten" icon="trash">
      <p>${error.detail}. It is hidden from every search and context.</p>
      <p>${canWrite() && html`<button class="button primary" onClick=${bringBack}>Restore it</button> `}<a class="button" href="/">Back to the search</a></p>
    </${Empty}>`;
}

/** What counts as a change: reading a memory is none. */
const stateOf = (memory) => JSON.stringify({ ...memory, accessed_at: null, access_count: 0 });

export default function MemoryScreen() {
  const { parts, query } = useCell(place);
  const id = parts[0] ?? "";
  const { data: memory, error, reload } = useRequest((signal) => get(memoryPath(id), {}, signal), [id]);
  const [proof, setProof] = useState(/** @type {any} */ (null));
  const [changed, setChanged] = useState(false);
  const edits = query.has("edit");
  const writes = useCell(login) && canWrite();
  // An event does not tell who made the change: compare, so that own changes are not announced.
  useMemoryChanges(id, useCallback(() => {
    get(memoryPath(id)).then((now) => memory && setChanged(stateOf(now) !== stateOf(memory)), () => setChanged(true));
  }, [id, memory]));
  useEffect(() => setChanged(false), [memory]);
  if (proof) return html`<${Proof} proof=${proof} />`;
  if (error) return html`<${Screen} title="Memory"><${Unreadable} id=${id} error=${error} reload=${reload} /></${Screen}>`;
  if (!memory) return html`<${Screen} title="Memory"><${Loading} /></${Screen}>`;
  const tab = TABS.some(([name]) => name === query.get("tab")) ? String(query.get("tab")) : "text";
  const views = /** @type {Record<string, unknown>} */ ({
    text: TextView, chunks: Chunks, history: History, similar: Similar, used: Used,
  });
  return html`
    <${Screen} title=${nameOf(memory)} wide
      lead=${html`<span class="hit-foot"><${Badges} item=${memory} /><span>saved <${When} at=${memory.created_at} />${memory.version > 1 && html`, changed <${When} at=${memory.updated_at} /> (version ${memory.version})`}</span></span>`}
      actions=${writes && !edits && html`<${Actions} memory=${memory} reload=${reload} onErased=${setProof} />`}>
      <${State} memory=${memory} />
      <div role="status">
        ${changed && !edits && html`<div class="note"><div>This memory was changed elsewhere. <button class="text-button" onClick=${reload}>Show the change</button></div></div>`}
      </div>
      ${edits && writes
        ? html`<${Editor} key=${memory.memory_id} memory=${memory} reload=${reload} onDone=${() => setQuery({ edit: null }, { replace: true })} />`
        : html`
          <div class="memory">
            <div class="memory-main">
              <${Tabs} memory=${memory} now=${tab} />
              <${views[tab]} key=${`${tab}${memory.version}`} memory=${memory} />
            </div>
            <${Facts} memory=${memory} />
          </div>`}
    </${Screen}>`;
}
