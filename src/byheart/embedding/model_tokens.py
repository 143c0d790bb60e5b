"""Tokenize texts with a model's own tokenizer: token offsets, and the ids the model reads."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from byheart.errors import Do, Hint, ModelFilesError
from byheart.startup.late_patterns import late_pattern

if TYPE_CHECKING:
    from tokenizers import Encoding

# Texts are tokenised in pieces of about this many characters, which limits memory and is faster.
PIECE_CHARACTERS = 1 << 13
# A batch of texts is split first and cut into windows then, so that both count the same texts. This
# is more than the largest batch has: 1,024 texts, and 390 further pieces of its 3.2 million
# characters (`memory/batches.py`).
REMEMBERED_PIECES = 1_500
# Most words of a text occurred before. Cached words are counted ten times as fast.
REMEMBERED_WORDS = 50_000
# A word, or a single punctuation mark. Only ASCII space and punctuation split here, because the
# tokenizer has its own rules for other white space, other marks and invalid characters.
WORD = r"[^ \t\r\n!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]"
# WordPiece turns a longer word into one unknown token and so loses it. This happens to base64,
# hashes and Thai, which has no spaces. Such words are cut into pieces of half this length.
# Punctuation and ideographs end a word.
LONGEST_WORD = 100
LONG_WORD = late_pattern(
    r"[^\s!-/:-@\[-`{-~\u2000-\u206f\u3000-\u303f\u3400-\u9fff\U00020000-\U0003ffff]"
    f"{{{LONGEST_WORD + 1},}}"
)
LONE_SURROGATE = late_pattern("[\ud800-\udfff]")
# A word that is still unknown counts by its length, since chunk sizes depend on the count.
UNKNOWN_CHARACTERS_PER_TOKEN = 4


class ModelTokens:
    """Count and number the tokens of a text with the tokenizer of a model."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        self._path = path
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # noqa: BLE001 (the library raises nothing narrower)
            raise ModelFilesError(
                f"the tokenizer {path} cannot be read: {error}",
                Hint("get it again with: ", Do("model download", force=True)),
            ) from None
        # The file may demand cutting and padding to 128 tokens, as that of all-MiniLM-L6-v2 does.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Models with a vocabulary of SentencePiece, such as multilingual-e5, have tokens that span
        # a word and the marks around it, and no limit for the length of a word.
        self._by_word = type(self._tokenizer.model).__name__ == "WordPiece"
        self._unknown = self._tokenizer.token_to_id("[UNK]" if self._by_word else "<unk>")
        # The same text is counted several times in a row: as a chunk, as a window, when embedded.
        self._piece_starts = lru_cache(REMEMBERED_PIECES)(self._count_piece)
        self._words: dict[str, Sequence[int]] = {}
        # The tokenizer reads a special token such as "[SEP]" as one, with its brackets.
        special = (each.content for each in self._tokenizer.get_added_tokens_decoder().values())
        self._word = re.compile("|".join([*map(re.escape, special), WORD]))
        first, *rest = self._tokenizer.encode("").ids
        # The ids that the model expects before and after the tokens of a text.
        self.special_ids: tuple[list[int], list[int]] = ([first], rest)

    def __reduce__(self) -> tuple[type[ModelTokens], tuple[Path]]:
        """Pickle only the path: another process reads the file itself."""
        return ModelTokens, (self._path,)

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the character offset of each token; tokens of one character share its offset."""
        if len(text) <= PIECE_CHARACTERS:
            return self._piece_starts(text)
        starts = array("I")
        begin = 0
        while begin < len(text):
            end = _piece_end(text, begin)
            starts.extend(begin + start for start in self._piece_starts(text[begin:end]))
            begin = end
        return starts

    def ids(self, text: str) -> list[int]:
        """Return the model's token ids for the text, without special tokens."""
        ids: list[int] = self._encode(self._readable(text)[0]).ids
        return ids

    def _count_piece(self, text: str) -> Sequence[int]:
        """Combine the tokens of a text from those of its words, if no token spans two words."""
        if not self._by_word:
            return self._read(text)
        spans = [(match[0], match.start()) for match in self._word.finditer(text)]
        known = self._known_words([word for word, _ in spans])
        # An array takes four bytes per token, a list forty; a text may have ten million tokens.
        return array("I", [start + within for word, start in spans for within in known[word]])

    def _known_words(self, words: Sequence[str]) -> dict[str, Sequence[int]]:
        """Return where the tokens of each word begin; tokenize only words that are not cached."""
        known = self._words
        fresh = [word for word in dict.fromkeys(words) if word not in known]
        if not fresh:
            return known
        if len(known) + len(fresh) > REMEMBERED_WORDS:
            # Start a new dictionary, because other threads may be reading the old one.
            known = self._words = {}
            fresh = list(dict.fromkeys(words))
        starts = self._read("\n".join(fresh))
        end, low = 0, 0
        for word in fresh:
            begin, end = end, end + len(word) + 1
            high = bisect_left(starts, end, low)
            known[word] = tuple(start - begin for start in starts[low:high])
            low = high
        return known

    def _read(self, text: str) -> Sequence[int]:
        readable, inserted = self._readable(text)
        encoding = self._encode(readable)
        starts = [start for start, end in encoding.offsets if end > start]
        if self._unknown in encoding.ids:
            starts = list(self._counting_unknown(encoding))
        if inserted:
            starts = [start - bisect_right(inserted, start) for start in starts]
        return starts

    def _counting_unknown(self, encoding: Encoding) -> Iterator[int]:
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            step = UNKNOWN_CHARACTERS_PER_TOKEN if token == self._unknown else max(end - start, 1)
            yield from range(start, end, step)

    def _readable(self, text: str) -> tuple[str, list[int]]:
        text = LONE_SURROGATE.sub("\ufffd", text)
        return _cut_long_words(text) if self._by_word else (text, [])

    def _encode(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)


def _cut_long_words(text: str) -> tuple[str, list[int]]:
    """Insert spaces into long words; return the new text and the offsets of these spaces."""
    step = LONGEST_WORD // 2
    cuts = [
        cut
        for word in LONG_WORD.finditer(text)
        for cut in range(word.start() + step, word.end(), step)
    ]
    if not cuts:
        return text, []
    edges = zip([0, *cuts], [*cuts, len(text)], strict=True)
    return " ".join(text[begin:end] for begin, end in edges), [
        cut + earlier for earlier, cut in enumerate(cuts)
    ]


def _piece_end(text: str, begin: int) -> int:
    end = begin + PIECE_CHARACTERS
    if end >= len(text):
        return len(text)
    space = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end))
    return space if space > begin else end
