"""Read the configuration of a model in a sentence-transformers folder, but not its weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, cast

from byheart.errors import ModelFilesError
from byheart.startup.dataclass_types import dataclass

# A model with `score` makes no vector: it compares two texts.
Pooling = Literal["mean", "cls", "score"]

# The files that every model folder must have, including the weights.
WEIGHTS = "model.safetensors"
REQUIRED_FILES = ("config.json", "tokenizer.json", WEIGHTS)
XLM_ROBERTA = "xlm-roberta"
FAMILIES = ("bert", XLM_ROBERTA)
ACTIVATIONS = ("gelu", "gelu_new", "gelu_fast")
E5_INSTRUCTION = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)
ONLY_BERT = "only BERT-family sentence-transformers models can be loaded"


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """Describe the shape of a BERT-family sentence model and how to make its vectors.

    `first_position` is the row of the position table that belongs to the first token.
    """

    dimensions: int
    layers: int
    heads: int
    epsilon: float
    activation: str
    pooling: Pooling
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    first_position: int = 0


def read_sentence_model(folder: Path, name: str) -> SentenceModel:
    """Read the configuration files in `folder` of the model called `name`."""
    config = _read_json(folder / "config.json")
    _refuse_other_families(config, name)
    first = _first_position(config)
    positions = int(config["max_position_embeddings"]) - first
    limit = _read_json(folder / "sentence_bert_config.json", {}).get("max_seq_length")
    query_prefix, passage_prefix = _prefixes(folder, name)
    return SentenceModel(
        dimensions=int(config["hidden_size"]),
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        activation=str(config.get("hidden_act", "gelu")),
        pooling="score" if _compares(config) else _pooling(folder, name),
        max_tokens=min(int(limit or positions), positions),
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        first_position=first,
    )


def _refuse_other_families(config: dict[str, Any], name: str) -> None:
    family = config.get("model_type")
    activation = config.get("hidden_act", "gelu")
    positions = config.get("position_embedding_type", "absolute")
    if family not in FAMILIES:
        known = " or ".join(map(repr, FAMILIES))
        raise ModelFilesError(f"the model {name} is of type {family!r}, not {known}", ONLY_BERT)
    if activation not in ACTIVATIONS or positions != "absolute":
        raise ModelFilesError(
            f"the model {name} uses {activation!r} with {positions!r} positions", ONLY_BERT
        )


def _compares(config: dict[str, Any]) -> bool:
    """Tell whether the model is a cross-encoder."""
    families = config.get("architectures") or [""]
    return str(families[0]).endswith("ForSequenceClassification")


def _first_position(config: dict[str, Any]) -> int:
    """Return the first position: XLM-RoBERTa begins after the number of its padding token."""
    return int(config.get("pad_token_id", 1)) + 1 if config["model_type"] == XLM_ROBERTA else 0


def _pooling(folder: Path, name: str) -> Pooling:
    modules = cast(list[dict[str, Any]], _read_json(folder / "modules.json", []))
    kinds = {str(module.get("type", "")).rpartition(".")[2]: module for module in modules}
    if unknown := set(kinds) - {"Transformer", "Pooling", "Normalize"}:
        raise ModelFilesError(f"the model {name} needs modules {sorted(unknown)}", ONLY_BERT)
    path = str(kinds.get("Pooling", {}).get("path", "1_Pooling"))
    config = _read_json(folder / path / "config.json", {"pooling_mode_mean_tokens": True})
    chosen = {key for key, value in config.items() if key.startswith("pooling_mode") and value}
    if chosen == {"pooling_mode_mean_tokens"}:
        return "mean"
    if chosen == {"pooling_mode_cls_token"}:
        return "cls"
    raise ModelFilesError(f"the model {name} pools by {sorted(chosen)}", "use mean or cls pooling")


def _prefixes(folder: Path, name: str) -> tuple[str, str]:
    """Find the prefix for questions and the prefix for passages."""
    prompts = _read_json(folder / "config_sentence_transformers.json", {}).get("prompts") or {}
    passage = prompts.get("passage") or prompts.get("document") or ""
    if prompts.get("query") or passage:
        return prompts.get("query") or "", passage
    # These model families document their prefixes only in their descriptions, not in a file.
    family = name.rstrip("/").rpartition("/")[2].lower()
    if "e5-" in family and "instruct" in family:
        return E5_INSTRUCTION, ""
    if "e5-" in family:
        return "query: ", "passage: "
    if family.startswith("bge-") and "-en" in family:
        return "Represent this sentence for searching relevant passages: ", ""
    return "", ""


def _read_json(path: Path, default: Any = None) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if default is not None:
            return default
        raise ModelFilesError(f"{path} is missing", ONLY_BERT) from None
    except ValueError as error:
        raise ModelFilesError(f"{path} is not valid JSON: {error}", "get the model again") from None
