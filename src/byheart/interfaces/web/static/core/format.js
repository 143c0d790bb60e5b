// Numbers, times and texts as people read them.

const number = new Intl.NumberFormat("en");
// The words are English; the order of a date and the clock of 12 or 24 hours are the person's.
const english = navigator.languages.find((each) => /^en\b/.test(each)) ?? "en";
const { hourCycle } = new Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions();
const dayFormat = new Intl.DateTimeFormat(english, { dateStyle: "medium" });
const momentFormat = new Intl.DateTimeFormat(english, { dateStyle: "medium", timeStyle: "short", hourCycle });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });

/** @param {number} value */
export const count = (value) => number.format(value);

/**
 * Write a number with its noun: "1 memory", "3 memories".
 * @param {number} value @param {string} one @param {string} [many]
 */
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** @param {string | Date} at */
export const moment = (at) => momentFormat.format(new Date(at));
/** @param {string | Date} at */
export const day = (at) => dayFormat.format(new Date(at));

/** The day of a moment where the person is, such as 2026-11-18. @param {string | number | Date} at */
export function localDay(at) {
  const here = new Date(at);
  return new Date(here.getTime() - here.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["year", 31_536_000], ["month", 2_592_000], ["week", 604_800], ["day", 86_400], ["hour", 3600], ["minute", 60]];

/** Write a time as seen from now: "3 hours ago". @param {string | Date} at @param {number} [now] */
export function ago(at, now = Date.now()) {
  const seconds = (new Date(at).getTime() - now) / 1000;
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return Math.abs(seconds) < 45 ? "just now" : relative.format(Math.trunc(seconds), "second");
}

/** @param {number} value from 0 to 1 */
export const percent = (value) => `${Math.round(value * 100)} %`;

/** @param {number} ms */
export const milliseconds = (ms) => (ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** @param {number} bytes */
export function bytes(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  let value = bytes;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

// Characters that change the direction of text or cannot be seen: they could make a text look
// like another one, so they are shown by their code.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Make unseen and direction-changing characters visible. @param {string} text */
export const visible = (text) => text.replace(UNSEEN, (each) => `⟦U+${(each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟧`);

/** Shorten a text for one line. @param {string} text @param {number} [length] */
export function shorten(text, length = 160) {
  const line = visible(text.slice(0, length * 4)).replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length - 1).trimEnd()}…` : line;
}

/** The start of what a memory says; a text that only repeats a prompt has no summary.
 * @param {{summary?: string, content?: string, kind?: string}} memory */
export const saysOf = (memory) => memory.summary || memory.content || (memory.kind ? `${memory.kind} that repeats what was said before` : "");

/** What a memory is called: its title, or the start of what it says. @param {{title?: string|null, summary?: string, content?: string, kind?: string, memory_id: string}} memory */
export const nameOf = (memory) => shorten(memory.title || saysOf(memory) || memory.memory_id, 140);
