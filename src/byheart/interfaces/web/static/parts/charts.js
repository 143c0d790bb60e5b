// Small charts in SVG, each with a table behind it for people who do not see or trust the picture.
import { count } from "../core/format.js";
import { html, useId } from "../core/lib.js";
import { Stack } from "./stack.js";

/**
 * The frame of a chart: a caption, the picture, and the same figures as a table.
 * @param {{title: string, note?: unknown, columns: string[], rows: (string|number)[][], children?: unknown}} props
 */
export function Figure({ title, note, columns, rows, children }) {
  const id = useId();
  return html`
    <figure class="figure" aria-labelledby=${id}>
      <figcaption id=${id}>${title}</figcaption>
      ${children}
      ${note && html`<p class="hint">${note}</p>`}
      <details class="figure-table">
        <summary>Show as a table</summary>
        <div class="scroll-x" tabindex="0" role="region" aria-label="${title}, table">
          <table>
            <thead><tr>${columns.map((each) => html`<th scope="col" key=${each}>${each}</th>`)}</tr></thead>
            <tbody>${rows.map((row, at) => html`
              <tr key=${at}>${row.map((each, column) => (column === 0
                ? html`<th scope="row" key="0">${each}</th>`
                : html`<td key=${column}>${typeof each === "number" ? count(each) : each}</td>`))}</tr>`)}
            </tbody>
          </table>
        </div>
      </details>
    </figure>`;
}

/** @typedef {{label: string, value: number, href?: string}} Bar */

/** Horizontal bars with their labels and values; `most` fills a line. @param {{bars: Bar[], tone?: string, spell?: (value: number) => string, most?: number}} props */
export function Bars({ bars, tone = "accent", spell = count, most: given = 0 }) {
  const most = Math.max(1e-9, given, ...bars.map((each) => each.value));
  return html`
    <div class="bars" aria-hidden="true">
      ${bars.map((each) => html`
        <div class="bar-line" key=${each.label}>
          <span class="bar-label">${each.label}</span>
          <svg viewBox="0 0 100 10" preserveAspectRatio="none"><rect class="bar-${tone}" width=${(each.value / most) * 100} height="10" rx="1" /></svg>
          <span class="bar-value">${spell(each.value)}</span>
        </div>`)}
    </div>`;
}

/** @typedef {{name: string, tone: string, values: number[]}} Series */

/**
 * Lines over equally spaced points; `labels` name the first and the last.
 * @param {{series: Series[], labels: string[], spell?: (value: number) => string}} props
 */
export function Lines({ series, labels, spell = count }) {
  const width = 600;
  const height = 140;
  const most = Math.max(1e-9, ...series.flatMap((each) => each.values));
  const points = Math.max(2, ...series.map((each) => each.values.length));
  const x = (at) => (at / (points - 1)) * width;
  const y = (value) => height - (value / most) * (height - 6) - 2;
  return html`
    <div class="lines" aria-hidden="true">
      <div class="lines-most">${spell(most)}</div>
      <svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none">
        ${[0.25, 0.5, 0.75].map((part) => html`<line key=${part} class="grid" x1="0" x2=${width} y1=${y(most * part)} y2=${y(most * part)} />`)}
        ${series.map((each) => html`
          <polyline key=${each.name} class="line-${each.tone}" points=${each.values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ")} />`)}
      </svg>
      <div class="lines-labels"><span>${labels[0] ?? ""}</span><span>${labels.at(-1) ?? ""}</span></div>
      ${series.length > 1 && html`<div class="legend">${series.map((each) => html`<span key=${each.name}><i class="key bar-${each.tone}"></i>${each.name}</span>`)}</div>`}
    </div>`;
}

/** Parts of a whole as one stacked bar with a legend. @param {{parts: import("./stack.js").Part[], whole?: number, spell?: (value: number) => string}} props */
export const StackedBar = ({ parts, whole, spell = count }) => html`
  <div class="stacked">
    <${Stack} parts=${parts} whole=${whole} />
    <div class="legend">${parts.map((each) => html`<span key=${each.name}><i class="key bar-${each.tone}" aria-hidden="true"></i>${each.name} <b>${spell(each.value)}</b></span>`)}</div>
  </div>`;

/** Name each week's month where it changes. @param {Date} start a Monday @param {number} weeks */
function monthsOf(start, weeks) {
  const names = [];
  let before = -1;
  for (let week = 0; week < weeks; week += 1) {
    const at = new Date(start.getTime() + (week * 7 + 6) * 86_400_000);
    if (at.getUTCMonth() !== before && week < weeks - 1) names.push({ week, name: at.toLocaleDateString("en", { month: "short", timeZone: "UTC" }) });
    before = at.getUTCMonth();
  }
  // A month that begins in the second week would cover the name before it.
  return names.filter((each, place) => (names[place + 1]?.week ?? Infinity) - each.week > 2);
}

/**
 * A heat map of days: a column for each week, Monday on top. `onDay` is called with the day.
 * @param {{days: Map<string, number>, from: Date, to: Date, chosen?: string | null, onDay?: (day: string) => void}} props
 */
export function HeatMap({ days, from, to, chosen, onDay }) {
  const start = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth(), from.getUTCDate()));
  start.setUTCDate(start.getUTCDate() - ((start.getUTCDay() + 6) % 7));
  const most = Math.max(1, ...days.values());
  const cells = [];
  for (let at = new Date(start), index = 0; at <= to; at.setUTCDate(at.getUTCDate() + 1), index += 1) {
    const day = at.toISOString().slice(0, 10);
    const value = days.get(day) ?? 0;
    const level = value ? Math.min(4, 1 + Math.floor((3 * Math.log1p(value)) / Math.log1p(most))) : 0;
    cells.push(html`
      <rect key=${day} class="heat heat-${level} ${chosen === day ? "heat-chosen" : ""}" x=${Math.floor(index / 7) * 14} y=${18 + (index % 7) * 14} width="11" height="11" rx="2"
        onClick=${onDay && (() => onDay(day))}><title>${day}: ${count(value)}</title></rect>`);
  }
  const weeks = Math.ceil(cells.length / 7);
  return html`
    <svg class="heat-map" width=${weeks * 14} height="116" aria-hidden="true">
      ${monthsOf(start, weeks).map(({ week, name }) => html`<text key=${week} x=${week * 14} y="10">${name}</text>`)}
      ${cells}
    </svg>`;
}
