// The one import of the libraries: `html` templates, hooks and a small observable value.
import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";
import { useEffect, useState } from "../vendor/hooks.js";

export { Fragment, createPortal, h, render } from "../vendor/preact.js";
export {
  useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState,
} from "../vendor/hooks.js";

/** @typedef {import("../vendor/preact.js").Node} Node */

export const html = htm.bind(h);

/**
 * A value that components follow with `useCell`.
 * @template T
 * @typedef {{get: () => T, set: (value: T) => void, follow: (listener: (value: T) => void) => () => void}} Cell
 */

/**
 * Make an observable value.
 * @template T
 * @param {T} first
 * @returns {Cell<T>}
 */
export function cell(first) {
  let value = first;
  /** @type {Set<(value: T) => void>} */
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener(value);
    },
    follow(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/**
 * Make an observable choice that this browser remembers; the first choice is the default.
 * @template {string} T
 * @param {string} name
 * @param {readonly T[]} choices
 * @returns {Cell<T>}
 */
export function choiceCell(name, choices) {
  /** @type {string | null} */
  let stored = null;
  try {
    stored = localStorage.getItem(name);
  } catch {
    // Storage is blocked: the choice lasts until the page is closed.
  }
  const made = cell(choices.find((each) => each === stored) ?? choices[0]);
  made.follow((value) => {
    try {
      localStorage.setItem(name, value);
    } catch {
      // As above.
    }
  });
  return made;
}

/**
 * Read a cell in a component; the component renders again when the value changes.
 * @template T
 * @param {Cell<T>} followed
 * @returns {T}
 */
export function useCell(followed) {
  const [value, setValue] = useState(() => followed.get());
  useEffect(() => {
    setValue(() => followed.get());
    return followed.follow((next) => setValue(() => next));
  }, [followed]);
  return value;
}

/**
 * Join class names; leave out the falsy ones.
 * @param {...(string | false | null | undefined)} names
 */
export const classes = (...names) => names.filter(Boolean).join(" ");
