// What memories are called, asked for many at once.
import { post } from "./api.js";
import { useEffect, useState } from "./lib.js";

const MOST_IDS = 1000;

/**
 * Ask for the brief descriptions of memories; forgotten ones are missing.
 * @param {string[]} ids
 * @param {AbortSignal} [signal]
 * @returns {Promise<any[]>} in the order of `ids`
 */
export async function loadBriefs(ids, signal) {
  if (!ids.length) return [];
  const answer = await post("/brief", { memory_id: ids }, signal);
  const found = new Map(answer.memories.map((each) => [each.memory_id, each]));
  return ids.flatMap((id) => found.get(id) ?? []);
}

/**
 * The descriptions of memories by their ids, or null until they are loaded.
 * @param {string[]} ids
 * @returns {Map<string, any> | null}
 */
export function useBriefs(ids) {
  const [found, setFound] = useState(/** @type {Map<string, any> | null} */ (null));
  useEffect(() => {
    const controller = new AbortController();
    // Without their names the memories are shown by their ids.
    loadBriefs([...new Set(ids)].slice(0, MOST_IDS), controller.signal)
      .then((all) => setFound(new Map(all.map((each) => [each.memory_id, each]))), () => controller.signal.aborted || setFound(new Map()));
    return () => controller.abort();
  }, [ids.join(" ")]);
  return found;
}
