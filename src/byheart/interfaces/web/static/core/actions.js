// Actions on memories that several screens offer; each tells what it did and how to undo it.
import { call, get, memoryPath, patch, post, remove } from "./api.js";
import { counted } from "./format.js";
import { ask } from "../parts/dialog.js";
import { say, sayError, untilDone } from "../parts/toast.js";
import { html } from "./lib.js";

/** @param {string[]} ids */
const spell = (ids) => counted(ids.length, "memory", "memories");

/** The address of a file with these memories, or with all, for `byheart import`. @param {string[]} [ids] */
export const exportAddress = (ids = []) => `/export?${new URLSearchParams(ids.map((id) => ["memory_id", id]))}`;

/** Addresses above this length fail in some browsers and proxies. */
const LONGEST_ADDRESS = 4000;

/** Ask for a file by POST, because its address would be too long. @param {string[]} ids */
async function exportMany(ids) {
  const response = await call("POST", "/export", { body: { memory_id: ids }, wantsFile: true });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `byheart-${new Date().toISOString().slice(0, 10)}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Tell what links of `exportAddress` do; the browser itself receives the file, however large it is. */
export function startExports() {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[download]");
    if (!(link instanceof HTMLAnchorElement) || link.pathname !== "/export") return;
    say("The export is being written; the browser then saves the file.");
    if (link.href.length <= LONGEST_ADDRESS) return;
    event.preventDefault();
    exportMany(new URLSearchParams(link.search).getAll("memory_id")).catch(sayError);
  });
}

/**
 * Hide memories; undo restores them. Several are counted first, and an export is offered.
 * @param {string[]} ids
 * @param {() => void} onChange called after the action and after undo
 * @param {string[]} [names] what the memories are called, for the question
 * @returns {Promise<boolean>} whether they were forgotten
 */
export const forget = (ids, onChange, names = []) => untilDone(askAndForget(ids, onChange, names));

/** @param {string[]} ids @param {() => void} onChange @param {string[]} names */
async function askAndForget(ids, onChange, names) {
  try {
    if (ids.length > 1) {
      const would = await post("/forget", { memory_id: ids, dry_run: true });
      const sure = await ask({
        title: `Forget ${counted(would.count, "memory", "memories")}?`,
        body: html`
          <ul class="names">${names.slice(0, 5).map((name) => html`<li key=${name} dir="auto">${name}</li>`)}${names.length > 5 && html`<li>… and ${names.length - 5} more</li>`}</ul>
          <p>They disappear from every search and context. You can undo it.</p>
          <p><a href=${exportAddress(would.memory_ids)} download>Export them first</a> to keep a copy in a file.</p>`,
        action: `Forget ${would.count}`,
        danger: true,
      });
      if (sure === null) return false;
    }
    const done = await post("/forget", { memory_id: ids });
    onChange();
    say(`${spell(done.memory_ids)} forgotten.`, { undo: async () => { await restore(done.memory_ids); onChange(); } });
    return true;
  } catch (error) {
    sayError(error);
    return false;
  }
}

/** Bring forgotten memories back. @param {string[]} ids */
export async function restore(ids) {
  for (const id of ids) await post(memoryPath(id, "/restore"));
}

/** Restore memories from the list of forgotten ones; undo forgets them again. @param {string[]} ids @param {() => void} onChange */
export const bringBack = (ids, onChange) => untilDone((async () => {
  try {
    await restore(ids);
    say(`${spell(ids)} restored.`, { undo: async () => { await post("/forget", { memory_id: ids }); onChange(); } });
  } catch (error) {
    sayError(error);
  }
  onChange(); // some may have been restored before the error
})());

/**
 * Erase a memory with every trace, after its confirmation was typed.
 * @param {string} id
 * @returns {Promise<any>} the proof of the server, or null if nothing was erased
 */
export async function erase(id) {
  const sure = await ask({
    title: "Forget for good?",
    body: html`
      <p>The text, its earlier versions, chunks, vectors and history are erased from the store. <strong>This cannot be undone.</strong></p>
      <p><a href=${exportAddress([id])} download>Export it first</a> to keep a copy. Backups and exports that were made before keep the text.</p>`,
    action: "Erase every trace",
    danger: true,
    typed: "forget",
  });
  if (sure === null) return null;
  try {
    return await remove(memoryPath(id), { hard: true });
  } catch (error) {
    sayError(error);
    return null;
  }
}

/**
 * Add tags to memories, or take tags away with a minus in front: `deploy, -old`.
 * @param {{memory_id: string}[]} memories
 * @param {() => void} onChange
 */
export async function tag(memories, onChange) {
  const typed = await ask({
    title: `Tag ${counted(memories.length, "memory", "memories")}`,
    body: "",
    action: "Apply",
    input: { label: "Tags", hint: "Separate tags with commas. A minus in front takes a tag away: deploy, -old", required: true },
  });
  if (typed === null) return;
  const words = typed.split(",").map((each) => each.trim()).filter(Boolean);
  const gone = new Set(words.filter((each) => each.startsWith("-")).map((each) => each.slice(1)));
  const added = words.filter((each) => !each.startsWith("-"));
  /** @type {[string, string[]][]} */
  const before = [];
  try {
    for (const { memory_id: id } of memories) {
      const memory = await get(memoryPath(id));
      const tags = [...new Set([...memory.tags, ...added])].filter((each) => !gone.has(each));
      await patch(memoryPath(id), { tags, expected_version: memory.version });
      before.push([id, memory.tags]);
    }
    say(`${counted(before.length, "memory", "memories")} tagged.`, { undo: () => untag(before, onChange) });
  } catch (error) {
    sayError(error);
    if (before.length) say(`${counted(before.length, "memory", "memories")} of ${memories.length} tagged.`, { undo: () => untag(before, onChange) });
  }
  onChange();
}

/** @param {[string, string[]][]} before @param {() => void} onChange */
async function untag(before, onChange) {
  for (const [id, tags] of before) await patch(memoryPath(id), { tags });
  onChange();
}
