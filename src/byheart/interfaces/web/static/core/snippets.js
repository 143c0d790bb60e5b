// The marked words of a snippet, as parts of text: saved text is never read as HTML.

/** @typedef {{text: string, marked: boolean}} Part */

/**
 * Split a snippet into marked and plain parts. The server counts characters, JavaScript code units:
 * an emoji is one of the former and two of the latter.
 * @param {string} snippet
 * @param {[number, number][]} marks where each match begins and ends
 * @returns {Part[]}
 */
export function splitSnippet(snippet, marks) {
  const characters = Array.from(snippet);
  const edges = [0, ...marks.flat(), characters.length];
  return edges.slice(1).map((end, at) => ({ text: characters.slice(edges[at], end).join(""), marked: at % 2 === 1 })).filter((each) => each.text);
}
