"""Define the verbs that look after a store: `store.admin`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Unpack

from byheart.embedding import stored_vectors
from byheart.embedding.reembedding import Reembedder
from byheart.errors import ByheartError, Do, Hint, InvalidInput, StoreDamaged
from byheart.memory import duplicates, references, transactions
from byheart.model import (
    Backup,
    Bench,
    Dedupe,
    EmbeddedShare,
    Filter,
    Finding,
    Forgotten,
    Merged,
    Reembedding,
    Stats,
)
from byheart.model import checks as check
from byheart.model.memories import FilterFields
from byheart.search.reranking import ask_reranker
from byheart.system.forks import RefusedInChild
from byheart.upkeep import doctor
from byheart.upkeep.model_languages import check_languages
from byheart.verbs import moving
from byheart.verbs.engine import CHUNKS_PER_BATCH, Engine

Text = str | None


class AdminVerbs(RefusedInChild):
    """Measure, check, repair, clean up and copy a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._storage = engine.storage
        self._vectorizer = engine.vectorizer

    def stats(self, space: Text = None, reset: bool = False) -> Stats:
        """Count the contents and usage of a space, in all processes; `reset` clears the counts."""
        name, observer = self._engine.space(space), self._engine.observer
        check.check_bool("reset", reset)
        stats = observer.stats(self._storage.location, name, self._storage.inventory(name))
        if reset:
            observer.reset(name)
        return stats

    def complete_id(self, beginning: str, space: Text = None) -> str:
        """Complete the beginning of a memory's id, as `short_ids` gives it.

        A name that is no beginning of an id stays as it is, so paths and whole ids can be passed.
        """
        name, where = check.check_name("memory_id", beginning), self._engine.space(space)
        with self._storage.reading(where) as reader:
            return references.complete_id(reader, name, where)

    def short_ids(self, memory_ids: Sequence[str], space: Text = None) -> dict[str, str]:
        """Give each id a short form that names one memory, for people to read and type."""
        names, where = check.check_ids("memory_ids", memory_ids), self._engine.space(space)
        with self._storage.reading(where) as reader:
            return references.shorten_ids(reader, names, where)

    def doctor(
        self, fix: bool = False, rebuild: bool = False, optimize: bool = False
    ) -> tuple[Finding, ...]:
        """Check the store, its model and its settings; repair derived data when asked to."""
        check.check_bool("fix", fix)
        try:
            return self._examine_store(fix, rebuild, optimize)
        except StoreDamaged as error:
            return (doctor.report_damage(error),)

    def _examine_store(self, fix: bool, rebuild: bool, optimize: bool) -> tuple[Finding, ...]:
        if check.check_bool("rebuild", rebuild):
            self._storage.rebuild()
        if check.check_bool("optimize", optimize):
            stored_vectors.drop_unused(self._storage, next_too=False)
            self._storage.optimize()
        return doctor.examine(
            self._storage,
            self._vectorizer.unavailable,
            self._vectorizer.remark,
            self._embed_refused_too if fix else None,
            self._engine.saver.refused,
            partial(self._examine_model, fix),
            self._examine_languages,
            self._examine_reranker,
        )

    def _embed_refused_too(self) -> int:
        self._engine.saver.ask_again()
        return self._engine.embed_pending()

    def _examine_languages(self) -> Finding | None:
        space = self._engine.settings.space
        with self._storage.reading(space) as reader:
            counted = reader.views.languages(Filter(space))
        return check_languages(self._vectorizer.wanted_name(), counted)

    def _examine_reranker(self) -> Finding | None:
        reranking = self._engine.reranking
        if reranking is None:
            return None
        try:
            ask_reranker(reranking.reranker, "Does it work?", ("It works.",))
        except ByheartError as error:
            hint = error.hint or Hint("look at: ", Do("config list"))
            return Finding("reranker", False, error.message, hint)
        return Finding("reranker", True, "in order")

    def _examine_model(self, fix: bool) -> Finding | None:
        # Imported here, because saving and searching do not need to download models.
        from byheart.embedding.model_library import examine_model
        from byheart.embedding.model_sources import ModelSources

        settings = self._engine.settings
        if settings.embedding_provider not in ("auto", "onnx"):
            return None
        sources = ModelSources(settings.model_sources, offline=settings.offline)
        named = (settings.embedding_model, settings.model_path, settings.cache_dir)
        finding = examine_model(*named, sources, fix=fix)
        if finding.fixed:
            self._vectorizer.forget_failures()
        return finding

    def bench(self, questions: int = 50, k: int = 10, seed: int = 0, space: Text = None) -> Bench:
        """Ask the store questions made of its own passages, and say whether anything is wrong.

        The same seed makes the same questions while the store does not change. The questions are
        not counted, and the memories they find do not count as used. The figures are kept, and
        compared the next time.
        """
        # Imported here, because saving and searching do not need the benchmark.
        from byheart.upkeep.bench import MOST_QUESTIONS, Bencher

        ask = partial(self._engine.asking, remember=False)
        keeps = self._engine.settings.collect_stats
        return Bencher(self._storage, self._vectorizer, ask, keeps).run(
            self._engine.space(space),
            check.check_int("questions", questions, 1, MOST_QUESTIONS),
            check.check_int("k", k, 1, check.LARGEST_LIMIT),
            check.check_int("seed", seed, 0, check.LARGEST_SEED),
        )

    def cleanup(
        self,
        days_old: float = 90,
        dry_run: bool = True,
        hard: bool = False,
        who: str = "cleanup",
        **filters: Unpack[FilterFields],
    ) -> Forgotten:
        """Forget memories that expired, or that nobody changed or recalled for so many days."""
        return self._engine.forgetter.cleanup(
            days_old,
            filters,
            hard=check.check_bool("hard", hard),
            dry_run=check.check_bool("dry_run", dry_run),
            who=check.check_label("who", who),
        )

    def dedupe(
        self,
        threshold: float = 0.95,
        limit: int = 20,
        apply: bool = False,
        who: str = "dedupe",
        **filters: Unpack[FilterFields],
    ) -> Dedupe:
        """Propose which memories of the same kind and session to merge; with `apply`, merge them.

        Pairs whose names, numbers or negations differ are left out, however near they are.
        """
        where = self._engine.filter(filters)
        if where.as_of is not None:
            raise InvalidInput("as_of is not allowed: what was cannot be merged", "leave as_of out")
        return duplicates.dedupe(
            self._storage,
            replace(where, superseded=False),
            check.check_number("threshold", threshold, check.LEAST_THRESHOLD, 1),
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            apply=check.check_bool("apply", apply),
            who=check.check_label("who", who),
        )

    def merge(
        self,
        keep: str,
        others: str | Sequence[str],
        reason: Text = None,
        who: str = "manual",
        space: Text = None,
    ) -> Merged:
        """Merge memories into one, which gets their tags, entities and accesses; hide the others.

        `restore` brings back each of the others.
        """
        name = check.check_label("keep", keep)
        ids = check.check_labels("others", [others] if isinstance(others, str) else others)
        if not ids or name in ids:
            raise InvalidInput(
                "others are missing" if not ids else f"{name} cannot be merged into itself",
                "name the memory to keep, then those to be merged into it",
            )
        return transactions.merge(
            self._storage,
            name,
            ids,
            self._engine.space(space),
            check.check_label("who", who),
            check.check_optional_text("reason", reason, check.LONGEST_SUMMARY),
        )

    def backup(self, path: str | Path, overwrite: bool = False) -> Backup:
        """Copy the whole store to one file, as it is at this moment, while it is in use.

        A store on PostgreSQL is exported: all spaces as JSONL with vectors. API keys, workspaces
        and usage counts are not in it; `pg_dump` copies everything.
        """
        return moving.back_up(self._engine, path, overwrite)

    def embed_pending(
        self,
        on_progress: Callable[[int], None] | None = None,
        at_once: int = CHUNKS_PER_BATCH,
    ) -> int:
        """Make every vector that is still missing; each batch is kept, so it can be interrupted.

        Texts that the embedder refused are skipped; `doctor(fix=True)` tries them again and lists
        the refused ones.
        """
        show = check.check_callback("on_progress", on_progress)
        count = check.check_int("at_once", at_once, 1, check.LARGEST_LIMIT)
        return self._engine.embed_pending(show, count)

    def embed_share(self, limit: int = 64, lease_seconds: float = 300.0) -> EmbeddedShare:
        """Make vectors that are missing, as one of several workers: claim some chunks, embed them.

        No other worker gets the same chunks for `lease_seconds`. A text that the embedder refuses
        is left alone for an hour.
        """
        return self._engine.saver.make_share(
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            check.check_number("lease_seconds", lease_seconds, 1, 86_400),
        )

    def count_pending(self) -> int:
        """Count the chunks that wait for their vectors, in all spaces."""
        return stored_vectors.count_waiting(self._storage)

    def reembed(
        self,
        on_progress: Callable[[int, int], None] | None = None,
        rollback: bool = False,
        keep_old: bool = True,
    ) -> Reembedding:
        """Make vectors of the model that the settings name beside the old ones, then switch.

        Searches and saves use the old model until then. After an interruption, the next call
        continues. `rollback` returns to the previous model, as long as its vectors are kept.
        """
        check.check_bool("keep_old", keep_old)
        check.check_callback("on_progress", on_progress)
        reembedder = Reembedder(self._storage, self._vectorizer)
        if check.check_bool("rollback", rollback):
            return reembedder.roll_back(keep_old=keep_old)
        return reembedder.reembed(on_progress, keep_old=keep_old)

    def uses_earlier_model(self) -> bool:
        """Tell whether the store is searched by another model than the settings name."""
        return self._vectorizer.remark() is not None

    def prepare(self) -> None:
        """Load the model and the index, so that the first question does not wait for them."""
        with self._vectorizer.asking("prepare", self._engine.space(None)):
            pass

    def load_model(self) -> None:
        """Load the store's model and try it; raise if it makes no vectors."""
        self._vectorizer.load()

    def unload(self, idle_seconds: float = 0.0) -> None:
        """Release the model's memory until it is needed again, unless it was used lately."""
        self._engine.unload(idle_seconds)
