// Dialogs: the browser's own `dialog` element keeps the focus inside and gives it back.
import { cell, classes, html, useCell, useEffect, useId, useRef, useState } from "../core/lib.js";
import { Icon } from "./icons.js";
import { hush } from "./toast.js";

/**
 * Show a dialog while it is mounted.
 * @param {{title: string, onClose: () => void, wide?: boolean, children?: unknown, footer?: unknown}} props
 */
export function Dialog({ title, onClose, wide, children, footer }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const label = useId();
  useEffect(() => {
    const before = document.activeElement;
    hush();
    element.current?.showModal();
    /** @type {HTMLElement | null | undefined} */ (element.current?.querySelector("input, textarea, [data-first]"))?.focus();
    return () => before instanceof HTMLElement && before.isConnected && before.focus();
  }, []);
  return html`
    <dialog ref=${element} class=${classes("dialog", wide && "dialog-wide")} aria-labelledby=${label}
      onCancel=${(event) => { event.preventDefault(); onClose(); }}
      onClick=${(event) => event.target === element.current && onClose()}>
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id=${label}>${title}</h2>
          <button class="icon-button" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button>
        </header>
        <div class="dialog-main" tabindex="-1">${children}</div>
        ${footer && html`<footer class="dialog-foot">${footer}</footer>`}
      </div>
    </dialog>`;
}

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {unknown} body text or elements
 * @property {string} action what the button says
 * @property {boolean} [danger]
 * @property {string} [typed] the word that must be typed first
 * @property {{label: string, value?: string, long?: boolean, hint?: string, required?: boolean}} [input] ask for a text as well
 */

/** @type {import("../core/lib.js").Cell<{question: Question, answer: (value: string | null) => void} | null>} */
const asked = cell(/** @type {any} */ (null));

/**
 * Ask before an action. Resolves to null if the person says no; otherwise to the text of `input`,
 * or to an empty text if there is no input.
 * @param {Question} question
 * @returns {Promise<string | null>}
 */
export const ask = (question) => new Promise((resolve) => {
  asked.set({ question, answer: (value) => { asked.set(null); resolve(value); } });
});

/** @param {{question: Question, answer: (value: string | null) => void}} props */
function Ask({ question, answer }) {
  const [typed, setTyped] = useState("");
  const [text, setText] = useState(question.input?.value ?? "");
  const id = useId();
  const ready = (!question.typed || typed.trim() === question.typed)
    && (!question.input?.required || text.trim() !== "");
  const submit = (event) => {
    event.preventDefault();
    if (ready) answer(text);
  };
  const onInput = (event) => setText(event.target.value);
  return html`
    <${Dialog} title=${question.title} onClose=${() => answer(null)}>
      <form onSubmit=${submit}>
        <div class="prose">${question.body}</div>
        ${question.input && html`
          <div class="field">
            <label for="${id}-input">${question.input.label}</label>
            ${question.input.long
              ? html`<textarea id="${id}-input" rows="6" value=${text} onInput=${onInput}></textarea>`
              : html`<input id="${id}-input" value=${text} autocomplete="off" onInput=${onInput} />`}
            ${question.input.hint && html`<p class="hint">${question.input.hint}</p>`}
          </div>`}
        ${question.typed && html`
          <div class="field">
            <label for="${id}-typed">Type <strong>${question.typed}</strong> to go on</label>
            <input id="${id}-typed" value=${typed} autocomplete="off" spellcheck=${false}
              onInput=${(event) => setTyped(event.target.value)} />
          </div>`}
        <div class="dialog-buttons">
          <button type="button" class="button" data-first=${question.danger} onClick=${() => answer(null)}>Cancel</button>
          <button type="submit" class=${classes("button", question.danger ? "danger" : "primary")} disabled=${!ready} data-first=${!question.danger}>${question.action}</button>
        </div>
      </form>
    </${Dialog}>`;
}

/** Show the question that `ask` waits for. */
export function Questions() {
  const now = useCell(asked);
  return now && html`<${Ask} key=${now.question.title} ...${now} />`;
}
