// The client of the REST interface, and its errors in the words that a person needs.
import { cell, useCallback, useEffect, useRef, useState } from "./lib.js";
import { toQuery } from "./router.js";

/** @typedef {"gone"|"login"|"forbidden"|"conflict"|"missing"|"invalid"|"busy"|"full"|"failed"} ErrorKind */

/** Whether the server answers: `ok`, `gone` (no answer) or `expired` (the login ended). */
export const connection = cell(/** @type {"ok"|"gone"|"expired"} */ ("ok"));

export class ApiError extends Error {
  /**
   * @param {ErrorKind} kind
   * @param {string} title what happened, in a few words
   * @param {string} detail what the server says
   * @param {string} hint what to do next
   * @param {number} [status]
   */
  constructor(kind, title, detail, hint, status = 0) {
    super(detail || title);
    this.kind = kind;
    this.title = title;
    this.detail = detail;
    this.hint = hint;
    this.status = status;
    this.waitSeconds = 1;
  }
}

const GONE = () => new ApiError(
  "gone",
  "The server does not answer",
  "Byheart has stopped, or this computer lost the connection to it.",
  "Run “byheart open” in a terminal. This page goes on when the server is back.",
);
const EXPIRED = () => new ApiError(
  "login",
  "Your login has expired",
  "A login is valid for 12 hours, unless it is revoked.",
  "Run “byheart open” in a terminal. Text that you typed here stays until you close the page.",
  401,
);

/** @type {Record<number, [ErrorKind, string]>} */
const TITLES = {
  400: ["invalid", "The server did not understand this"],
  403: ["forbidden", "This login may not do that"],
  404: ["missing", "Not found"],
  409: ["conflict", "Somebody else was faster"],
  413: ["invalid", "This is too large"],
  422: ["invalid", "This value does not work"],
  429: ["busy", "Too many requests"],
  503: ["busy", "The server cannot do this now"],
  507: ["full", "The disk of the store is full"],
};

/**
 * @param {number} status
 * @param {{detail?: string, hint?: string} | null} problem
 */
function errorOf(status, problem) {
  if (status === 401) return EXPIRED();
  const [kind, title] = TITLES[status] ?? ["failed", "Something went wrong"];
  return new ApiError(kind, title, problem?.detail ?? `status ${status}`, problem?.hint ?? "", status);
}

/**
 * Call a route and return its JSON; `wantsFile` returns the response itself.
 * @param {string} method
 * @param {string} path
 * @param {{query?: Record<string, unknown>, body?: unknown, signal?: AbortSignal, wantsFile?: boolean}} [given]
 * @returns {Promise<any>}
 */
export async function call(method, path, given = {}) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await callOnce(method, path, given);
    } catch (error) {
      // Actions on many memories may be too fast for the server, which says how long to wait.
      if (!(error instanceof ApiError) || error.status !== 429 || tries >= 3) throw error;
      await new Promise((done) => setTimeout(done, Math.min(20, error.waitSeconds) * 1000));
    }
  }
}

/** @param {string} method @param {string} path @param {{query?: Record<string, unknown>, body?: unknown, signal?: AbortSignal, wantsFile?: boolean}} given */
async function callOnce(method, path, given) {
  const query = toQuery(given.query ?? {}).toString();
  const hasBody = method === "POST" || method === "PATCH";
  let response;
  try {
    response = await fetch(query ? `${path}?${query}` : path, {
      method,
      headers: hasBody ? { "Content-Type": "application/json" } : {},
      body: hasBody ? JSON.stringify(given.body ?? {}) : undefined,
      signal: given.signal,
      credentials: "same-origin",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    connection.set("gone");
    throw GONE();
  }
  connection.set(response.status === 401 ? "expired" : "ok");
  if (response.ok && given.wantsFile) return response;
  if (response.status === 204) return null;
  const isJson = /\bjson\b/.test(response.headers.get("Content-Type") ?? "");
  const answer = isJson ? await response.json().catch(() => null) : null;
  if (!response.ok) throw Object.assign(errorOf(response.status, answer), { waitSeconds: Number(response.headers.get("Retry-After")) || 1 });
  return answer;
}

/** @param {string} path @param {Record<string, unknown>} [query] @param {AbortSignal} [signal] */
export const get = (path, query, signal) => call("GET", path, { query, signal });
/** @param {string} path @param {unknown} [body] @param {AbortSignal} [signal] */
export const post = (path, body, signal) => call("POST", path, { body, signal });
/** @param {string} path @param {unknown} body */
export const patch = (path, body) => call("PATCH", path, { body });
/** @param {string} path @param {Record<string, unknown>} [query] */
export const remove = (path, query) => call("DELETE", path, { query });

/** Make the path of one memory or of something about it. @param {string} id @param {string} [rest] */
export const memoryPath = (id, rest = "") => `/memories/${encodeURIComponent(id)}${rest}`;

/**
 * Ask again when the server or the login is back.
 * @param {ApiError | null} error
 * @param {() => void} reload
 */
function useRecovery(error, reload) {
  const waits = error?.kind === "gone" || error?.kind === "login";
  useEffect(() => (waits ? connection.follow((state) => state === "ok" && reload()) : undefined), [waits, reload]);
}

/**
 * @template T
 * @typedef {{data: T | null, error: ApiError | null, loading: boolean, reload: () => void, setData: (data: T) => void}} Request
 */

/**
 * Load something when the component appears and whenever `inputs` change. The last answer stays
 * while the next one is loading; a later request cancels an earlier one.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T> | null} ask  `null` asks nothing
 * @param {readonly unknown[]} inputs
 * @returns {Request<T>}
 */
export function useRequest(ask, inputs) {
  const [state, setState] = useState(
    /** @type {{data: T | null, error: ApiError | null, loading: boolean}} */
    ({ data: null, error: null, loading: true }),
  );
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    const asked = ask(controller.signal);
    if (!asked) {
      setState({ data: null, error: null, loading: false });
      return;
    }
    setState((before) => ({ ...before, error: null, loading: true }));
    asked.then(
      (data) => controller.signal.aborted || setState({ data, error: null, loading: false }),
      (error) => controller.signal.aborted || setState({ data: null, error: wrap(error), loading: false }),
    );
    return () => controller.abort();
  }, [...inputs, round]);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  useRecovery(state.error, reload);
  const setData = useCallback((data) => setState({ data, error: null, loading: false }), []);
  return { ...state, reload, setData };
}

/**
 * @template T
 * @typedef {object} Pages
 * @property {T[]} items
 * @property {any} answer the last page as the server answered it
 * @property {number | null} total
 * @property {boolean} hasMore
 * @property {boolean} loading
 * @property {ApiError | null} error
 * @property {() => void} more
 * @property {() => void} reload start again with the first page
 * @property {() => void} refresh load all rows that are shown again
 * @property {(change: (items: T[]) => T[]) => void} change
 */

/**
 * Make the loader of a list for `usePages`.
 * @param {string} path
 * @param {string} name the list in the answer
 * @param {Record<string, unknown>} query
 * @returns {(offset: number, limit: number, signal: AbortSignal) => Promise<any>}
 */
export const pageOf = (path, name, query) => async (offset, limit, signal) => {
  const answer = await get(path, { ...query, limit, offset }, signal);
  return { items: answer[name], total: answer[`${name}_total`] ?? answer.total, hasMore: answer.has_more, answer };
};

/** The number of rows that the server gives at once. */
const MOST_ROWS = 1000;

/**
 * Load a list page by page.
 * @template T
 * @param {(offset: number, limit: number, signal: AbortSignal) => Promise<{items: T[], total?: number | null, hasMore: boolean, answer?: unknown}>} load
 * @param {readonly unknown[]} inputs
 * @param {number} [size]
 * @returns {Pages<T>}
 */
export function usePages(load, inputs, size = 50) {
  const empty = { items: /** @type {T[]} */ ([]), answer: null, total: null, hasMore: false, loading: true, error: null };
  const [state, setState] = useState(/** @type {any} */ (empty));
  const [round, setRound] = useState(0);
  const running = useRef(/** @type {AbortController | null} */ (null));
  const latest = useRef(state);
  latest.current = state;

  /** @param {number} offset @param {number} [limit] */
  const fetchPage = (offset, limit = size) => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setState((before) => ({ ...before, error: null, loading: true }));
    load(offset, limit, controller.signal).then(
      (page) => {
        if (controller.signal.aborted) return;
        const before = offset ? latest.current.items : [];
        setState({
          items: [...before, ...page.items],
          answer: page.answer ?? page,
          total: page.total ?? null,
          hasMore: page.hasMore,
          loading: false,
          error: null,
        });
      },
      (error) => {
        if (controller.signal.aborted) return;
        setState((before) => ({ ...before, error: wrap(error), loading: false }));
      },
    );
  };
  useEffect(() => {
    fetchPage(0);
    return () => running.current?.abort();
  }, [...inputs, round]);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  useRecovery(state.error, reload);
  return {
    ...state,
    reload,
    refresh: useCallback(() => fetchPage(0, Math.min(MOST_ROWS, Math.max(size, latest.current.items.length))), [...inputs]),
    more: () => latest.current.hasMore && !latest.current.loading && fetchPage(latest.current.items.length),
    change: useCallback((change) => setState((before) => ({ ...before, items: change(before.items) })), []),
  };
}

/** @param {unknown} error @returns {ApiError} */
export function wrap(error) {
  if (error instanceof ApiError) return error;
  return new ApiError("failed", "Something went wrong in this page", String(error), "Reload the page.");
}
