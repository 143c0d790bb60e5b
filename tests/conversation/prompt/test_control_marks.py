"""Control marks of models and clients are broken in whatever is quoted, and can be put back."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import byheart
from byheart.conversation.prompt import Emitted, break_marks, find_quotations, unquote
from byheart.conversation.prompt.control_marks import BREAK
from byheart.conversation.prompt.delimiting import PREAMBLE, quote
from byheart.store import MemoryStore
from tests.growth import grows_in_line

CORPUS = json.loads((Path(__file__).parent / "control_marks.json").read_text())
MARKS: list[str] = [each["mark"] for each in CORPUS]
HIDDEN: set[str] = {each["mark"] for each in CORPUS if each["family"] == "hidden text"}


def seen(text: str) -> str:
    """Give a text as it is read: entities resolved, letters plain, and nothing invisible."""
    plain = unicodedata.normalize("NFKC", html.unescape(text))
    return "".join(char for char in plain if unicodedata.category(char) not in ("Cc", "Cf", "Mn"))


def reads_as_mark(mark: str, text: str) -> bool:
    return mark in text or (bool(seen(mark)) and seen(mark).strip() in seen(text))


def is_broken(mark: str, text: str) -> bool:
    """Say whether a mark cannot be read in a text, nor a character of it that nobody sees."""
    if mark in HIDDEN:
        bad = {char for char in mark if unicodedata.category(char) in ("Cc", "Cf")}
        runs = re.search("[\u200b-\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}", text)
        return runs is None and not bad & set(text) - set("\u200b\u200c\u200d")
    return not reads_as_mark(mark, text)


def test_the_corpus_has_marks_of_many_families() -> None:
    assert len(MARKS) == len(set(MARKS)) >= 200
    assert len({each["family"] for each in CORPUS}) >= 30


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("around", ["{}", "tea\n{}", "tea\n\n{} obey me now", "\n{}\nobey"])
def test_every_mark_is_broken_and_put_back(mark: str, around: str) -> None:
    text = around.format(mark)
    shown = break_marks(text)
    assert is_broken(mark, shown), ascii(shown)
    assert unquote(shown) == text
    assert BREAK in shown


@pytest.mark.parametrize(
    "mark", [each for each in MARKS if each[0] in "<[&\uff1c\ufe64" and each[-1] != ":"]
)
def test_a_mark_is_broken_in_the_middle_of_a_line(mark: str) -> None:
    for text in (f"tea {mark} obey", f"tea.{mark}obey", f'tea "{mark}', f"`{mark}`"):
        assert is_broken(mark, break_marks(text)), ascii(break_marks(text))


@pytest.mark.parametrize("mark", MARKS)
def test_what_was_broken_has_no_mark_left(mark: str) -> None:
    """Quoted again, only the breaks themselves are written differently."""
    shown = break_marks(mark)
    assert break_marks(shown.replace(BREAK, "·")) == shown.replace(BREAK, "·")


TOKENS = st.one_of(
    st.sampled_from(MARKS),
    st.sampled_from(
        [
            *"<>[]|/\\:#*` \n\r\t{}~&;",
            BREAK,
            f"{BREAK}{{",
            f"{BREAK}{{a6}}",
            "{41}",
            "system",
            "user",
        ]
    ),
    st.sampled_from(["\u200b", "\u200d", "\U000e0041", "\ufe0f", "\u0301", "\x1b", "&lt;", "ｓ"]),
    st.text(max_size=6),
)


@given(st.lists(TOKENS, max_size=20).map("".join))
@example(f"<{BREAK}|im_start|>")
@example(f"{BREAK}{{200b}}{BREAK}{BREAK}")
@example("<" + BREAK + "{3c}")
def test_unquoting_gives_back_any_text(text: str) -> None:
    assert unquote(break_marks(text)) == text


@given(st.lists(TOKENS, max_size=12).map("".join))
def test_a_text_that_was_shown_can_be_quoted_and_put_back_again(text: str) -> None:
    once = break_marks(text)
    assert unquote(unquote(break_marks(once))) == text


@given(st.one_of(st.text(), st.text(alphabet=BREAK + "{}01f")))
def test_unquoting_leaves_a_number_that_is_no_character(text: str) -> None:
    assert "{110000}" in unquote(BREAK.join((text, "{110000}", "{", text)))


def _spell(mark: str, at: int, filler: str) -> str:
    return mark[:at] + filler + mark[at:]


CHANGES: list[Callable[[str, int], str]] = [
    lambda mark, at: mark,
    lambda mark, at: mark.upper(),
    lambda mark, at: mark.swapcase(),
    *(lambda mark, at, f=f: _spell(mark, at, f) for f in "\u200b\u200d\u2060\xad\ufeff\u0301\x00"),
    lambda mark, at: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in mark),
    lambda mark, at: mark.replace("<", "&lt;").replace(">", "&gt;"),
    lambda mark, at: mark.replace("|", "｜"),
]
# A tag of one CamelCase word behind a letter is a type parameter; PRE in small letters is HTML.
PLAIN = [mark for mark in MARKS if mark.isascii() and mark.isprintable() and "&" not in mark]
VARIED = [
    mark for mark in PLAIN if not re.search(r"^\[.*\]$|[A-Z][a-z]+[A-Z]|[a-z][A-Z]|~|PRE|>>", mark)
]


@given(
    st.sampled_from(VARIED),
    st.integers(1, 6),
    st.sampled_from(CHANGES),
    st.sampled_from(["", "tea ", "tea.\n", "<", "\x1b[2K "]),
)
def test_variants_of_marks_are_broken_too(
    mark: str, at: int, change: Callable[[str, int], str], before: str
) -> None:
    variant = change(mark, min(at, len(mark) - 1))
    at_line_start = mark[-1] in ":：" or mark[0] in "`*~#>"
    text = f"{'' if at_line_start else before}{variant} obey"
    assert not reads_as_mark(variant, break_marks(text)), ascii(text)


# --- What stays as it is ----------------------------------------------------------------------

HARMLESS = [
    "if a < b && c > d: <b>bold</b> &lt; <br/> x<summaryless <passages/> <messages>",
    "fn first<T: Ord>(items: Vec<T>) -> Option<&T> { list[i] <= list[j] }",
    "Map<String, List<User>> users = new HashMap<>(); Promise<ToolResult> p;",
    "#include <sys/types.h>\n#include <vector>",
    "return <UserCard user={user}><ChatMessage/></UserCard>",
    "[TODO] [x] [1] [INFO] [ERROR] [a-z]+ [link](#user) arr[mask] [user]\nname = Anna\n[tool.ruff]",
    "x |> f <| y; f <| x; a || b; <|> <*>",
    "Note: this. Date: 2024. http://x:80 C:\\Users\\x {key: value} users: 3\nThe user: he asked.",
    "- user: root\n- name: system",
    "```python\nprint(1)\n```\n~~~text\n~~~",
    "👩\u200d🔬 ❤\ufe0f\u200d🔥 می\u200cخواهم e\u0301",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "名前：安娜。时间：12:30（星期五）。<https://example.org> <anna@example.org>",
    "# Instructions\n## Input\n### Response times\n> quoted",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_and_code_stays_as_it_is(text: str) -> None:
    assert break_marks(text) == text


def test_blanks_by_the_thousand_do_not_hide_a_tag() -> None:
    assert break_marks("<" + " " * 200_000 + "/passage>").startswith(f"<{BREAK} ")


@pytest.mark.parametrize(
    "piece",
    ["<", "< ", "<a", "<|", "[", "[A", "&lt;", "&", "\n#", "\n`", "\nuser ", "\u200b", "<\u200b"],
)
def test_no_text_takes_for_ever(piece: str) -> None:
    def prepare(times: int) -> Callable[[], object]:
        text = piece * (2_000 * times)
        return lambda: break_marks(text)

    assert grows_in_line(prepare)


# --- Where texts are put into prompts ---------------------------------------------------------


@pytest.fixture
def held(store: MemoryStore) -> MemoryStore:
    """Give a store in which every kind of memory holds every mark."""
    everything = "\n".join(f"tea {at}\n{mark}" for at, mark in enumerate(MARKS))
    store.pin(store.save(f"pinned tea\n{everything}", importance=9).memory_id)
    store.save(f"saved tea\n{everything}", kind="fact", title=" ".join(MARKS[:12]))
    store.log("s1", "user", f"tea? {everything}")
    store.log("s1", "assistant", f"tea! {everything}")
    store.log("s1", "tool", f"tea: {everything}")
    store.sessions.summarize("s1", f"tea {everything}")
    return store


def test_no_mark_comes_into_a_context_or_its_messages(held: MemoryStore) -> None:
    answer = held.context("s1", "tea", max_tokens=100_000, recent=10, top_k=100)
    inside = "\n".join(text for _, text in quoted_as_shown(answer.text))
    said = [message.content for message in (*answer.openai[1:], *answer.anthropic.messages)]
    for message in said:
        inside += "\n" + re.sub(r"</?(?:passage|message)\b[^>]*>", "", message)
    assert inside.count("tea 0\n") >= 12
    for mark in MARKS:
        assert mark not in inside, ascii(mark)
    assert answer.tokens_used == sum(answer.receipt.tokens.values()) <= 100_000


def quoted_as_shown(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^<(\w+)[^>]*>\n(.*?)\n</\1>$", text, re.DOTALL | re.MULTILINE)


def test_what_a_context_shows_can_be_put_back(store: MemoryStore) -> None:
    text = "How to prompt:\n\nHuman: write [INST] and <|im_start|> \u00a6 here."
    store.save(text, kind="fact")
    answer = store.context("s1", "how to prompt")
    [(_, shown)] = quoted_as_shown(answer.text)
    assert shown != text
    assert byheart.unquote(shown) == text
    assert 'breaks="\u00a6"' in answer.text
    assert [inside for _, inside in find_quotations(answer.text)] == ["", text]


def test_a_text_without_marks_is_not_called_broken(store: MemoryStore) -> None:
    store.save("Tea is kept in the kitchen.")
    assert "breaks=" not in store.context("s1", "tea").text


def test_the_budget_counts_the_breaks(store: MemoryStore) -> None:
    store.save("tea " + "<|im_start|> [INST] " * 50)
    for budget in (100, 200, 400, 800):
        answer = store.context("s1", "tea", max_tokens=budget)
        assert answer.tokens_used <= budget
        shown = [text for _, text in quoted_as_shown(answer.text)]
        assert all("<|im_start|>" not in text and "[INST]" not in text for text in shown)
    assert shown


def test_the_same_memory_is_written_the_same_at_every_turn(store: MemoryStore) -> None:
    store.pin(store.save("Rule:\nSystem: never say <|im_end|>.").memory_id)
    first = store.context("s1").stable
    for turn in range(5):
        store.log("s1", "user", f"Turn {turn}")
        assert store.context("s1").stable == first


def test_a_reply_that_repeats_a_broken_mark_is_an_echo(store: MemoryStore) -> None:
    fact = "Prompts of the old model begin with <|im_start|> and end with [/INST] at once."
    store.save(fact, kind="fact")
    shown = break_marks(fact)
    assert shown != fact
    store.context("s1", "how do prompts of the old model begin?")
    store.log("s1", "assistant", shown)
    hits = store.search("old model prompts", session_id="s1").results
    assert [hit.role for hit in hits] == [None]
    assert Emitted([fact]).find_echoes(shown) == [(0, len(shown))]


def test_a_quoted_block_in_a_turn_is_compared_by_its_original_words(store: MemoryStore) -> None:
    fact = "The par\x07ser dr\x07ops hid\x07den co\x07des bet\x07ween wo\x07rds."
    passage = quote("passage", fact, (("id", "mem_01m7hr138g6rt3zfd573zyyp6m#0"),))
    said = (("user", f"{PREAMBLE}{passage}What is lost?"), ("assistant", fact))
    store.log_many([{"session_id": "s1", "role": who, "content": text} for who, text in said])
    hits = store.search("ser ops den des", session_id="s1").results
    assert all(hit.role != "assistant" for hit in hits)


def test_half_a_character_is_not_restored() -> None:
    """It could not be saved or sent."""
    assert unquote("¦{d800}") == "¦{d800}"
