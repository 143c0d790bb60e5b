// Filters as chips: each one can be changed or taken away; a menu adds others.
import { get } from "../core/api.js";
import { FILTERS, readFilters, spellFilter, spellPairs } from "../core/filters.js";
import { shorten } from "../core/format.js";
import { html, useCell, useEffect, useId, useRef, useState } from "../core/lib.js";
import { place, setQuery } from "../core/router.js";
import { Icon } from "./icons.js";

/** @typedef {import("../core/filters.js").FilterInfo} FilterInfo */

/**
 * Suggest values that the store has.
 * @param {string} name @param {string} typed
 * @returns {Promise<string[]>}
 */
async function suggest(name, typed) {
  if (name === "session_id") {
    return (await get("/sessions", { limit: 50 })).map((each) => each.session_id);
  }
  if (name === "entities") {
    const page = await get("/entities", { limit: 30, prefix: typed || null });
    return page.entities.map((each) => each.name);
  }
  return [];
}

/** The form for one filter. @param {{filter: FilterInfo, value: any, onDone: () => void}} props */
function FilterForm({ filter, value, onDone }) {
  const id = useId();
  const first = useRef(/** @type {HTMLElement | null} */ (null));
  const written = filter.type === "pairs" ? spellPairs(value ?? {}) : String(value ?? "");
  const [text, setText] = useState(Array.isArray(value) ? value.join(", ") : written);
  const [options, setOptions] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    first.current?.focus();
    suggest(filter.name, "").then(setOptions, () => {});
  }, []);
  const apply = (next) => {
    setQuery({ [filter.name]: next });
    onDone();
  };
  const submit = (event) => {
    event.preventDefault();
    const trimmed = text.trim();
    if (filter.type === "words") apply(trimmed.split(",").map((each) => each.trim()).filter(Boolean));
    else if (filter.type === "moment" && trimmed) apply(new Date(trimmed).toISOString());
    else apply(trimmed);
  };
  const type = filter.type === "moment" ? "datetime-local" : filter.type === "number" ? "number" : "text";
  const shown = type === "datetime-local" && text.endsWith("Z") ? localMoment(text) : text;
  const chosen = new Set(Array.isArray(value) ? value : value === undefined ? [] : [String(value)]);
  return html`
    <form class="filter-form" onSubmit=${submit}>
      <p class="hint" id="${id}-help">${filter.help}</p>
      ${filter.choices && html`
        <div class="choices" role="group" aria-label=${filter.label}>
          ${filter.choices.map((each, at) => html`
            <button type="button" key=${each} class="choice" aria-pressed=${chosen.has(each)} ref=${at === 0 ? first : undefined}
              onClick=${() => apply(filter.type === "words"
                ? [...(chosen.has(each) ? [...chosen].filter((one) => one !== each) : [...chosen, each])]
                : each)}>${each}</button>`)}
        </div>`}
      ${filter.type !== "choice" && html`
        <div class="filter-input">
          <input id=${id} type=${type} value=${shown} aria-label=${filter.label} aria-describedby="${id}-help"
            ref=${filter.choices ? undefined : first} list="${id}-options" autocomplete="off"
            min=${type === "number" ? 0 : undefined} max=${type === "number" ? 10 : undefined} step=${type === "number" ? 0.5 : undefined}
            placeholder=${filter.type === "words" ? "one, or several with commas" : undefined}
            onInput=${(event) => setText(event.target.value)} />
          <datalist id="${id}-options">${options.map((each) => html`<option key=${each} value=${each} />`)}</datalist>
          <button class="button primary small" type="submit">Apply</button>
        </div>`}
    </form>`;
}

/** @param {string} iso */
function localMoment(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/**
 * The chips of the filters in the address, and the menu that adds one. `names` limits the filters.
 * @param {{names?: readonly string[]}} props
 */
export function FilterChips({ names }) {
  const { query } = useCell(place);
  const filters = readFilters(query, names);
  const [open, setOpen] = useState(/** @type {string | null} */ (null));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const opener = useRef(/** @type {HTMLElement | null} */ (null));
  const offered = FILTERS.filter((each) => !names || names.includes(each.name));
  const close = () => {
    setOpen(null);
    opener.current?.focus();
  };
  useEffect(() => {
    if (open === null) return;
    const outside = (event) => event.target instanceof Node && !box.current?.contains(event.target) && setOpen(null);
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const toggle = (name) => (event) => {
    opener.current = event.currentTarget;
    setOpen(open === name ? null : name);
  };
  const editing = offered.find((each) => each.name === open);
  return html`
    <div class="chips" ref=${box} role="group" aria-label="Filters"
      onKeyDown=${(event) => { if (event.key === "Escape" && open !== null) { event.stopPropagation(); close(); } }}>
      ${offered.filter((each) => each.name in filters).map((each) => html`
        <span class="chip" key=${each.name}>
          <button class="chip-text" aria-expanded=${open === each.name} onClick=${toggle(each.name)}>${shorten(spellFilter(each, filters[each.name]), 80)}</button>
          <button class="chip-close" aria-label="Remove the filter ${each.label}" onClick=${() => setQuery({ [each.name]: null })}><${Icon} name="close" /></button>
        </span>`)}
      <button class="chip chip-add" aria-expanded=${open === "+"} onClick=${toggle("+")}><${Icon} name="plus" />Filter</button>
      ${Object.keys(filters).length > 1 && html`
        <button class="text-button" onClick=${() => setQuery(Object.fromEntries(offered.map((each) => [each.name, null])))}>Clear all</button>`}
      ${open === "+" && html`
        <div class="popover" role="group" aria-label="Add a filter">
          ${offered.map((each) => html`
            <button key=${each.name} class="menu-item" onClick=${() => {
              if (each.type === "flag") { setQuery({ [each.name]: "true" }); setOpen(null); } else setOpen(each.name);
            }}><span>${each.label}</span><span class="hint">${each.help}</span></button>`)}
        </div>`}
      ${editing && html`
        <div class="popover" role="group" aria-label=${editing.label}>
          <${FilterForm} key=${editing.name} filter=${editing} value=${filters[editing.name]} onDone=${close} />
        </div>`}
    </div>`;
}
