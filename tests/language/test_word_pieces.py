"""Pieces of words: forms of a word share them, in languages whose stems FTS5 does not know."""

from __future__ import annotations

import pytest

from byheart.language.word_pieces import (
    MARK,
    count_words,
    pieces_of_question,
    pieces_of_text,
    terms_of_question,
)
from byheart.model import ChunkHit
from byheart.store import MemoryStore
from tests.conftest import OpenStore


def bare(pieces: list[str] | tuple[str, ...]) -> list[str]:
    assert all(piece.startswith(MARK) for piece in pieces)
    return [piece[len(MARK) :] for piece in pieces]


def test_a_word_is_cut_into_overlapping_pieces_of_four() -> None:
    assert bare(pieces_of_text("Wo ist das Haus, und wer hat die Schlüssel?"))[:6] == [
        *("wo", "ist", "das", "haus", "und", "wer")
    ]
    assert bare(pieces_of_text("Škoda")) == ["škod", "koda"]


def test_english_texts_have_pieces_of_words_beyond_ascii_only() -> None:
    assert pieces_of_text("the houses by the lake") == []
    assert bare(pieces_of_text("the houses of Škoda")) == ["škod", "koda"]
    assert pieces_of_text("x = getUser(1)") == []


def test_marks_stay_with_their_letters_and_unspaced_scripts_are_left_out() -> None:
    assert bare(pieces_of_text("किताब है।")) == ["किता", "िताब", "है"]
    assert pieces_of_text("北京大学") == []


@pytest.mark.parametrize(
    ("question", "has_pieces"),
    [
        ("Panthers savunması kaç sayı bırakmıştır?", True),
        ("Wo steht das Haus, und wer hat die Schlüssel?", True),
        ("where is the key of the house?", False),
        ("Where did José go?", True),
    ],
)
def test_a_question_is_read_by_its_language(question: str, has_pieces: bool) -> None:
    assert bool(pieces_of_question(question)) is has_pieces


def test_pieces_do_not_make_a_text_longer() -> None:
    assert count_words(["haus", MARK + "haus", MARK + "häus"]) == 1


# (a text, a question with other forms of its words)
OTHER_FORMS = [
    ("Kütüphanedeki kitapların hepsini geçen yıl öğrencilerimiz okudu.", "kitaplarımız"),
    ("Η βιβλιοθήκη των πανεπιστημίων είναι κλειστή τις Κυριακές.", "πανεπιστήμιο"),
    ("विद्यार्थियों ने पुस्तकालय में बहुत सारी किताबें पढ़ीं।", "पुस्तकालयों"),
    ("Мы читали книги в городской библиотеке каждое воскресенье.", "библиотеками"),
    ("قرأنا الكتب في المكتبة العامة كل يوم من أيام الأسبوع", "بالمكتبة"),
]


@pytest.mark.parametrize(("text", "question"), OTHER_FORMS)
def test_another_form_of_a_word_is_found(open_store: OpenStore, text: str, question: str) -> None:
    store = open_store()
    wanted = store.save(text).memory_id
    for other, _ in OTHER_FORMS:
        store.save(other)
    for each in (store, open_store()):  # from the index of this process, and from the file
        hits = each.search(question, mode="fts").results
        assert [hit.memory_id for hit in hits[:1]] == [wanted]


def test_an_english_store_is_searched_by_the_same_terms_as_before(store: MemoryStore) -> None:
    store.save("The keeper of the lighthouse painted the door green last summer.")
    [hit] = store.search("Who painted the door?", mode="fts", explain=True).results
    assert isinstance(hit, ChunkHit)
    assert hit.explanation is not None
    assert hit.explanation.fts is not None
    assert set(hit.explanation.fts.terms) == {"paint", "door"}


def test_the_language_that_a_memory_is_given_later_changes_no_terms(open_store: OpenStore) -> None:
    store = open_store()
    saved = store.save("A slow query note")
    store.update(saved.memory_id, language="de")
    answers = [each.search("slow index query", explain=True) for each in (store, open_store())]
    assert answers[0].results == answers[1].results
    assert answers[0].grounds == answers[1].grounds


@pytest.mark.parametrize("question", ["port", "server port"])
def test_a_word_of_english_texts_is_not_searched_by_its_pieces(
    store: MemoryStore, question: str
) -> None:
    texts = [f"Service {at} listens on port {8000 + at} of the machine." for at in range(9)]
    store.save_many([{"content": text} for text in texts])
    store.save("Der Transport der Möbel nach Hamburg dauert lange, sagt die Firma.")
    found = store.search(question, mode="fts", limit=20)
    assert sorted(hit.snippet for hit in found.results) == texts
    transported = store.search("transportieren", mode="fts").results
    assert [hit.snippet[:13] for hit in transported] == ["Der Transport"]


def test_a_word_that_fts5_cuts_into_letters_is_searched_by_its_pieces(store: MemoryStore) -> None:
    others = [f"नदी {at} पहाड़ के पास बहती है और थक कर सो जाती है, थाली खाली है।" for at in range(9)]
    store.save_many({"content": text} for text in others)
    right = store.save("थॉमस डेविस ने दो फ़ोर्स्ड फ़म्बल किए थे।").memory_id
    found = store.search("थॉमस डेविस कितने", mode="fts", explain=True).results[0]
    assert found.memory_id == right
    assert found.explanation is not None
    assert found.explanation.fts is not None
    assert "~थॉमस" in found.explanation.fts.terms


# Four words whose letters are the same without their marks.
MARKED = {
    "bạn": "Bạn tôi sống trong một thành phố lớn.",
    "bàn": "Cái bàn gỗ đặt giữa căn phòng.",
    "bán": "Cửa hàng bán hoa tươi mỗi sáng.",
    "bản": "Tấm bản đồ cũ treo trên tường.",
}


@pytest.mark.parametrize("word", MARKED)
def test_vietnamese_words_are_told_apart_by_their_marks(store: MemoryStore, word: str) -> None:
    store.save_many({"content": text} for text in MARKED.values())
    found = store.search(f"{word} nào ạ", mode="fts", limit=1).results
    assert [hit.snippet for hit in found] == [MARKED[word]]


def test_vietnamese_words_without_marks_find_all_words_of_their_letters(
    store: MemoryStore,
) -> None:
    store.save_many({"content": text} for text in MARKED.values())
    assert len(store.search("ban", mode="fts").results) == len(MARKED)


def test_words_of_other_languages_are_found_with_and_without_their_marks() -> None:
    assert "cafe" in terms_of_question("Where is the café?")
    assert "sehir" in terms_of_question("şehir nerede")
    assert "ban" not in terms_of_question("bạn nào ở đây")
