"""Check that everything is in order, and say what to do where it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from byheart.contracts import Refused, Storage
from byheart.embedding import stored_vectors
from byheart.errors import ByheartError, Do, Hint, SettingsError, StoreDamaged
from byheart.model import Finding
from byheart.settings import (
    default_config_path,
    holds_secrets,
    load_settings,
    overruled_settings,
    unknown_variables,
)
from byheart.system.private_files import is_exposed, make_private

# How many chunks without possible vectors are named.
_MOST_NAMED = 3


def examine(
    storage: Storage,
    unavailable: Callable[[], str | None],
    remark: Callable[[], str | None],
    embed_pending: Callable[[], int] | None,
    refused: Callable[[], Sequence[Refused]],
    model_files: Callable[[], Finding | None],
    languages: Callable[[], Finding | None],
    reranker: Callable[[], Finding | None],
) -> tuple[Finding, ...]:
    """Check the store, settings, embedder and vectors; repair them if requested."""
    fix = embed_pending is not None
    findings = storage.examine(fix=fix)
    # Vectors need the model's files, so damaged files are repaired first.
    model = model_files()
    pending = _pending(storage, embed_pending, refused)
    # Computing vectors may download a missing model, so the embedder is checked afterwards.
    if model is not None and model.ok and model.hint:
        model = model_files()
    files = () if model is None else (model,)
    optional = [each for each in (languages(), reranker()) if each is not None]
    return (
        *findings,
        _settings(),
        _config_file(fix),
        *files,
        _embedding(unavailable(), remark()),
        *optional,
        pending,
    )


def report_damage(error: StoreDamaged) -> Finding:
    """Report a store that is too damaged for the checks, without sending to the doctor again."""
    return Finding("database file", False, error.message, error.remedy)


def _settings() -> Finding:
    """Check the current config file and variables, whatever settings the store was opened with."""
    name = "settings"
    try:
        overruled = overruled_settings()
        load_settings()
    except SettingsError as error:
        return Finding(name, False, error.message, error.hint)
    path = default_config_path()
    said = [f"{variable} wins over {key} in {path}" for key, variable in overruled.items()]
    said += [
        f"the variable {variable} is no setting: did you mean {nearest}?"
        for variable, nearest in unknown_variables().items()
        if nearest  # other variables may belong to other programs
    ]
    if not said:
        return Finding(name, True, "in order")
    return Finding(name, True, "; ".join(said), Hint("see all of them with: ", Do("config list")))


def _config_file(fix: bool) -> Finding:
    """Check whether other users can read the config file, which may contain an API key."""
    name, path = "config file", default_config_path()
    if not is_exposed(path) or not holds_secrets(path):
        return Finding(name, True, "in order")
    message = f"every user of this machine can read {path}, which holds an API key or a password"
    if not fix:
        return Finding(name, False, message, Hint("run: ", Do("admin.doctor", fix=True)))
    try:
        make_private(path)
    except OSError as error:
        hint = f"run as its owner: chmod 600 {path}"
        return Finding(name, False, f"{message}: {error.strerror}", hint)
    return Finding(name, True, f"fixed: {message}", fixed=True)


def _embedding(unavailable: str | None, remark: str | None) -> Finding:
    if unavailable is None:
        return Finding("embedding", True, remark or "in order")
    hint = Hint("look at: ", Do("model status"), ", ", Do("config list"))
    return Finding("embedding", False, unavailable, hint)


def _pending(
    storage: Storage,
    embed_pending: Callable[[], int] | None,
    refused: Callable[[], Sequence[Refused]],
) -> Finding:
    name = "vectors complete"
    made = 0
    if embed_pending is not None:
        try:
            made = embed_pending()
        except ByheartError as error:
            return Finding(name, False, error.message, error.hint)
    waiting = stored_vectors.count_waiting(storage)
    if waiting and embed_pending is not None and (left := refused()):
        named = ", ".join(each.chunk_id for each in left[:_MOST_NAMED])
        more = f" and {len(left) - _MOST_NAMED:,} others" if len(left) > _MOST_NAMED else ""
        return Finding(
            name,
            False,
            Hint(f"the embedder refuses {named}{more}: ", left[-1].reason),
            Hint("found by keyword alone; another model may take it: ", Do("admin.reembed")),
        )
    if waiting:
        return Finding(
            name,
            False,
            stored_vectors.describe_missing(waiting),
            Hint("run: ", Do("admin.doctor", fix=True)),
        )
    message = f"made {made:,} that were missing" if made else "in order"
    return Finding(name, True, message, fixed=made > 0)
