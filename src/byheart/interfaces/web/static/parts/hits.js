// How a hit is shown: the verdict in words, its marked snippet, and why it is where it is.
import { count, percent, visible } from "../core/format.js";
import { classes, html } from "../core/lib.js";
import { splitSnippet } from "../core/snippets.js";

/** @type {Record<string, [string, string]>} the words of each verdict, and what it means */
export const VERDICTS = {
  answered: ["Answered", "The first memory most likely answers this."],
  weak: ["Unsure", "The first memory may be related; check it before you rely on it."],
  none: ["No answer", "Nothing here answers this; below are only the nearest memories."],
};

/** The verdict in words, first. @param {{verdict: string, confidence: number, total: number, elapsed?: string}} props */
export function Verdict({ verdict, confidence, total, elapsed }) {
  const [word, meaning] = total ? VERDICTS[verdict] ?? VERDICTS.weak : ["No answer", "No memory matches this question and these filters."];
  return html`
    <div class=${classes("verdict", `verdict-${total ? verdict : "none"}`)} role="status">
      <strong class="verdict-word">${word}</strong>
      <span>${meaning}</span>
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

/**
 * The score as a stacked bar; `best` is the score that fills the bar.
 * @param {{explanation: Explanation, best: number}} props
 */
export function ScoreBar({ explanation, best }) {
  const parts = partsOf(explanation);
  const whole = Math.max(best, parts.reduce((sum, each) => sum + each.value, 0), 1e-9);
  let x = 0;
  const spoken = parts.map((each) => `${each.name} ${each.value.toFixed(2)}`).join(", ");
  return html`
    <svg class="score-bar" role="img" aria-label="Score ${explanation.final_score.toFixed(2)}: ${spoken}" viewBox="0 0 200 8" preserveAspectRatio="none">
      <rect class="bar-rest" width="200" height="8" />
      ${parts.map((each) => {
        const width = (each.value / whole) * 200;
        const rect = html`<rect key=${each.tone} class="bar-${each.tone}" x=${x} width=${width} height="8" />`;
        x += width;
        return rect;
      })}
    </svg>`;
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
  return html`
    <div class="why">
      <${ScoreBar} explanation=${explanation} best=${best} />
      <table class="why-table">
        <thead><tr><th scope="col">Part</th><th scope="col">Share</th><th scope="col">Rank</th><th scope="col">From</th></tr></thead>
        <tbody>
          <tr>
            <th scope="row"><i class="key bar-keywords" aria-hidden="true"></i>Keywords</th>
            <td>${(fts?.contribution ?? 0).toFixed(2)}</td><td>${fts ? place(fts.rank) : "–"}</td>
            <td>${terms.length ? terms.map(([term, weight]) => html`<span class="term" key=${term} dir="auto">${visible(wordFor(term, words))} <small>${weight.toFixed(2)}</small></span>`) : "no word in common"}</td>
          </tr>
          <tr>
            <th scope="row"><i class="key bar-meaning" aria-hidden="true"></i>Meaning</th>
            <td>${(vector?.contribution ?? 0).toFixed(2)}</td><td>${vector ? place(vector.rank) : "–"}</td>
            <td>${vector ? `cosine ${vector.score.toFixed(2)}` : "not near in meaning"}</td>
          </tr>
          ${neighbours > 0 && html`
            <tr>
              <th scope="row"><i class="key bar-neighbours" aria-hidden="true"></i>Neighbours</th>
              <td>${neighbours.toFixed(2)}</td><td>–</td><td>turns before and after it match</td>
            </tr>`}
          ${form !== 1 && html`
            <tr><th scope="row">Form</th><td>× ${form.toFixed(2)}</td><td>–</td><td>length, speaker and kind of turn</td></tr>`}
          ${file !== 1 && html`
            <tr><th scope="row">File</th><td>× ${file.toFixed(2)}</td><td>–</td><td>a test or a generated file</td></tr>`}
          ${timeAlone > 0 && html`
            <tr><th scope="row">Time</th><td>${timeAlone.toFixed(2)}</td><td>–</td><td>the question names nothing else</td></tr>`}
          ${time !== 1 && html`
            <tr><th scope="row">Time</th><td>× ${time.toFixed(2)}</td><td>–</td><td>near the time in the question</td></tr>`}
          ${feedback !== 1 && html`
            <tr><th scope="row">Feedback</th><td>× ${feedback.toFixed(2)}</td><td>–</td><td>on questions like this one</td></tr>`}
          ${reranker && html`
            <tr><th scope="row">Reranker</th><td>${reranker.score.toFixed(2)}</td><td>${reranker.rank_before + 1}</td><td>rank before; ${Math.round(reranker.elapsed_ms)} ms for all</td></tr>`}
          <tr class="why-sum"><th scope="row">Score</th><td>${explanation.final_score.toFixed(2)}</td><td></td><td class="hint">${explanation.fusion}</td></tr>
        </tbody>
      </table>
    </div>`;
}

/** The lines of a passage. @param {number} start @param {number} end */
export const lines = (start, end) => (start === end ? `line ${count(start)}` : `lines ${count(start)}–${count(end)}`);
