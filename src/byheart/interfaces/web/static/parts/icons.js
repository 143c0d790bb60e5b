// Icons of 16 by 16, drawn as strokes. They are decoration: the control beside them has a name.
import { html } from "../core/lib.js";

/** @type {Record<string, string>} */
const PATHS = {
  search: "M7 12.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM11 11l3.5 3.5",
  timeline: "M2 3.5h12v11H2zM2 6.5h12M5 1.5v3M11 1.5v3M5 9.5h2M9 9.5h2M5 12h2",
  sessions: "M2 3h12v8H7l-3 3v-3H2z",
  context: "M3 2h10v12H3zM5.5 5h5M5.5 8h5M5.5 11h3",
  review: "M2 4l1.5 1.5L6 3M2 11l1.5 1.5L6 10M8.5 4.5H14M8.5 11.5H14",
  map: "M3.5 4.5h.01M6.5 3h.01M5.5 7h.01M11 4h.01M13 6.5h.01M4 12h.01M7.5 13h.01M11.5 12h.01M9 9h.01M13 10h.01",
  figures: "M2 14h12M4 14V9M8 14V3M12 14V6.5",
  pin: "M10 1.5 14.5 6l-3 1-2.5 2.5-.5 3L3.5 7.5l3-.5L9 4.5zM6 10l-4.5 4.5",
  trash: "M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4M6.5 7v4M9.5 7v4",
  edit: "M2.5 13.5l.7-3L11 2.7l2.3 2.3-7.8 7.8zM9.5 4.2l2.3 2.3",
  undo: "M5.5 3 2.5 6l3 3M2.5 6h7a4 4 0 0 1 0 8H6",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5 6.5 12 13 4.5",
  tag: "M2 2h5.5l6.5 6.5-5.5 5.5L2 7.5zM5 5h.01",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  left: "M10 4 6 8l4 4",
  right: "M6 4l4 4-4 4",
  menu: "M2 4h12M2 8h12M2 12h12",
  help: "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM6.2 6.2a1.9 1.9 0 1 1 2.6 1.8c-.5.2-.8.6-.8 1.2M8 11.5h.01",
  light: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  dark: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7Z",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  logout: "M6 2.5H2.5v11H6M6.5 8H14M11 5l3 3-3 3",
  warning: "M8 2 14.5 13.5h-13zM8 6.5v3M8 11.5h.01",
  info: "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 7.5v4M8 5h.01",
  copy: "M5.5 5.5h8v8h-8zM3 10.5H2.5v-8h8V3",
  file: "M3.5 1.5h6l3 3v10h-9zM9 1.5v3.5h3.5",
  download: "M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7",
  book: "M2 3c2.5-.8 4.5-.5 6 .8 1.5-1.3 3.5-1.6 6-.8v10c-2.5-.8-4.5-.5-6 .8-1.5-1.3-3.5-1.6-6-.8zM8 3.8v10",
  layers: "M8 1.5 14.5 5 8 8.500 1.5 5zM1.500 8.500 8 12l6.5-3.500M1.5 11.5 8 15l6.5-3.5",
};

/** @param {{name: string}} props */
export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d=${PATHS[name] ?? ""} />
  </svg>`;
