// Live changes: one stream of server-sent events for the whole page.
import { connection, get } from "./api.js";
import { cell, useCallback, useEffect, useState } from "./lib.js";

/** @typedef {{memory_id: string, operation: string, session_id: string|null, kind: string}} Change */
/** @typedef {{memories: Change[], more: boolean}} Changes */

/** A stream that breaks off is usually there again within this time. */
const CHECK_MS = 2000;

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

/**
 * Follow the stream while the page is visible: a browser has six connections for all its pages.
 * A page that was hidden names the last event that it got, and gets what it missed.
 */
export function startEvents() {
  /** @type {EventSource | null} */
  let source = null;
  let last = "";
  let pause = 1000;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let asking;
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
    live.set(false);
  };
  const open = () => {
    close();
    if (document.visibilityState === "hidden") return;
    source = new EventSource(last ? `/events?since=${last}` : "/events");
    source.addEventListener("hello", (event) => {
      last = event.lastEventId;
      pause = 1000;
      live.set(true);
    });
    source.addEventListener("changes", (event) => {
      last = event.lastEventId;
      const changes = JSON.parse(event.data);
      [...listeners].forEach((listener) => listener(changes));
    });
    // The login has ended: the next question to the server tells the person.
    source.addEventListener("bye", () => {
      close();
      void get("/login").catch(() => null);
    });
    source.addEventListener("error", () => {
      live.set(false);
      // Ask once whether the server is there: a person who only looks learns it too.
      asking ??= setTimeout(() => {
        asking = undefined;
        if (source && !live.get() && connection.get() === "ok") void get("/login").catch(() => null);
      }, CHECK_MS);
      // The browser gives up after an answer that is no stream, such as 401 or 503.
      if (source?.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(open, pause);
      pause = Math.min(pause * 2, 60_000);
    });
  };
  document.addEventListener("visibilitychange", () => (document.visibilityState === "hidden" ? close() : source ?? open()));
  connection.follow((state) => state === "ok" && !live.get() && open());
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
