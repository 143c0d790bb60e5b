// Live changes: one stream of server-sent events for the whole page.
import { get } from "./api.js";
import { cell, useCallback, useEffect, useState } from "./lib.js";

/** @typedef {{memory_id: string, operation: string, session_id: string|null, kind: string}} Change */
/** @typedef {{change: number, memories: Change[], more: boolean}} Changes */

/** Whether the stream is open. */
export const live = cell(false);
/** @type {Set<(changes: Changes) => void>} */
const listeners = new Set();

/**
 * Call a function for each group of changes, about once a second at most.
 * @param {(changes: Changes) => void} listener
 * @returns {() => void} stop
 */
export function onChanges(listener) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** @param {Changes} changes */
const tell = (changes) => [...listeners].forEach((listener) => listener(changes));

const LOOK_MS = 1000;
const NEWEST = 10;

/**
 * Look for new memories once a second, for servers without a stream of events.
 * @param {() => boolean} isNeeded
 */
async function lookForNew(isNeeded) {
  /** @type {string | null} */
  let latest = null;
  while (isNeeded()) {
    if (document.visibilityState === "visible") {
      const page = await get("/memories", { limit: NEWEST }).catch(() => null);
      live.set(page !== null);
      if (page) {
        const fresh = page.memories.filter((each) => latest !== null && each.created_at > latest);
        latest = page.memories.reduce((last, each) => (each.created_at > last ? each.created_at : last), latest ?? "");
        const memories = fresh.map((each) => ({ memory_id: each.memory_id, operation: "create", session_id: each.session_id, kind: each.kind }));
        if (fresh.length) tell({ change: 0, memories, more: fresh.length === NEWEST });
      }
    }
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
}

/** Open the stream; the browser reconnects by itself until the login ends. */
export function startEvents() {
  /** @type {EventSource | null} */
  let source = null;
  let pause = 1000;
  let looks = false;
  const open = () => {
    source = new EventSource("/events");
    source.addEventListener("hello", () => {
      pause = 1000;
      looks = false;
      live.set(true);
    });
    source.addEventListener("changes", (event) => {
      tell(JSON.parse(event.data));
    });
    source.addEventListener("bye", () => {
      looks = false;
      live.set(false);
      source?.close();
    });
    source.addEventListener("error", () => {
      // The browser gives up after an answer that is no stream, such as 404 or 503.
      if (source?.readyState === EventSource.CLOSED) {
        if (!looks) {
          looks = true;
          void lookForNew(() => looks);
        }
        pause = Math.min(pause * 4, 300_000);
        setTimeout(open, pause);
      } else live.set(false);
    });
  };
  open();
}

/**
 * Count the changes since the list was loaded, for a "3 new" pill: the list does not jump.
 * @param {(change: Change) => boolean} [matters]
 * @returns {{count: number, more: boolean, clear: () => void}}
 */
export function useNews(matters = (change) => change.operation === "create") {
  const [news, setNews] = useState(/** @type {{ids: Set<string>, more: boolean}} */ ({ ids: new Set(), more: false }));
  useEffect(() => onChanges((changes) => {
    const ids = changes.memories.filter(matters).map((change) => change.memory_id);
    if (!ids.length && !changes.more) return;
    setNews((before) => ({ ids: new Set([...before.ids, ...ids]), more: before.more || changes.more }));
  }), []);
  const clear = useCallback(() => setNews({ ids: new Set(), more: false }), []);
  return { count: news.ids.size, more: news.more, clear };
}

/**
 * Call a function when one memory changes.
 * @param {string | null} memoryId
 * @param {(change: Change) => void} listener
 */
export function useMemoryChanges(memoryId, listener) {
  useEffect(() => onChanges((changes) => {
    const change = changes.memories.findLast((each) => each.memory_id === memoryId);
    if (change) listener(change);
  }), [memoryId, listener]);
}
