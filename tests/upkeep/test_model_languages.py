"""The doctor says when a model does not suit the languages of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

import byheart
from byheart.upkeep.model_languages import check_languages, reads_only_english

GERMAN = "Das ist nicht der Bericht über die Straße, und {} Leute haben ihn für dich geschrieben."


@pytest.mark.parametrize(
    "model",
    [
        "all-MiniLM-L6-v2-int8",
        "intfloat/e5-small-v2",
        "onnx/BAAI/bge-small-en-v1.5",
        "paraphrase-MiniLM-L6-v2@12345678-int8",
    ],
)
def test_english_models_are_known(model: str) -> None:
    assert reads_only_english(model)


@pytest.mark.parametrize(
    "model",
    [
        "intfloat/multilingual-e5-small",
        "multilingual-e5-base@12345678-int8",
        "paraphrase-multilingual-MiniLM-L12-v2",
        "BAAI/bge-m3",
        "BAAI/bge-small-zh-v1.5",
        "hash-384",
        "nomic-embed-text",
    ],
)
def test_of_other_models_nothing_is_said(model: str) -> None:
    assert not reads_only_english(model)
    assert check_languages(model, {"de": 1000}) is None


def test_a_few_foreign_memories_are_no_matter() -> None:
    english = "all-MiniLM-L6-v2-int8"
    assert check_languages(english, {"en": 5, "de": 9, "und": 500}) is None
    assert check_languages(english, {"en": 500, "de": 50}) is None
    assert check_languages(english, {"en-GB": 100, "und": 9}) is None
    assert check_languages(None, {"de": 1000}) is None
    found = check_languages(english, {"en": 100, "de": 40, "el": 20, "fr": 3, "th": 1, "und": 7})
    assert found is not None
    assert found.ok
    assert found.message.startswith("64 of 164 memories")
    assert "(de 40, el 20, fr 3)" in found.message


@pytest.mark.model
def test_the_doctor_names_a_model_of_many_languages(tmp_path: Path) -> None:
    with byheart.open(tmp_path / "memory.db", embed_on_save=False) as store:
        store.save_many({"content": GERMAN.format(number)} for number in range(12))
        [found] = [each for each in store.admin.doctor() if each.check == "languages"]
        assert "12 of 12" in found.message
        assert "multilingual-e5-small" in str(found.hint)
