"""Make chunks and raw queries from few words, so that every construct finds some of the chunks."""

from __future__ import annotations

from random import Random

_WORDS = (
    *("running", "runs", "ran", "harbour", "Harbours", "a", "b", "the", "x1", "getUserName"),
    *("user", "café", "CAFE\u0301", "naïve", "Ünïcode", "straße", "ΣΑΣ", "ﬁne", "Привет", "İ"),
    *("長期記憶", "記憶", "期", "日本語テキスト", "ภาษาไทย", "한국어", "\U00020000\U00020001"),
    *(
        "🙂",
        "🫠",
        "🧠brain",
        "⭐",
        "don't",
        "C++",
        "snake_case",
        "2024-05-01",
        "3.14",
        "AND",
        "NEAR",
    ),
    *("or", "^", "#", "#00000x", "'", "\\", "'':1A", "%s", "$1", "\ue000\ue001", "\U0010fffe"),
    *("\u0301", "٣", "½", "x\u200dy", "z" * 70, "running" * 10, "\x1a", "--", "&", "|", "!", "<->"),
)
_LONG = ("y" * 399, "y" * 400, "y" * 401, "y" * 950, "é" * 401, "y" * 400 + "z", "я" * 16_390)
_CUT = "я" * 16_383 + "x語語"  # FTS5 cuts it within a character


def make_chunks(chance: Random, count: int) -> list[list[str]]:
    """Make the four texts of each chunk; one in 40 is long, or has a long word."""
    chunks = [_make_chunk(chance) for _ in range(count)]
    for at, chunk in enumerate(chunks[::40]):
        column = chance.randrange(4)
        chunk[column] += f" {_make_excess(chance, at)} {_make_text(chance, 5)}"
    return chunks


def _make_chunk(chance: Random) -> list[str]:
    counts = (*chance.choices((0, 1, 2, 4), k=3), chance.choice((0, 3, 10, 40)))
    return [_make_text(chance, count) for count in counts]


def _make_excess(chance: Random, at: int) -> str:
    return "a b " * 300 if at % 3 == 0 else chance.choice((*_LONG, _CUT))


def _make_text(chance: Random, count: int) -> str:
    return chance.choice((" ", " ", "\n", ", ")).join(chance.choices(_WORDS, k=count))


def make_query(chance: Random) -> str:
    """Make a valid raw query of any shape that the grammar has."""
    return _make_query(chance, chance.choice((0, 0, 1, 1, 2, 3)))


def _make_query(chance: Random, depth: int) -> str:
    if depth == 0:
        return _make_part(chance, 0)
    parts = [_make_part(chance, depth - 1) for _ in range(chance.choice((1, 2, 2, 3)))]
    return chance.choice((" AND ", " OR ", " OR ", " NOT ", " ")).join(parts)


def _make_part(chance: Random, depth: int) -> str:
    columns = _make_columns(chance) if chance.random() < 0.3 else ""
    if depth and chance.random() < 0.7:
        return f"{columns}({_make_query(chance, depth)})"
    return columns + _make_group(chance)


def _make_columns(chance: Random) -> str:
    names = chance.choices(
        ("title", "summary", "headings", "Content"), k=chance.choice((1, 1, 2, 4))
    )
    listed = names[0] if len(names) == 1 and chance.random() < 0.5 else f"{{{' '.join(names)}}}"
    return f"{chance.choice(('', '', '- '))}{listed} : "


def _make_group(chance: Random) -> str:
    kind = chance.random()
    if kind < 0.25:
        phrases = [_make_phrase(chance) for _ in range(chance.choice((1, 2, 2, 2, 3)))]
        distance = chance.choice(("", "", ", 0", ", 1", ", 2", ", 5", ", 1000000"))
        return f"NEAR({' '.join(phrases)}{distance})"
    return ("^ " if kind < 0.4 else "") + _make_phrase(chance)


def _make_phrase(chance: Random) -> str:
    strings = [_make_string(chance) for _ in range(chance.choice((1, 1, 1, 1, 2, 3)))]
    return " + ".join(strings) + chance.choice(("", "", "", " *"))


def _make_string(chance: Random) -> str:
    if chance.random() < 0.02:
        text = chance.choice((*_LONG, _CUT))
    else:
        text = _make_text(chance, chance.choice((0, 1, 1, 1, 1, 1, 1, 2, 2, 3)))
    if chance.random() < 0.2:
        text = text[: chance.randrange(1, 6)]
    return '"' + text.replace('"', '""') + '"'
