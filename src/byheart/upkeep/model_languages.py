"""Say when a model does not suit the languages of the memories."""

from __future__ import annotations

from collections.abc import Mapping

from byheart.errors import Do, Hint
from byheart.language.detection import UNDETERMINED
from byheart.model import Finding
from byheart.startup.late_patterns import late_pattern

# Fewer memories in another language, or a smaller share, may be names and quotations.
_LEAST_MEMORIES, _LEAST_SHARE = 10, 0.1
_MOST_NAMED = 3
_MULTILINGUAL_MODEL = "intfloat/multilingual-e5-small"
# Models whose authors trained them on English; other models may read anything.
_ENGLISH = late_pattern(
    r"all-(minilm|mpnet|distilroberta)|(?<!multilingual-)e5-(small|base|large)|bge-\w+-en"
    r"|gte-(small|base|large)(?!-)|multi-qa-|msmarco-|(?<!multilingual-)paraphrase-minilm"
)


def reads_only_english(model: str) -> bool:
    """Tell whether a model is known to have learned English alone."""
    return _ENGLISH.search(model.lower()) is not None


def check_languages(model: str | None, memories: Mapping[str, int]) -> Finding | None:
    """Compare a model with the number of memories in each language; find nothing if it suits."""
    known = {tag: number for tag, number in memories.items() if tag != UNDETERMINED}
    others = {tag: number for tag, number in known.items() if tag.partition("-")[0] != "en"}
    number = sum(others.values())
    if model is None or not reads_only_english(model):
        return None
    if number < _LEAST_MEMORIES or number < _LEAST_SHARE * sum(known.values()):
        return None
    most = sorted(others, key=lambda tag: -others[tag])[:_MOST_NAMED]
    named = ", ".join(f"{tag} {others[tag]:,}" for tag in most)
    return Finding(
        "languages",
        True,
        f"{number:,} of {sum(known.values()):,} memories with a known language are not in English "
        f"({named}), and the model {model} has learned English alone: it finds them by keyword",
        Hint(
            "use a model of many languages: ",
            Do("config set", "embedding_model", _MULTILINGUAL_MODEL),
            ", then: ",
            Do("admin.reembed"),
        ),
    )
