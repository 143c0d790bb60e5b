// The marked words of a snippet, as parts of text: saved text is never read as HTML.

const MARK = "**";

/** @typedef {{text: string, marked: boolean}} Part */

/**
 * Split a snippet into marked and plain parts. The server marks words with `**`, but the saved text
 * may contain `**` as well: only the text itself tells the two apart.
 * @param {string} snippet
 * @param {string} text the passage that the snippet was cut from
 * @returns {Part[]}
 */
export function splitSnippet(snippet, text) {
  if (!snippet.includes(MARK)) return [{ text: snippet, marked: false }];
  const cut = snippet.startsWith("…") && !text.trimStart().startsWith("…");
  const body = cut ? snippet.slice(1) : snippet;
  const head = body.slice(0, body.indexOf(MARK));
  for (let at = cut ? text.indexOf(head) : text.length - text.trimStart().length; at >= 0; at = cut ? text.indexOf(head, at + 1) : -1) {
    const parts = align(body, text, at);
    if (parts) return cut ? [{ text: "…", marked: false }, ...parts] : parts;
  }
  return byPairs(snippet);
}

/**
 * Walk through snippet and text together. A mark begins and ends at a word, and words contain no
 * star: so a star of the text is never inside a mark, nor is it the first character of one.
 * @param {string} body @param {string} text @param {number} start
 * @returns {Part[] | null}
 */
function align(body, text, start) {
  /** @type {Part[]} */
  const parts = [];
  let marked = false;
  let from = start;
  let at = start;
  let read = 0;
  const end = () => {
    if (at > from) parts.push({ text: text.slice(from, at), marked });
    from = at;
  };
  while (read < body.length) {
    const mark = body.startsWith(MARK, read) && (marked || text[at] !== "*");
    if (mark) {
      end();
      marked = !marked;
      read += MARK.length;
    } else if (body[read] === text[at]) {
      read += 1;
      at += 1;
    } else if (body.slice(read) === "…") {
      end();
      parts.push({ text: "…", marked: false });
      return parts;
    } else return null;
  }
  end();
  return marked ? null : parts;
}

/** Take every other stretch between marks as marked. @param {string} snippet @returns {Part[]} */
function byPairs(snippet) {
  return snippet.split(MARK).map((text, at) => ({ text, marked: at % 2 === 1 })).filter((each) => each.text);
}
