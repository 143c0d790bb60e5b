// How a hit is shown: the verdict in words, its marked snippet, and why it is where it is.
import { count, percent, visible } from "../core/format.js";
import { classes, html } from "../core/lib.js";
import { splitSnippet } from "../core/snippets.js";
import { Stack } from "./stack.js";

/** @type {Record<string, [string, string]>} the words of each verdict, and what it means */
export const VERDICTS = {
  answered: ["Answered", "The first memory most likely answers this."],
  weak: ["Unsure", "The first memory may be related; check it before you rely on it."],
  none: ["No answer", "Nothing here answers this; below are only the nearest memories."],
};

/** The verdict of a search that found `total` memories. @param {string} verdict @param {number} total */
export const verdictOf = (verdict, total) => (total
  ? VERDICTS[verdict] ?? VERDICTS.weak
  : ["No answer", "No memory matches this question and these filters."]);

/** The verdict in words, first. @param {{verdict: string, confidence: number, total: number, elapsed?: string}} props */
export function Verdict({ verdict, confidence, total, elapsed }) {
  const [word, meaning] = verdictOf(verdict, total);
  return html`
    <div class=${classes("verdict", `verdict-${total ? verdict : "none"}`)}>
      <strong class="verdict-word">${word}</strong><span class="unseen">: </span>
      <span>${meaning}${" "}</span>
      <span class="verdict-figures">${[total ? `${percent(confidence)} sure` : "", elapsed].filter(Boolean).join(" · ")}</span>
    </div>`;
}

/** Text with marked words. @param {{snippet: string, marks: [number, number][]}} props */
export const Marked = ({ snippet, marks }) => splitSnippet(snippet, marks).map((part, at) => (part.marked
  ? html`<mark key=${at}>${visible(part.text)}</mark>`
  : visible(part.text.replace(/\n\s*\n/g, "\n"))));

/** A snippet with its marked words. @param {{snippet: string, marks: [number, number][]}} props */
export const Snippet = (props) => html`<p class="snippet" dir="auto"><${Marked} ...${props} /></p>`;

/** @typedef {{rank: number|null, score: number, contribution: number, terms: Record<string, number>}} Retriever */
/** @typedef {{fusion: string, final_score: number, fts: Retriever|null, vector: Retriever|null, neighbours: number, form: number, feedback: number, time: number, time_alone: number, file: number, reranker: {score: number, rank_before: number, elapsed_ms: number}|null}} Explanation */

/** @param {Explanation} explanation */
const partsOf = (explanation) => [
  { name: "Keywords", tone: "keywords", value: Math.max(0, explanation.fts?.contribution ?? 0) },
  { name: "Meaning", tone: "meaning", value: Math.max(0, explanation.vector?.contribution ?? 0) },
  { name: "Neighbours", tone: "neighbours", value: Math.max(0, explanation.neighbours) },
];

/** The score as a stacked bar; `best` is the score that fills the bar. @param {{explanation: Explanation, best: number}} props */
export function ScoreBar({ explanation, best }) {
  const parts = partsOf(explanation);
  const spoken = parts.map((each) => `${each.name} ${each.value.toFixed(2)}`).join(", ");
  return html`<div class="score-bar" role="img" aria-label="Score ${explanation.final_score.toFixed(2)}: ${spoken}"><${Stack} parts=${parts} whole=${best} /></div>`;
}

/** @param {number | null | undefined} rank counted from 0 */
const place = (rank) => (rank === null || rank === undefined ? "not among its first" : `${rank + 1}.`);

/**
 * Find the word of a text that a term stands for: the server gives stems, such as "kei" for "key".
 * @param {string} term @param {string[]} words
 */
function wordFor(term, words) {
  const near = (word) => {
    let at = 0;
    while (at < term.length && word[at]?.toLowerCase() === term[at]) at += 1;
    return at;
  };
  const best = words.reduce((found, word) => (near(word) > near(found) ? word : found), "");
  return near(best) >= Math.min(2, term.length) ? best : term;
}

/** Why a hit is where it is: shares, ranks and terms. @param {{explanation: Explanation, best: number, words?: string[]}} props */
export function Why({ explanation, best, words = [] }) {
  const { fts, vector, neighbours, form, feedback, time, time_alone: timeAlone, file, reranker } = explanation;
  const terms = Object.entries(fts?.terms ?? {}).sort((a, b) => b[1] - a[1]);
  const share = (value = 0) => value.toFixed(2);
  const factor = (name, value, from) => value !== 1 && [name, "", `× ${share(value)}`, "–", from];
  const rows = /** @type {any[][]} */ ([
    ["Keywords", "keywords", share(fts?.contribution), fts ? place(fts.rank) : "–", terms.length
      ? terms.map(([term, weight]) => html`<span class="term" key=${term} dir="auto">${visible(wordFor(term, words))} <small>${share(weight)}</small></span>`)
      : "no word in common"],
    ["Meaning", "meaning", share(vector?.contribution), vector ? place(vector.rank) : "–", vector ? `cosine ${share(vector.score)}` : "not near in meaning"],
    neighbours > 0 && ["Neighbours", "neighbours", share(neighbours), "–", "turns before and after it match"],
    factor("Form", form, "length, speaker and kind of turn"),
    factor("File", file, "a test or a generated file"),
    timeAlone > 0 && ["Time", "", share(timeAlone), "–", "the question names nothing else"],
    factor("Time", time, "near the time in the question"),
    factor("Feedback", feedback, "on questions like this one"),
    reranker && ["Reranker", "", share(reranker.score), reranker.rank_before + 1, `rank before; ${Math.round(reranker.elapsed_ms)} ms for all`],
  ].filter(Boolean));
  return html`
    <div class="why">
      <${ScoreBar} explanation=${explanation} best=${best} />
      <table class="why-table">
        <thead><tr><th scope="col">Part</th><th scope="col">Share</th><th scope="col">Rank</th><th scope="col">From</th></tr></thead>
        <tbody>
          ${rows.map(([name, tone, value, rank, from], at) => html`
            <tr key=${at}><th scope="row">${tone && html`<i class="key bar-${tone}" aria-hidden="true"></i>`}${name}</th><td>${value}</td><td>${rank}</td><td>${from}</td></tr>`)}
          <tr class="why-sum"><th scope="row">Score</th><td>${share(explanation.final_score)}</td><td></td><td class="hint">${explanation.fusion}</td></tr>
        </tbody>
      </table>
    </div>`;
}

/** The lines of a passage. @param {number} start @param {number} end */
export const lines = (start, end) => (start === end ? `line ${count(start)}` : `lines ${count(start)}–${count(end)}`);
