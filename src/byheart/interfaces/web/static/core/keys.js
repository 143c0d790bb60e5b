// The keyboard: single keys that screens offer, and the list of them for the help.
import { cell, choiceCell, useLayoutEffect, useRef } from "./lib.js";

/** @typedef {{label: string, run: (event: KeyboardEvent) => void, hidden?: boolean}} Key */
/** @typedef {Record<string, Key>} KeyMap */

/** Whether single keys do something: people who speak to their computer may want to switch them off (WCAG 2.1.4). */
export const singleKeys = choiceCell("byheart-keys", ["on", "off"]);

/** The maps in force; a later one wins. */
export const keyMaps = cell(/** @type {KeyMap[]} */ ([]));

/** @param {EventTarget | null} target */
const isTyping = (target) => target instanceof HTMLElement
  && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  && !(target instanceof HTMLInputElement && /^(checkbox|radio|range|button)$/.test(target.type));

/** Listen to the keyboard. */
export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (singleKeys.get() === "off" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    // Enter and Space belong to a focused link or button.
    const control = event.target instanceof Element && event.target.closest("a, button, summary, input");
    if (control && (event.key === "Enter" || event.key === " ")) return;
    const maps = keyMaps.get();
    for (let at = maps.length - 1; at >= 0; at -= 1) {
      const key = maps[at][event.key];
      if (!key) continue;
      event.preventDefault();
      key.run(event);
      return;
    }
  });
}

/**
 * Offer keys while the component is shown. Every key needs a button as well. Offer a key even
 * while there is nothing to do for it: maps that come and go lose keys of people who type fast.
 * @param {KeyMap} map
 */
export function useKeys(map) {
  const latest = useRef(map);
  latest.current = map;
  const names = Object.keys(map).join(" ");
  // Before the next paint: a fast typist presses the next key in the same moment.
  useLayoutEffect(() => {
    /** @type {KeyMap} */
    const stable = {};
    for (const name of Object.keys(latest.current)) {
      stable[name] = {
        label: latest.current[name].label,
        hidden: latest.current[name].hidden,
        run: (event) => latest.current[name]?.run(event),
      };
    }
    keyMaps.set([...keyMaps.get(), stable]);
    return () => keyMaps.set(keyMaps.get().filter((each) => each !== stable));
  }, [names]);
}
