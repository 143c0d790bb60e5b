"""Make up memories of every sort, the changes of their lives, and questions about them."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.congruence.twins import Twins

SPACES = ("home", "work", "日本")
SESSIONS = ("s1", "s2", "s3")
_STEMS = (
    *("harbour", "ferry", "invoice", "deploy", "backup", "garden", "coffee", "router", "parser"),
    *("violin", "tax", "passport", "kernel", "bridge", "winter", "recipe", "lantern", "schema"),
    *("index", "token", "budget", "contract", "rabbit", "marathon", "glacier", "pottery", "cache"),
    *("dentist", "holiday", "compiler", "keyboard", "orchard", "signal", "tunnel", "museum"),
)
_ENDS = ("", "s", "ing", "ed", "-42", "_name", "Error")
_FILLERS = ("the", "a", "with", "about", "was", "will be", "near", "before", "and", "not", "of")
_FOREIGN = (
    "Der Hafen war gestern wegen des Sturms geschlossen",
    "La facture du jardin doit être payée avant l'hiver",
    "Привет, резервная копия готова к вечеру",
    "長期記憶は検索できる",
    "昨日の会議で予算が決まった",
    "ภาษาไทยไม่มีช่องว่าง",
    "한국어 문장도 있습니다",
    "🙂🧠⭐ everything is fine 🫠",
    "\U00020000\U00020001 rare signs",
)
# Texts that a database may change or refuse.
ODD_TEXTS = (
    "before\0after a NUL character",
    "\0",
    "the sign \U0010fffe itself, and \U0010fffe0 and \U0010fffe1",
    "\U0010fffe",
    "both \0\U0010fffe\0 in one",
    "quotes ' \" '' \\ \\0 $1 %s ? ?1 :name -- /* */",
    "line\r\nends\rand\ttabs\u2028\u2029\x1f\x7f\x85",
    "combining e\u0301 and é, ﬁ and fi, İ and i̇, ß and SS",
    "trailing blanks   \n\n\n",
    "\ufeffa byte order mark",
    "\ue000\ue001 private signs \ufdd0\uffff",
)
_NAMES = (
    "Anna",
    "Bob Miller",
    "ACME",
    "Zürich",
    "東京",
    "b\U0010fffeb",
    "anna",
    "émile",
    "Zoe",
    "_x",
    "a-b",
)
_TAGS = ("red", "blue", "Green", "a b", "tag-1", "tag_1", "Ärger", "zebra", "B\U0010fffe", "記憶")
_PATHS = ("src/a.py", "/home/x/src/b.py", "draft [1].md", "docs/B.md", "docs/a_b.md", "docs/a%b.md")
_LANGUAGES = (None, None, None, "de", "de-AT", "zh-Hant", "en")
# Metadata can hold it; a filter refuses it.
_BEYOND_64_BITS = 12345678901234567890
_METADATA: tuple[dict[str, Any] | None, ...] = (
    None,
    None,
    {"n\0l": "v\0", "deep": [1, 2.5, None, True, {"ü": "\U0010fffe"}]},
    {"back\\slash": "\\u0000 \\\0 \\\\u0000", "promoted_from": "\0"},
    {"number": _BEYOND_64_BITS, "small": 1e-9, "empty": "", "nil": None},
)


def make_text(chance: Random) -> str:
    """Make a text of a few sentences, or a document of several chunks."""
    if chance.random() < 0.12:
        sections = (
            f"{'#' * chance.randint(1, 3)} {_word(chance).title()} {_word(chance)}\n\n"
            + "\n\n".join(_paragraph(chance) for _ in range(chance.randint(1, 3)))
            for _ in range(chance.randint(2, 6))
        )
        return "\n\n".join(sections)
    if chance.random() < 0.08:
        names = [chance.choice(_STEMS) for _ in range(chance.randint(2, 6))]
        return "\n\n".join(
            f"def {name}_{at}(self, {_word(chance)}=None):\n    return get{name.title()}({at})"
            for at, name in enumerate(names)
        )
    return _paragraph(chance)


def _paragraph(chance: Random) -> str:
    return " ".join(_sentence(chance) for _ in range(chance.randint(1, 5)))


def _sentence(chance: Random) -> str:
    if chance.random() < 0.1:
        return f"{chance.choice(_FOREIGN)}."
    words = [
        _word(chance) if at % 2 else chance.choice(_FILLERS) for at in range(chance.randint(5, 14))
    ]
    if chance.random() < 0.2:
        words.insert(chance.randrange(len(words)), chance.choice(_NAMES[:5]))
    return f"{' '.join(words).capitalize()}."


def _word(chance: Random) -> str:
    return chance.choice(_STEMS) + chance.choice(_ENDS)


def _some(chance: Random, values: tuple[Any, ...], most: int) -> list[Any]:
    return chance.sample(values, chance.randint(0, most))


def _make_memory(chance: Random, space: str, text: str) -> dict[str, Any]:
    given = {
        "content": text,
        "space": space,
        "kind": chance.choice(("note", "note", "fact", "report", "decision")),
        "title": chance.choice((None, None, _word(chance), "a\0title", "Ünïcode")),
        "summary": chance.choice((None, None, None, _sentence(chance))),
        "session_id": chance.choice((None, None, *SESSIONS)),
        "agent_id": chance.choice((None, "a", "b")),
        "session_iter": chance.choice((None, 0, 1, 2, 10)),
        "task_code": chance.choice((None, "T1", "T2")),
        "tags": _some(chance, _TAGS, 3),
        "entities": chance.choice((None, _some(chance, _NAMES, 3))),
        "path": chance.choice((None, None, None, *_PATHS)),
        "importance": chance.choice((None, 0, 5, 7.5, 10)),
        "language": chance.choice(_LANGUAGES),
        "origin": chance.choice((None, None, "user", "agent", "tool", "file")),
        "ttl_days": chance.choice((None, None, None, None, 1, 400)),
        "metadata": chance.choice(_METADATA),
        "source": chance.choice(("manual", "mail")),
    }
    return {name: value for name, value in given.items() if value is not None}


def _make_turns(chance: Random, space: str, session: str, count: int) -> list[dict[str, Any]]:
    turns = []
    for number in range(count):
        role = chance.choice(("user", "assistant", "assistant", "tool", "system"))
        turn = {
            "session_id": session,
            "space": space,
            "role": role,
            "kind": "tool_output" if role == "tool" else "message",
            "content": chance.choice(("", "ok", "yes", *[make_text(chance)] * 9)),
            "client_id": chance.choice((None, f"c{number}")),
            "session_iter": chance.choice((None, 1, 2)),
            "task_code": chance.choice((None, "T1")),
            "agent_id": chance.choice((None, "a")),
            "tags": _some(chance, _TAGS, 1),
        }
        turns.append({name: value for name, value in turn.items() if value is not None})
    return turns


def fill(twins: Twins, memories: int, turns: int) -> dict[str, list[str]]:
    """Save memories and turns, then change some in every way; give the ids of each space."""
    chance = Random(19)
    known: dict[str, list[str]] = {}
    for space in SPACES:
        texts = [make_text(chance) for _ in range(memories)]
        for odd in ODD_TEXTS:
            texts.insert(chance.randrange(len(texts)), odd)
        items = [_make_memory(chance, space, text) for text in texts]
        saved = []
        for at in range(0, len(items), 50):
            part = items[at : at + 50]
            twins.machine.wait(hours=3)
            saved += twins.do("save_many", part)
        for session in SESSIONS:
            said = _make_turns(chance, space, session, turns)
            twins.machine.wait(hours=1)
            saved += twins.do("log_many", said)
        known[space] = list(dict.fromkeys(each.memory_id for each in saved))
    for space, ids in known.items():
        _change(twins, chance, space, ids)
    return known


def _change(twins: Twins, chance: Random, space: str, ids: list[str]) -> None:
    """Update, supersede, forget, restore and pin memories; rename entities; some of it fails."""
    for memory_id in chance.sample(ids, len(ids) // 12):
        changed = chance.choice(
            (
                {"content": make_text(chance)},
                {"content": chance.choice(ODD_TEXTS)},
                {"title": "new\0title", "tags": ["zebra", "a b"]},
                {"metadata": {"changed": "\0"}, "entities": ["Zoe", "anna"]},
                {"importance": 9, "language": "fr"},
            )
        )
        twins.ask("update", memory_id, space=space, **changed)
    for memory_id in chance.sample(ids, len(ids) // 25):
        by = chance.choice(ids)
        twins.ask("supersede", memory_id, by, "newer \U0010fffe", space=space)
    for memory_id in chance.sample(ids, len(ids) // 25):
        twins.ask("forget", memory_id, reason="old", space=space)
        if chance.random() < 0.3:
            twins.ask("restore", memory_id, space=space)
    for memory_id in chance.sample(ids, 5):
        twins.ask("pin", memory_id, space=space)
    twins.do("forget", tags=["Green"], kind="report", dry_run=False, space=space)
    twins.do("entities.rename", "ACME", "Acme Corp", space=space)
    twins.do("entities.merge", ["Zoe"], "Anna", space=space)
    twins.do("sessions.summarize", "s1", space=space)
    twins.do("sessions.summarize", "s2", "A summary\0 by hand.", space=space)
    twins.do("sessions.promote", "s3", kind="fact", space=space)


def make_questions(count: int) -> list[str]:
    """Make questions: about words of the texts, in other scripts, of no words, and of odd signs."""
    chance = Random(300)
    special = (*_FOREIGN, *ODD_TEXTS, "zzz unknown", "?", "harb", "getHarbour", "c++", "長期", "42")
    questions = [each for each in special if each.strip("\0 ")]
    while len(questions) < count:
        questions.append(
            chance.choice((_sentence(chance), _word(chance), f"{_word(chance)} {_word(chance)}"))
        )
    return questions[:count]


def make_filters(start: datetime, end: datetime) -> list[dict[str, Any]]:
    """List filters: none, of each field, and several at once; memories were made in between."""
    third = (end - start) / 3
    return [
        {},
        {"kind": ["note", "report"], "min_importance": 5},
        {"session_id": "s1", "include_global": False},
        {"session_id": "s2", "session_iter": 1},
        {"tags": ["red", "B\U0010fffe"], "match": "all"},
        {"tags": ["Ärger", "a b", "zebra"]},
        {"entities": ["anna", "acme"], "match": "any"},
        {"entities": ["Zoe", "b\U0010fffeb"], "match": "all"},
        {"path": "docs/", "language": "de"},
        {"path": "a_b.md", "agent_id": "a"},
        {"path": "draft [1].md"},
        {"origin": ["agent", "tool"], "task_code": "T1"},
        {"as_of": start + third},
        {"as_of": end - timedelta(minutes=9), "tags": ["blue"], "include_expired": True},
        {"created_after": start + third / 9, "created_before": end - third / 9},
        {"include_expired": True, "language": "zh"},
        {"scope": "global", "source_label": "mail"},
        *({"metadata": {key: value}} for key, value in _simple_pairs()),
    ]


def _simple_pairs() -> list[tuple[str, Any]]:
    """List the pairs of metadata that a filter can ask for."""
    pairs: list[tuple[str, Any]] = [("changed", "\0")]
    pairs += [pair for each in _METADATA if each for pair in each.items()]
    return [
        (key, value)
        for key, value in pairs
        if not isinstance(value, dict | list) and value != _BEYOND_64_BITS
    ]
