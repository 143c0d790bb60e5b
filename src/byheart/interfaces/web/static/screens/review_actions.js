// The actions of the review, each with its way back.
import { exportAddress, restore } from "../core/actions.js";
import { memoryPath, patch, post } from "../core/api.js";
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
 * @property {(item: any) => string} label the button of one item
 * @property {string} many the button for several
 * @property {string} help
 * @property {(item: any) => boolean} fits
 * @property {(job: Job) => Promise<() => Promise<unknown>>} act returns how to undo it
 * @property {string} done what was done to the items, for the message
 * @property {boolean} [danger]
 */

const isPair = (item) => item.memories.length > 1;

/** @type {Record<string, ReviewAction>} */
export const ACTIONS = {
  keep: {
    key: "a", label: () => "Keep", many: "Keep", done: "kept",
    help: "All is well: do not ask again until it changes",
    fits: () => true,
    act: async ({ item }) => {
      await post("/review/keep", { item_id: item.item_id });
      return () => post("/review/unkeep", { item_id: item.item_id });
    },
  },
  merge: {
    key: "m", label: () => "Merge", many: "Merge", done: "merged", danger: true,
    help: "The one that stays gets the tags and entities of the others, which disappear",
    fits: isPair,
    act: async (job) => {
      const others = othersOf(job);
      const id = job.kept.memory_id;
      await post(memoryPath(id, "/merge"), { others });
      return async () => {
        await restore(others);
        await patch(memoryPath(id), { tags: job.kept.tags });
      };
    },
  },
  supersede: {
    key: "s", label: () => "Supersede", many: "Supersede", done: "superseded",
    help: "The one that stays replaces the others; they are kept as earlier knowledge",
    fits: isPair,
    act: async (job) => {
      const others = othersOf(job);
      for (const id of others) await post(memoryPath(id, "/supersede"), { by: job.kept.memory_id });
      return async () => { for (const id of others) await post(memoryPath(id, "/supersede"), {}); };
    },
  },
  extend: {
    key: "t", label: () => `Extend by ${EXTENSION_DAYS} days`, many: `Extend by ${EXTENSION_DAYS} days`, done: "extended",
    help: `Let it expire ${EXTENSION_DAYS} days from now`,
    fits: (item) => item.memories.some((each) => each.expires_at),
    act: async ({ item }) => {
      const these = item.memories.filter((each) => each.expires_at);
      for (const each of these) await patch(memoryPath(each.memory_id), { ttl_days: EXTENSION_DAYS });
      return async () => { for (const each of these) await patch(memoryPath(each.memory_id), { expires_at: each.expires_at }); };
    },
  },
  forget: {
    key: "#", label: (item) => (isPair(item) ? "Forget the other" : "Forget"), many: "Forget", done: "forgotten", danger: true,
    help: "Hide it from every search and context",
    fits: () => true,
    act: async (job) => {
      const done = await post("/forget", { memory_id: goneOf(job), reason: `review: ${job.item.reason}` });
      return () => restore(done.memory_ids);
    },
  },
};

/** What an action would do, before it does it to several items. @param {string} name @param {Job[]} jobs */
async function explain(name, jobs) {
  const gone = name === "forget" ? jobs.flatMap(goneOf) : name === "merge" ? jobs.flatMap(othersOf) : [];
  // The server says which memories would really be hidden.
  const would = gone.length ? await post("/forget", { memory_id: [...new Set(gone)], dry_run: true }) : null;
  const touched = [...new Set(jobs.flatMap(({ item }) => item.memories.map((each) => each.memory_id)))];
  const line = (job) => {
    const names = job.item.memories.filter((each) => (gone.length ? gone.includes(each.memory_id) : each !== job.kept || job.item.memories.length === 1)).map(nameOf);
    return html`<li key=${job.item.item_id} dir="auto">${names.join("; ")}${name === "merge" || name === "supersede" ? ` → ${nameOf(job.kept)}` : ""}</li>`;
  };
  return html`
    ${would && html`<p>${counted(would.count, "memory", "memories")} would disappear from every search and context. You can undo it.</p>`}
    <ul class="names">${jobs.slice(0, NAMES_SHOWN).map(line)}${jobs.length > NAMES_SHOWN && html`<li>… and ${jobs.length - NAMES_SHOWN} more</li>`}</ul>
    <p><a href=${exportAddress(touched)} download>Export them first</a> to keep a copy in a file.</p>`;
}

/**
 * Do an action to items; several are shown first. A failure leaves the rest of the items alone.
 * @param {string} name @param {Job[]} jobs @param {() => void} reload
 * @returns {Promise<boolean>} whether all were done
 */
export async function run(name, jobs, reload) {
  const action = ACTIONS[name];
  /** @type {(() => Promise<unknown>)[]} */
  const undo = [];
  const undoAll = async () => {
    for (const each of [...undo].reverse()) await each();
    reload();
  };
  try {
    if (jobs.length > 1) {
      const sure = await ask({
        title: `${action.many}: ${counted(jobs.length, "item")}?`,
        body: await explain(name, jobs),
        action: `${action.many} (${jobs.length})`,
        danger: action.danger,
      });
      if (sure === null) return false;
    }
    for (const job of jobs) undo.push(await action.act(job));
    say(`${counted(jobs.length, "item")} ${action.done}.`, { undo: undoAll });
    return true;
  } catch (error) {
    sayError(error);
    if (undo.length) say(`${counted(undo.length, "item")} of ${jobs.length} ${action.done}.`, { undo: undoAll });
    if (jobs.length > 1) reload();
    return false;
  }
}
