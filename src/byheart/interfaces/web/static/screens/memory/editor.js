// The editor of a memory. If somebody else was faster, it shows both texts.
import { get, memoryPath, patch, wrap } from "../../core/api.js";
import { localDay, visible } from "../../core/format.js";
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../../core/lib.js";
import { guardLeaving } from "../../core/router.js";
import { Diff } from "../../parts/diff.js";
import { ErrorNote, Note } from "../../parts/page.js";
import { say } from "../../parts/toast.js";

/** A text that is longer than this cannot be edited in a browser with ease. */
const MOST_CHARS = 1_000_000;

/** @typedef {{content: string, title: string, summary: string, kind: string, tags: string, importance: string, expires_at: string}} Draft */

/** @param {any} memory @returns {Draft} */
const draftOf = (memory) => ({
  content: memory.content,
  title: memory.title ?? "",
  summary: memory.derived.includes("summary") ? "" : memory.summary,
  kind: memory.kind,
  tags: memory.tags.join(", "),
  importance: memory.derived.includes("importance") ? "" : String(memory.importance),
  expires_at: memory.expires_at ? localDay(memory.expires_at) : "",
});

/** Only the fields that the person changed. @param {Draft} draft @param {Draft} before */
function changesOf(draft, before) {
  /** @type {Record<string, unknown>} */
  const changed = {};
  if (draft.content !== before.content) changed.content = draft.content;
  if (draft.title !== before.title) changed.title = draft.title.trim() || null;
  if (draft.summary !== before.summary) changed.summary = draft.summary.trim() || null;
  if (draft.kind !== before.kind) changed.kind = draft.kind.trim();
  if (draft.tags !== before.tags) changed.tags = draft.tags.split(",").map((each) => each.trim()).filter(Boolean);
  if (draft.importance !== before.importance) changed.importance = draft.importance === "" ? null : Number(draft.importance);
  if (draft.expires_at !== before.expires_at) changed.expires_at = draft.expires_at ? new Date(`${draft.expires_at}T00:00`).toISOString() : null;
  return changed;
}

/** @param {{theirs: any, mine: string, onMine: () => void, onTheirs: () => void}} props */
function Conflict({ theirs, mine, onMine, onTheirs }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => box.current?.focus(), []);
  return html`
    <section class="conflict" ref=${box} tabindex="-1" role="alert" aria-label="Conflict">
      <${Note} tone="warn"><strong>Somebody else changed this memory while you edited it.</strong> Nothing was written. Compare, then decide; your text stays in the editor below.</${Note}>
      <div class="conflict-texts">
        <div><h2>Stored now (version ${theirs.version})</h2><pre class="saved" dir="auto">${visible(theirs.content.slice(0, 20_000))}</pre></div>
        <div><h2>Yours, compared with it</h2><${Diff} before=${theirs.content} after=${mine} /></div>
      </div>
      <div class="dialog-buttons">
        <button class="button" onClick=${onTheirs}>Take the stored text</button>
        <button class="button primary" onClick=${onMine}>Save mine over version ${theirs.version}</button>
      </div>
    </section>`;
}

/** @param {{memory: any, reload: () => void, onDone: () => void}} props */
export function Editor({ memory, reload, onDone }) {
  const id = useId();
  const [base, setBase] = useState(memory);
  const [draft, setDraft] = useState(() => draftOf(memory));
  const [theirs, setTheirs] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {import("../../core/api.js").ApiError | null} */ (null));
  const [saving, setSaving] = useState(false);
  const text = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const changes = changesOf(draft, draftOf(base));
  const dirty = Object.keys(changes).length > 0;
  // Before the next paint: a person who types fast would press the keys of the screen.
  useLayoutEffect(() => {
    text.current?.setSelectionRange(0, 0); // a long text is read from its start
    text.current?.focus();
  }, []);
  useLayoutEffect(() => {
    guardLeaving(dirty ? () => confirm("Your changes are not saved. Leave anyway?") : null);
    return () => guardLeaving(null);
  }, [dirty]);

  const set = (/** @type {keyof Draft} */ name) => (event) => setDraft((before) => ({ ...before, [name]: event.target.value }));
  const leave = () => {
    guardLeaving(null);
    onDone();
  };
  const save = async (version) => {
    setSaving(true);
    setError(null);
    try {
      const saved = await patch(memoryPath(base.memory_id), { ...changes, expected_version: version });
      const before = Object.fromEntries(Object.keys(changes).map((name) => [name, base.derived.includes(name) ? null : base[name]]));
      leave();
      reload();
      say(`Saved as version ${saved.version}.`, { undo: async () => { await patch(memoryPath(base.memory_id), { ...before, expected_version: saved.version }); reload(); } });
    } catch (failure) {
      const problem = wrap(failure);
      if (problem.kind === "conflict") setTheirs(await get(memoryPath(base.memory_id)).catch(() => null));
      setError(problem);
    } finally {
      setSaving(false);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    if (dirty) void save(base.version);
    else leave();
  };
  if (memory.content.length > MOST_CHARS) {
    return html`<${Note} tone="warn">This text is too long to be edited here. Use <code>byheart update ${memory.memory_id} --file FILE</code>.</${Note}>
      <button class="button" onClick=${leave}>Back</button>`;
  }
  return html`
    ${theirs && html`<${Conflict} theirs=${theirs} mine=${draft.content}
      onMine=${() => { setBase(theirs); setTheirs(null); void save(theirs.version); }}
      onTheirs=${() => { setBase(theirs); setDraft(draftOf(theirs)); setTheirs(null); setError(null); }} />`}
    ${error && !theirs && html`<${ErrorNote} error=${error} />`}
    <form class="editor" onSubmit=${submit} onKeyDown=${(event) => { if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) submit(event); }}>
      <div class="field">
        <label for="${id}-content">Text</label>
        <textarea ref=${text} id="${id}-content" rows=${Math.min(24, Math.max(6, draft.content.split("\n").length + 2))} dir="auto" required value=${draft.content} onInput=${set("content")}></textarea>
      </div>
      <div class="field">
        <label for="${id}-summary">Summary</label>
        <input id="${id}-summary" dir="auto" placeholder="made from the text" aria-describedby="${id}-stale" value=${draft.summary} onInput=${set("summary")} />
        <p class="hint" id="${id}-stale" role="status">${draft.summary && changes.content !== undefined && changes.summary === undefined && "It was written for the earlier text: change it, or empty it to have one made."}</p>
      </div>
      <div class="field-row">
        <div class="field"><label for="${id}-title">Title</label><input id="${id}-title" dir="auto" value=${draft.title} onInput=${set("title")} /></div>
        <div class="field"><label for="${id}-kind">Kind</label><input id="${id}-kind" required value=${draft.kind} onInput=${set("kind")} /></div>
        <div class="field"><label for="${id}-tags">Tags, with commas</label><input id="${id}-tags" dir="auto" value=${draft.tags} onInput=${set("tags")} /></div>
        <div class="field"><label for="${id}-importance">Importance, 0 to 10</label><input id="${id}-importance" type="number" min="0" max="10" step="0.1" placeholder="estimated: ${base.importance}" value=${draft.importance} onInput=${set("importance")} /></div>
        <div class="field"><label for="${id}-expires">Expires on</label><input id="${id}-expires" type="date" value=${draft.expires_at} onInput=${set("expires_at")} /></div>
      </div>
      <div class="dialog-buttons">
        <span class="hint">The earlier text stays in the history.</span>
        <button type="button" class="button" onClick=${leave}>Cancel</button>
        <button type="submit" class="button primary" disabled=${saving}>${saving ? "Saving…" : "Save"} <kbd>Ctrl ⏎</kbd></button>
      </div>
    </form>`;
}
