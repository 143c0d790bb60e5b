// The difference of two texts, by words or, if they are long, by lines.

/** @typedef {{kind: "same"|"gone"|"new", text: string}} Piece */

const MOST_TOKENS = 6000;
const MOST_STEPS = 1200;
// Below this share of words that both texts have, single words in common only disturb the reader.
const LEAST_SAME = 0.25;

/** @param {string} text @param {boolean} byLine */
const tokens = (text, byLine) => text.match(byLine ? /[^\n]*\n|[^\n]+$/g : /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** Count the words or lines. @param {string[]} texts */
const words = (texts) => texts.filter((each) => /[\p{L}\p{N}]/u.test(each)).length;

/**
 * Compare two texts. Texts that differ too much come out as one whole replaced by the other.
 * @param {string} before @param {string} after
 * @returns {Piece[]}
 */
export function diff(before, after) {
  if (before === after) return [{ kind: "same", text: before }];
  const isLong = before.length + after.length > 40_000;
  const a = tokens(before, isLong);
  const b = tokens(after, isLong);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = walk(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return join([
    ...a.slice(0, start).map((text) => /** @type {Piece} */ ({ kind: "same", text })),
    ...middle,
    ...a.slice(a.length - end).map((text) => /** @type {Piece} */ ({ kind: "same", text })),
  ]);
}

/**
 * Find the shortest edit by Myers' algorithm.
 * @param {string[]} a @param {string[]} b
 * @returns {Piece[]}
 */
function walk(a, b) {
  const replaced = /** @type {Piece[]} */ ([...a.map((text) => ({ kind: "gone", text })), ...b.map((text) => ({ kind: "new", text }))]);
  if (!a.length || !b.length || a.length + b.length > MOST_TOKENS) return replaced;
  /** @type {Map<number, number>[]} */
  const trace = [];
  let reached = new Map([[1, 0]]);
  for (let steps = 0; steps <= Math.min(a.length + b.length, MOST_STEPS); steps += 1) {
    trace.push(new Map(reached));
    for (let k = -steps; k <= steps; k += 2) {
      const down = k === -steps || (k !== steps && (reached.get(k - 1) ?? -1) < (reached.get(k + 1) ?? -1));
      let x = down ? reached.get(k + 1) ?? 0 : (reached.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reached.set(k, x);
      if (x >= a.length && x - k >= b.length) {
        const pieces = goBack(trace, a, b);
        return words(pieces.filter((each) => each.kind === "same").map((each) => each.text)) < LEAST_SAME * Math.max(words(a), words(b)) ? replaced : pieces;
      }
    }
  }
  return replaced;
}

/** @param {Map<number, number>[]} trace @param {string[]} a @param {string[]} b @returns {Piece[]} */
function goBack(trace, a, b) {
  /** @type {Piece[]} */
  const pieces = [];
  let x = a.length;
  let y = b.length;
  for (let steps = trace.length - 1; steps >= 0; steps -= 1) {
    const reached = trace[steps];
    const k = x - y;
    const down = k === -steps || (k !== steps && (reached.get(k - 1) ?? -1) < (reached.get(k + 1) ?? -1));
    const beforeX = reached.get(down ? k + 1 : k - 1) ?? 0;
    const beforeY = beforeX - (down ? k + 1 : k - 1);
    while (x > beforeX && y > beforeY && x > 0 && y > 0) pieces.push({ kind: "same", text: a[(x -= 1, y -= 1, x)] });
    if (steps > 0) pieces.push(down ? { kind: "new", text: b[y -= 1] } : { kind: "gone", text: a[x -= 1] });
  }
  return pieces.reverse();
}

/** Join neighbours of the same kind. @param {Piece[]} pieces @returns {Piece[]} */
function join(pieces) {
  /** @type {Piece[]} */
  const joined = [];
  for (const piece of pieces) {
    const last = joined.at(-1);
    if (last?.kind === piece.kind) last.text += piece.text;
    else joined.push({ ...piece });
  }
  return joined;
}
