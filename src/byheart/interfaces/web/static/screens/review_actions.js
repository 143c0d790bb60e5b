// The actions of the review, each with its way back.
import { exportAddress, restore } from "../core/actions.js";
import { get, memoryPath, patch, post } from "../core/api.js";
import { counted, nameOf } from "../core/format.js";
import { html } from "../core/lib.js";
import { ask } from "../parts/dialog.js";
import { say, sayError } from "../parts/toast.js";

const EXTENSION_DAYS = 90;
const NAMES_SHOWN = 8;

/** @typedef {{item: any, kept: any}} Job an item and the memory that stays */

/** The ids of the other memories of an item. @param {Job} job */
const othersOf = ({ item, kept }) => item.memories.filter((each) => each !== kept).map((each) => each.memory_id);
/** The memories that "forget" takes: the others, or the only one. @param {Job} job */
const goneOf = (job) => (job.item.memories.length > 1 ? othersOf(job) : [job.kept.memory_id]);

/**
 * @typedef {object} ReviewAction
 * @property {string} key
 * @property {string} label the button
 * @property {string} help
 * @property {(job: Job, undo: (() => Promise<unknown>)[]) => Promise<void>} act each step that was done adds how to undo it
 * @property {string} done what was done to the items, for the message
 * @property {boolean} [danger]
 */

/** The actions by the names that the server gives them; it says which of them fit an item.
 * @type {Record<string, ReviewAction>} */
export const ACTIONS = {
  keep: {
    key: "a", label: "Keep", done: "kept",
    help: "All is well: do not ask again until it changes",
    act: async ({ item }, undo) => {
      await post("/review/keep", { item_id: item.item_id });
      undo.push(() => post("/review/unkeep", { item_id: item.item_id }));
    },
  },
  trust: {
    key: "y", label: "Trust", done: "trusted",
    help: "Let it enter prompts again",
    act: async ({ kept }, undo) => {
      await post("/trust", { memory_id: kept.memory_id });
      undo.push(() => post("/distrust", { memory_id: kept.memory_id }));
    },
  },
  merge: {
    key: "m", label: "Merge", done: "merged", danger: true,
    help: "The one that stays gets the tags and entities of the others, which disappear",
    act: async (job, undo) => {
      const others = othersOf(job);
      const path = memoryPath(job.kept.memory_id);
      const before = await get(path);
      await post(`${path}/merge`, { others });
      undo.push(async () => {
        await restore(others);
        await patch(path, { tags: before.tags, entities: before.derived.includes("entities") ? null : before.entities });
        if (!before.pinned_at) await post(`${path}/unpin`);
      });
    },
  },
  supersede: {
    key: "s", label: "Supersede", done: "superseded",
    help: "The one that stays replaces the others; they are kept as earlier knowledge",
    act: async (job, undo) => {
      for (const id of othersOf(job)) {
        await post(memoryPath(id, "/supersede"), { by: job.kept.memory_id });
        undo.push(() => post(memoryPath(id, "/supersede"), {}));
      }
    },
  },
  extend: {
    key: "t", label: `Extend by ${EXTENSION_DAYS} days`, done: "extended",
    help: `Let it expire ${EXTENSION_DAYS} days from now`,
    act: async ({ item }, undo) => {
      for (const each of item.memories) {
        await patch(memoryPath(each.memory_id), { ttl_days: EXTENSION_DAYS });
        undo.push(() => patch(memoryPath(each.memory_id), { expires_at: each.expires_at }));
      }
    },
  },
  forget: {
    key: "#", label: "Forget", done: "forgotten", danger: true,
    help: "Hide it from every search and context; of several, all but the one that stays",
    act: async (job, undo) => {
      const done = await post("/forget", { memory_id: goneOf(job), reason: `review: ${job.item.reason}` });
      undo.push(() => restore(done.memory_ids));
    },
  },
};

/** The actions that fit all of these items, the most likely first. @param {any[]} items @returns {[string, ReviewAction][]} */
export const actionsFor = (items) => (items[0]?.actions ?? [])
  .filter((name) => name in ACTIONS && items.every((item) => item.actions.includes(name)))
  .map((name) => [name, ACTIONS[name]]);

/** What an action would do, before it does it to several items. @param {string} name @param {Job[]} jobs */
async function explain(name, jobs) {
  const goneBy = name === "forget" ? goneOf : name === "merge" ? othersOf : () => [];
  const gone = [...new Set(jobs.flatMap(goneBy))];
  // The server says which memories would really be hidden.
  const would = gone.length ? await post("/forget", { memory_id: gone, dry_run: true }) : null;
  const touched = [...new Set(jobs.flatMap(({ item }) => item.memories.map((each) => each.memory_id)))];
  /** @param {Job} job */
  const line = (job) => {
    const names = job.item.memories.filter((each) => goneOf(job).includes(each.memory_id)).map(nameOf);
    return html`<li key=${job.item.item_id} dir="auto">${names.join("; ")}${name === "merge" || name === "supersede" ? ` → ${nameOf(job.kept)}` : ""}</li>`;
  };
  return html`
    ${would && html`<p>${counted(would.count, "memory", "memories")} would disappear from every search and context. You can undo it.</p>`}
    <ul class="names">${jobs.slice(0, NAMES_SHOWN).map(line)}${jobs.length > NAMES_SHOWN && html`<li>… and ${jobs.length - NAMES_SHOWN} more</li>`}</ul>
    <p><a href=${exportAddress(touched)} download>Export them first</a> to keep a copy in a file.</p>`;
}

/**
 * Do an action to items; several are shown first. A failure leaves the rest of the items alone.
 * @param {string} name @param {Job[]} jobs @param {() => void} onUndone
 * @returns {Promise<boolean>} whether all were done
 */
export async function run(name, jobs, onUndone) {
  const action = ACTIONS[name];
  /** @type {(() => Promise<unknown>)[]} */
  const undo = [];
  let done = 0;
  const undoAll = async () => {
    for (const each of [...undo].reverse()) await each();
    onUndone();
  };
  try {
    if (jobs.length > 1) {
      const sure = await ask({
        title: `${action.label}: ${counted(jobs.length, "item")}?`,
        body: await explain(name, jobs),
        action: `${action.label} (${jobs.length})`,
        danger: action.danger,
      });
      if (sure === null) return false;
    }
    for (const job of jobs) {
      await action.act(job, undo);
      done += 1;
    }
    say(`${counted(jobs.length, "item")} ${action.done}.`, { undo: undoAll });
    return true;
  } catch (error) {
    sayError(error);
    if (undo.length) say(`${counted(done, "item")} of ${jobs.length} ${action.done}.`, { undo: undoAll });
    return false;
  }
}
