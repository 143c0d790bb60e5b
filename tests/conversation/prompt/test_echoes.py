"""What repeats a prompt is known again; what says the same in other words is not taken for it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from byheart.chunking import set_apart, split
from byheart.conversation.prompt import Emitted, find_quotations
from byheart.conversation.prompt.delimiting import PREAMBLE, quote
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.model import ECHO
from byheart.model.ids import short_form

MEMORY = "mem_01m7hr138g6rt3zfd573zyyp6m"
EMITTED = (
    "The deploy key is kept in the vault under ci/deploy. It is rotated every March by Olga.",
    "Anna prefers tea to coffee and never drinks milk.",
    "The billing service listens on port 8080 behind the gateway in Frankfurt.",
    "We decided to keep invoices for ten years because the auditors asked for it.",
    "午後の会議は金曜日に変更されました。資料は共有フォルダにあります。",
)

ECHOES = (
    "The deploy key is kept in the vault under ci/deploy.",
    "the deploy key is kept in the vault, under CI/deploy!",
    "According to my notes, the deploy key is kept in the vault under ci/deploy.",
    "The deploy key is kept in the vault under ci/deploy [mem_01m7hr138g6rt3zfd573zyyp6m#0].",
    "> The **deploy key** is kept in the vault under `ci/deploy`.",
    "The deploy key is stored in the vault under ci/deploy.",
    "It is rotated every March by Olga.",
    "Anna prefers tea to coffee.",
    "Anna prefers tea to coffee, and never drinks milk (source: mem_01m7hr138g6rt3zfd573zyyp6m).",
    "Your billing service listens on port 8080 behind the gateway in Frankfurt.",
    "We decided to keep invoices for ten years since the auditors asked for it.",
    "午後の会議は金曜日に変更されました。",
)

# The same things said by somebody who says them on their own account, and things that differ.
OWN_WORDS = (
    "I always store our deployment credentials in the secrets vault, in the ci folder.",
    "Put the key for deployments into the vault, please.",
    "Olga changes that key once a year, in spring.",
    "Anna likes tea better than coffee.",
    "No milk for Anna, and give her tea.",
    "Our billing runs on 8080 in Frankfurt.",
    "Invoices must be kept for a decade; that is what the auditors want.",
    "The auditors asked us to hold on to every invoice for ten years.",
    "The meeting is on Friday afternoon now.",
    # One word makes it another fact.
    "The billing service listens on port 8081 behind the gateway in Frankfurt.",
    "The billing service listens on port 8080 behind the gateway in Dublin.",
    "Anna prefers coffee to tea.",
    "The deploy key is not kept in the vault under ci/deploy.",
    "Anna prefers tea to coffee and drinks milk.",
    "It is rotated every March by Pavel.",
    # Common words in a common order.
    "It is kept in the drawer.",
    "We decided to go on with the plan for the next ten years of growth.",
    "Thank you!",
    "Yes.",
)


@pytest.mark.parametrize("said", ECHOES)
def test_what_was_put_in_is_known_again(said: str) -> None:
    assert Emitted(EMITTED).find_echoes(said) == [(0, len(said))]


@pytest.mark.parametrize("said", OWN_WORDS)
def test_own_words_and_other_facts_are_no_echo(said: str) -> None:
    assert Emitted(EMITTED).find_echoes(said) == []


def test_only_the_repeated_sentences_of_a_reply_are_echoes() -> None:
    reply = (
        "Sure. The deploy key is kept in the vault under ci/deploy. "
        "I have changed the pipeline so that it reads the key from there.\n"
        "- Anna prefers tea to coffee.\n- Boris is on holiday until Monday.\n"
    )
    echoes = Emitted(EMITTED).find_echoes(reply)
    assert [reply[start:end].strip() for start, end in echoes] == [
        "The deploy key is kept in the vault under ci/deploy.",
        "- Anna prefers tea to coffee.",
    ]


@pytest.mark.parametrize("name", [f"{MEMORY}#0", short_form(f"{MEMORY}#0"), f"{MEMORY[4:14]}#2-4"])
def test_a_block_of_ours_is_known_by_its_delimiters(name: str) -> None:
    passage = quote("passage", "A text that\n\nno store knows.", (("id", name), ("kind", "x y")))
    message = quote("message", "Who said this?", (("role", "user"),))
    block = f"{PREAMBLE}{passage}{message}"
    text = f"{block}\nMy question is another one."
    [(start, end)] = Emitted().find_echoes(text)
    assert text[start:end] == block
    assert [inside for _, inside in find_quotations(text)] == [
        "",
        "A text that\n\nno store knows.",
        "Who said this?",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<summary>\nA fold-out of HTML.\n</summary>",
        '<message role="user">\nAn XML of others.\n</message>',
        "<passage>\nFrom a book.\n</passage>",
        '<passage id="1">\nThe old bakery in Lisbon opens at six.\n</passage>',
        '<passage id="mem_1#0">\nFrom a program with ids like ours.\n</passage>',
        "<passage id=javascript>\nA tag of others.\n</passage>",
        f'<passage id="{MEMORY}">\nwithout an end',
        f'<passage id="{MEMORY}">no line of its own</passage>',
    ],
)
def test_tags_of_others_are_not_taken_for_ours(text: str) -> None:
    assert Emitted().find_echoes(text) == []


@pytest.mark.parametrize("name", ["under", "title"])
def test_a_block_is_known_by_its_delimiters_whatever_its_attributes_say(name: str) -> None:
    about = (
        ("id", f"{MEMORY}#0"),
        (name, 'Guide > Birds -> "Kestrels" <here>'),
        ("date", "2026-03-01"),
    )
    block = quote("passage", "Kestrels hover.", about)
    assert find_quotations(f"{block}And now?") == [((0, len(block)), "Kestrels hover.")]


# --- No text takes for ever -------------------------------------------------------------------


def test_unclosed_tags_by_the_thousand_do_not_take_for_ever() -> None:
    assert find_quotations(f'<passage id="{MEMORY}">\n' * 10_000) == []


@pytest.mark.parametrize("piece", [".", " ", "\n", "id: ", "(", "mem_", f'<passage id="{MEMORY}" '])
def test_a_text_of_one_piece_by_the_thousand_does_not_take_for_ever(piece: str) -> None:
    assert Emitted(EMITTED).find_echoes(piece * (200_000 // len(piece)) + "x") == []


def test_sentences_among_quotations_by_the_thousand_do_not_take_for_ever() -> None:
    """Looking through all quotations for each sentence took minutes."""
    block = f'<passage id="{MEMORY}">\nx\n</passage>\n' * 2_000
    assert Emitted(EMITTED).find_echoes(block + "ab.\n" * 30_000) == [(0, len(block))]


def test_lines_that_are_all_alike_do_not_take_for_ever() -> None:
    """A log repeats its words in every line: each was compared with all lines given before."""

    def lines(numbers: range, when: str) -> str:
        return "\n".join(f"INFO worker {n} is ready to serve requests {when}" for n in numbers)

    given_out = Emitted(lines(range(at, at + 40), "now") for at in range(0, 4_000, 40))
    again, other = lines(range(1_000, 2_000), "today"), lines(range(5_000, 6_000), "now")
    assert given_out.find_echoes(again) == [(0, len(again))]
    assert given_out.find_echoes(other) == []


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from((*ECHOES[:6], *OWN_WORDS[:6], "", "# Keys", "a\r\nb")), max_size=8),
    st.sampled_from((" ", "\n", "\r\n", "\n\n")),
)
def test_chunks_set_apart_are_still_the_text(sentences: list[str], gap: str) -> None:
    text = gap.join(sentences)
    assume(text.strip())
    tokens = EstimatedTokens()
    whole = split(text, format="markdown", tokens=tokens)
    echoes = Emitted(EMITTED).find_echoes(text)
    chunks = set_apart(whole, echoes, tokens, 3)
    assert "".join(chunk.content for chunk in chunks) == text
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    lines = text.replace("\r\n", "\n").split("\n")
    for chunk in chunks:
        assert text[chunk.start_char : chunk.end_char] == chunk.content
        assert chunk.content.strip()
        assert 1 <= chunk.start_line <= chunk.end_line <= len(lines)
        words = chunk.content.strip().splitlines()[0].strip()
        assert any(words in line for line in lines[chunk.start_line - 1 : chunk.end_line])
    apart = "".join(chunk.content for chunk in chunks if chunk.chunk_type == ECHO)
    assert apart.split() == " ".join(text[start:end] for start, end in echoes).split()


def test_a_short_sentence_is_an_echo_as_a_whole_text_or_beside_another_one() -> None:
    """A formula that many say ("Sounds good!") would cut every other reply into pieces."""
    said = Emitted(["Anna likes tea.", "Sounds good! The ferry leaves at noon from the old pier."])
    assert said.find_echoes("Anna likes tea.") == [(0, 15)]
    assert said.find_echoes("Sounds good! I will book the hotel tomorrow.") == []
    echoed = "Sounds good! The ferry leaves at noon from the old pier."
    assert said.find_echoes(echoed) == [(0, len(echoed))]
