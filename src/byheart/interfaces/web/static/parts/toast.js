// Short messages at the bottom of the page, with a way to undo the last action.
import { wrap } from "../core/api.js";
import { cell, classes, html, useCell } from "../core/lib.js";
import { useKeys } from "../core/keys.js";
import { Icon } from "./icons.js";

/** @typedef {{id: number, text: string, tone: "plain"|"bad", hint?: string, undo?: (() => unknown) | null}} Toast */

const SHOWN_MS = 10_000;
const toasts = cell(/** @type {Toast[]} */ ([]));
let next = 0;

/** The last messages for screen readers. */
const spoken = cell(/** @type {{id: number, text: string}[]} */ ([]));

/** Forget the messages for screen readers: after a dialog they would say them again. */
export const hush = () => spoken.set([]);

/** Have screen readers say a text. @param {string} text */
export const announce = (text) => spoken.set([...spoken.get().slice(-2), { id: (next += 1), text }]);

/** @param {number} id */
const close = (id) => toasts.set(toasts.get().filter((each) => each.id !== id));

/**
 * Show a message; `undo` takes the action back.
 * @param {string} text
 * @param {{undo?: () => unknown, tone?: "plain"|"bad", hint?: string}} [given]
 */
export function say(text, given = {}) {
  const id = (next += 1);
  toasts.set([...toasts.get().slice(-2), { id, text, tone: given.tone ?? "plain", hint: given.hint, undo: given.undo }]);
  announce([text, given.hint, given.undo && "To undo it, press u, or the button at the end of the page."].filter(Boolean).join(" "));
  // A message that needs a decision stays until it is closed (WCAG 2.2.1).
  if (!given.undo && given.tone !== "bad") setTimeout(() => close(id), SHOWN_MS);
  return id;
}

/** Show an error with what to do next. @param {unknown} error */
export function sayError(error) {
  const { title, detail, hint } = wrap(error);
  say(`${title}: ${detail}`, { tone: "bad", hint });
}

/** Do something, and show its error. @param {() => Promise<unknown>} action */
export async function attempt(action) {
  try {
    await action();
  } catch (error) {
    sayError(error);
  }
}

/** @type {Promise<unknown>} */
let running = Promise.resolve();

/**
 * Let undo wait for an action: people who type fast press `u` before the server has answered.
 * @template T
 * @param {Promise<T>} action
 * @returns {Promise<T>}
 */
export function untilDone(action) {
  running = Promise.allSettled([running, action]);
  return action;
}

/** Take the last action back. */
export async function undoLast() {
  await running;
  const toast = toasts.get().findLast((each) => each.undo);
  if (!toast?.undo) {
    say("There is nothing to undo.");
    return;
  }
  close(toast.id);
  try {
    await toast.undo();
    say("Undone.");
  } catch (error) {
    sayError(error);
  }
}

/** Show the messages. Screen readers say them from a place that is always there, and only the new ones. */
export function Toasts() {
  const shown = useCell(toasts);
  const said = useCell(spoken);
  useKeys({ u: { label: "Undo the last action", run: () => void undoLast() } });
  return html`
    <div class="unseen" role="status" aria-atomic="false">${said.map((each) => html`<p key=${each.id}>${each.text}</p>`)}</div>
    <section class="toasts" aria-label="Messages">
      ${shown.map((toast) => html`
        <div key=${toast.id} class=${classes("toast", toast.tone === "bad" && "toast-bad")}>
          <div class="toast-text">
            <div>${toast.text}</div>
            ${toast.hint && html`<div class="toast-hint">${toast.hint}</div>`}
          </div>
          ${toast.undo && html`<button class="button small" aria-keyshortcuts="u" onClick=${() => void undoLast()}>Undo <kbd aria-hidden="true">u</kbd></button>`}
          <button class="icon-button" aria-label="Close this message" onClick=${() => close(toast.id)}><${Icon} name="close" /></button>
        </div>`)}
    </section>`;
}
