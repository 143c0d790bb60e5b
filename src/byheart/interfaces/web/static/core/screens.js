// The screens: their addresses, their names in the navigation, and their modules.

/**
 * @typedef {object} ScreenInfo
 * @property {string} path the start of its address
 * @property {string} [label] its name in the navigation; the icon has the screen's own name
 * @property {() => Promise<{default: unknown}>} load its module, loaded when it is first shown
 */

/** @type {Record<string, ScreenInfo>} */
export const SCREENS = {
  search: { path: "/", label: "Search", load: () => import("../screens/search.js") },
  memory: { path: "/ui/memory", load: () => import("../screens/memory/memory.js") },
  timeline: { path: "/ui/timeline", label: "Timeline", load: () => import("../screens/timeline.js") },
  sessions: { path: "/ui/sessions", label: "Sessions", load: () => import("../screens/sessions.js") },
  context: { path: "/ui/context", label: "Context", load: () => import("../screens/context.js") },
  review: { path: "/ui/review", label: "Review", load: () => import("../screens/review.js") },
  map: { path: "/ui/map", label: "Map", load: () => import("../screens/map.js") },
  figures: { path: "/ui/figures", label: "Figures", load: () => import("../screens/figures.js") },
};
