"""Thousands of generated questions and raw queries: nothing but answers and syntax errors."""

import random
from typing import Any

import pytest

from byheart.errors import InvalidInput, QuerySyntaxError
from byheart.store import MemoryStore

PIECES = [
    *("database", "getUserName", "snake_case", "résumé", "C++", "100.5", "2026-03-14", "a:b", "x"),
    *("AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR/2", "and", "{title}:", "{content}", "title:", "-"),
    *(
        '"',
        "'",
        "(",
        ")",
        "*",
        "^",
        "+",
        ":",
        "?",
        "!",
        ";",
        ",",
        ".",
        "\\",
        "/",
        "%",
        "_",
        "[",
        "]",
    ),
    *(
        "{",
        "}",
        "<",
        ">",
        "|",
        "&",
        "=",
        "~",
        "`",
        "#",
        "$",
        "@",
        "--",
        "/*",
        "**",
        '""',
        "''",
        "\n",
    ),
    *(
        "\0",
        "\x01",
        "\x1b",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\u200d",
        "\u0301",
        "\ud800",
        "\udfff",
    ),
    *(
        "長期記憶",
        "記",
        "カタカナ",
        "한국어",
        "ภาษาไทย",
        "🙂",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "עברית",
        "العربية",
        "हिन्दी",
    ),
    *("\u202e", "ﬁ", "İ", "ß", "ǅ", "\U0010ffff", "\ue000", "½", "Ⅷ", "²"),
]
# Hybrid asks both retrievers: what either of them does with a question is seen there as well.
NATURAL, RAW = {"fts": 7_000, "vector": 7_000, "hybrid": 5_000}, 1_500


def generate(chance: random.Random) -> str:
    shape = chance.random()
    if shape < 0.70:  # pieces next to and apart from one another
        joint = chance.choice(["", " ", "  "])
        return joint.join(chance.choices(PIECES, k=chance.randint(1, 10)))
    if shape < 0.97:  # any characters at all
        return "".join(
            chr(
                chance.choice(
                    [chance.randrange(128), chance.randrange(0x3000), chance.randrange(0x110000)]
                )
            )
            for _ in range(chance.randint(1, 40))
        )
    length = chance.choice([500, 2_000, 10_000])
    return (chance.choice(PIECES) + chance.choice(["", " "])) * (length // 8 + 1)


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    chance = random.Random(11)
    words = [piece for piece in PIECES if not any("\ud800" <= char <= "\udfff" for char in piece)]
    items: list[dict[str, Any]] = [
        {"content": f"memory {n}: " + " ".join(chance.choices(words, k=20)), "title": f"title {n}"}
        for n in range(60)
    ]
    store.save_many(items)
    return store


@pytest.mark.slow
@pytest.mark.parametrize("mode", NATURAL)
def test_no_generated_question_raises(filled: MemoryStore, mode: str) -> None:
    chance = random.Random(f"natural {mode}")
    for number in range(NATURAL[mode]):
        query = generate(chance)
        granularity = ("fine", "fine", "fine", "medium", "coarse")[number % 5]
        if not query.strip():
            with pytest.raises(InvalidInput, match="the query is empty"):
                filled.search(query, mode=mode)
            continue
        answer = filled.search(query, mode=mode, granularity=granularity, limit=3)
        assert answer.degraded is None
        assert mode == "fts" or len(answer.results) == 3


@pytest.mark.slow
def test_a_generated_raw_query_gives_an_answer_or_a_syntax_error_with_its_position(
    filled: MemoryStore,
) -> None:
    chance = random.Random("raw")
    refused: list[tuple[str, QuerySyntaxError]] = []
    for query in filter(str.strip, (generate(chance) for _ in range(RAW))):
        try:
            filled.search(query, raw=True, limit=3)
        except QuerySyntaxError as error:
            refused.append((query, error))
    assert 0 < len(refused) < RAW * 0.99
    for query, error in refused:
        assert error.position is not None
        assert 0 <= error.position <= len(query)
        assert error.hint
    assert all(finding.ok for finding in filled.admin.doctor())
