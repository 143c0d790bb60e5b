// Addresses: which screen is shown, and its state in the query string.
import { cell } from "./lib.js";
import { SCREENS } from "./screens.js";

/**
 * @typedef {{path: string, parts: string[], query: URLSearchParams, screen: string}} Place
 * `parts` are the decoded parts of the path after the screen's name.
 */

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** @returns {Place} */
function read() {
  const path = location.pathname;
  const query = new URLSearchParams(location.search);
  if (path === "/") return { path, parts: [], query, screen: "search" };
  for (const [screen, info] of Object.entries(SCREENS)) {
    if (screen === "search" || (path !== info.path && !path.startsWith(`${info.path}/`))) continue;
    const parts = path.slice(info.path.length + 1).split("/").filter(Boolean).map(decode);
    return { path, parts, query, screen };
  }
  return { path, parts: [], query, screen: "missing" };
}

/** The place that the page shows. */
export const place = cell(read());

/** A function that may keep the person here, such as an editor with unsaved text. */
/** @type {(() => boolean) | null} */
let guard = null;

/**
 * Ask `mayLeave` before the page shows another place; give `null` to stop asking.
 * @param {(() => boolean) | null} mayLeave
 */
export function guardLeaving(mayLeave) {
  guard = mayLeave;
}

/** @param {BeforeUnloadEvent} event */
function beforeUnload(event) {
  if (guard && !guard()) event.preventDefault();
}

function rememberScroll() {
  history.replaceState({ ...history.state, y: scrollY }, "");
}

/** The number of the shown entry in the history: it tells the way back to a place that is not left. */
let entry = 0;

/**
 * Show another address.
 * @param {string} to
 * @param {{replace?: boolean, keepScroll?: boolean}} [how]
 */
export function go(to, how = {}) {
  const target = new URL(to, location.href);
  if (guard && target.pathname !== location.pathname && !guard()) return;
  if (!how.replace) rememberScroll();
  if (how.replace) history.replaceState({ y: scrollY, entry }, "", target);
  else history.pushState({ y: 0, entry: entry += 1 }, "", target);
  place.set(read());
  if (!how.replace && !how.keepScroll) scrollTo(0, 0);
}

/**
 * Make the address of a screen. Parts are encoded; empty values of the query are left out.
 * @param {string} screen
 * @param {string[]} [parts]
 * @param {Record<string, unknown>} [query]
 */
export function addressOf(screen, parts = [], query = {}) {
  const path = [SCREENS[screen].path.replace(/\/$/, ""), ...parts.map(encodeURIComponent)].join("/") || "/";
  const text = toQuery(query).toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Write values as a query string; a list repeats its name, and an object is JSON.
 * @param {Record<string, unknown>} values
 */
export function toQuery(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") query.append(name, typeof each === "object" ? JSON.stringify(each) : String(each));
    }
  }
  return query;
}

/**
 * Change the query string of the place that is shown.
 * @param {Record<string, unknown>} values
 * @param {{replace?: boolean}} [how]
 */
export function setQuery(values, how = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    query.delete(name);
    for (const [, each] of toQuery({ [name]: value })) query.append(name, each);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), { keepScroll: true, ...how });
}

/** Follow links and the browser's back and forward buttons. */
export function startRouter() {
  history.scrollRestoration = "manual";
  addEventListener("beforeunload", beforeUnload);
  entry = history.state?.entry ?? 0;
  let returns = false;
  addEventListener("popstate", (event) => {
    const to = event.state?.entry ?? 0;
    if (returns) {
      returns = false;
      return;
    }
    if (to !== entry && guard && !guard()) {
      returns = true;
      history.go(entry - to);
      return;
    }
    entry = to;
    place.set(read());
    const y = event.state?.y ?? 0;
    // The list needs a frame to render before it can be scrolled.
    requestAnimationFrame(() => requestAnimationFrame(() => scrollTo(0, y)));
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = event.target instanceof Element && event.target.closest("a[href]");
    if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
    if (link.origin !== location.origin) return;
    if (link.pathname !== "/" && !link.pathname.startsWith("/ui/")) return;
    if (link.hash && link.pathname === location.pathname && link.search === location.search) return;
    event.preventDefault();
    go(link.href);
  });
}
