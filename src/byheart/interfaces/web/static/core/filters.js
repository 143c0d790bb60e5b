// The filters of searches and lists: their words, their places in the address, and their values.

import { moment } from "./format.js";

/**
 * @typedef {object} FilterInfo
 * @property {string} name the parameter of the REST interface
 * @property {string} label
 * @property {"words"|"word"|"moment"|"number"|"flag"|"choice"|"pairs"} type `words` takes several values
 * @property {string} help
 * @property {readonly string[]} [choices]
 */

/** Every filter but the space, which the login decides. A test compares the names with the server's.
 * @type {readonly FilterInfo[]} */
export const FILTERS = [
  { name: "kind", label: "Kind", type: "words", help: "What it is.", choices: ["note", "fact", "entity", "relationship", "self", "session_context", "input_prompt", "system_memory", "report", "report_observation", "working_memory", "knowledge_base", "message", "tool_output", "file", "session_summary"] },
  { name: "session_id", label: "Session", type: "word", help: "Memories of this session, and global ones." },
  { name: "include_global", label: "Global memories too", type: "choice", help: "With a session: also memories that belong to no session.", choices: ["true", "false"] },
  { name: "scope", label: "Scope", type: "choice", help: "Only what belongs to a session, or only what belongs to none.", choices: ["session", "global"] },
  { name: "agent_id", label: "Agent", type: "word", help: "Saved by this agent." },
  { name: "tags", label: "Tags", type: "words", help: "With one of these tags." },
  { name: "entities", label: "Entities", type: "words", help: "Naming one of these people, projects or things." },
  { name: "match", label: "Match", type: "choice", help: "Whether one tag or entity is enough.", choices: ["any", "all"] },
  { name: "path", label: "Path", type: "word", help: "Saved under such a path; * stands for any characters." },
  { name: "created_after", label: "Since", type: "moment", help: "Saved at or after this time." },
  { name: "created_before", label: "Before", type: "moment", help: "Saved before this time." },
  { name: "origin", label: "Origin", type: "words", help: "Whose words they are.", choices: ["user", "agent", "tool", "file", "import"] },
  { name: "language", label: "Language", type: "word", help: "A language tag such as de; it finds de-AT too." },
  { name: "as_of", label: "As of", type: "moment", help: "Show the store as it was at this time." },
  { name: "min_importance", label: "Importance", type: "number", help: "At least this important, from 0 to 10." },
  { name: "task_code", label: "Task", type: "word", help: "Of this task." },
  { name: "session_iter", label: "Iteration", type: "word", help: "Of this iteration of a session, such as 2." },
  { name: "source_label", label: "Source", type: "words", help: "Saved with one of these sources." },
  { name: "metadata", label: "Metadata", type: "pairs", help: "With these values in the metadata: project=apollo, year=2026." },
  { name: "trusted", label: "Trusted", type: "choice", help: "Only trusted memories, or only those that wait for review.", choices: ["true", "false"] },
  { name: "include_expired", label: "Expired too", type: "flag", help: "Also memories that have expired." },
];

/** The filters of screens that show all memories: where, whose and what they are. */
export const COMMON_FILTERS = ["kind", "session_id", "agent_id", "tags", "entities", "path", "origin", "language"];

/** The filters whose choices are true and false. */
const YES_OR_NO = ["include_global", "trusted"];

/** @typedef {Record<string, string | string[] | boolean | number | Record<string, unknown>>} Filters */

/**
 * Read `key=value, key=value`: a value that is JSON has its type, any other is a text.
 * @param {string} text
 */
function readPairs(text) {
  return Object.fromEntries(text.split(",").filter((each) => each.includes("=")).map((each) => {
    const [key, ...rest] = each.split("=");
    const value = rest.join("=").trim();
    try {
      return [key.trim(), JSON.parse(value)];
    } catch {
      return [key.trim(), value];
    }
  }));
}

/** Write pairs as they are typed. @param {Record<string, unknown>} pairs */
export function spellPairs(pairs) {
  return Object.entries(pairs).map(([key, value]) => {
    const plain = typeof value === "string" && readPairs(`key=${value}`).key === value;
    return `${key}=${plain ? value : JSON.stringify(value)}`;
  }).join(", ");
}

/**
 * Read the filters from an address; `names` limits them.
 * @param {URLSearchParams} query
 * @param {readonly string[]} [names]
 * @returns {Filters}
 */
export function readFilters(query, names) {
  /** @type {Filters} */
  const found = {};
  for (const { name, type } of FILTERS) {
    if (names && !names.includes(name)) continue;
    const values = query.getAll(name).filter(Boolean);
    if (!values.length) continue;
    if (type === "words") found[name] = values;
    else if (type === "pairs") {
      const pairs = readPairs(values[0]);
      if (Object.keys(pairs).length) found[name] = pairs;
    }
    else if (type === "number") {
      if (Number.isFinite(Number(values[0]))) found[name] = Number(values[0]);
    } else if (type === "flag" || YES_OR_NO.includes(name)) found[name] = values[0] === "true";
    else found[name] = values[0];
  }
  return found;
}

/** Write a filter's value for people. @param {FilterInfo} filter @param {Filters[string]} value */
export function spellFilter(filter, value) {
  if (filter.type === "flag") return filter.label;
  if (filter.type === "moment") return `${filter.label}: ${Number.isNaN(Date.parse(String(value))) ? value : moment(String(value))}`;
  if (filter.name === "min_importance") return `Importance ≥ ${value}`;
  if (filter.name === "trusted") return value ? "Trusted" : "Waiting for review";
  if (filter.name === "include_global") return value ? "With global memories" : "Without global memories";
  if (filter.type === "pairs") return `${filter.label}: ${spellPairs(/** @type {Record<string, unknown>} */ (value))}`;
  return `${filter.label}: ${Array.isArray(value) ? value.join(", ") : value}`;
}
