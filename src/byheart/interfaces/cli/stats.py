"""Define `stats`, which shows the contents of the store and its use."""

from __future__ import annotations

import click

from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import (
    Column,
    Part,
    Screen,
    count,
    one_line,
    open_screen,
    print_json,
    size,
)
from byheart.interfaces.cli.store import open_store
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import CacheStats, Latency, Stats

_SHOWN_QUERIES, _SHOWN_QUERY_CHARS = 10, 60
_WORKS = {"catch_up": "catch up", "rebuild": "build anew", "publish": "write its file"}
_CACHES = {"query_vectors": "questions", "text_vectors": "texts"}


@click.command(
    "stats",
    cls=Verb,
    examples=("byheart stats", "byheart stats --json", "byheart stats --reset"),
)
@flag("--reset", is_flag=True, help="Reset the counters afterwards.")
@click.pass_obj
def stats_command(invocation: Invocation, reset: bool) -> None:
    """Show usage figures: contents, search times, slow queries.

    Queries, saves and index work are counted over all processes that use the store.
    """
    with open_store(invocation) as store:
        stats = store.admin.stats(reset=reset)
    if invocation.json:
        print_json(stats)
        return
    screen = open_screen()
    for name, value in (*_holdings(stats), *_doings(screen, stats)):
        screen.line(Part(f"{name:10}", "dim"), value)
    if stats.queries.kinds:
        screen.line()
        _show_kinds(screen, stats)
    if stats.queries.slowest:
        screen.line()
        _show_slowest(screen, stats)
    if stats.index_work:
        screen.line()
        _show_work(screen, stats)


def _holdings(stats: Stats) -> list[tuple[str, str]]:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in stats.kinds.items())
    sizes = stats.sizes
    waiting = f", {count(stats.pending_vectors, 'chunk')} waiting" if stats.pending_vectors else ""
    return [
        ("store", f"{stats.store} (space {stats.space})"),
        ("memories", f"{stats.memories:,}" + (f": {kinds}" if kinds else "")),
        ("chunks", f"{stats.chunks:,}"),
        (
            "vectors",
            f"{stats.vectors:,} of model {stats.model or 'none yet'}, for "
            f"{stats.coverage_percent:g} % of the chunks{waiting}",
        ),
        (
            "size",
            f"{size(sizes.total_bytes)}: store {size(sizes.store_bytes)}, "
            f"log {size(sizes.log_bytes)}, search index {size(sizes.index_bytes)}, "
            f"stats {size(sizes.stats_bytes)}, backups {size(sizes.backup_bytes)}",
        ),
    ]


def _doings(screen: Screen, stats: Stats) -> list[tuple[str, str]]:
    total, saves, cold = stats.queries.total, stats.saves, stats.queries.cold_starts
    since = screen.moment(stats.since) or "nothing is counted yet"
    return [
        ("since", since if stats.collecting else f"{since} (switched off: collect_stats)"),
        (
            "saves",
            f"{saves.created:,} created, {saves.unchanged:,} unchanged, {saves.updated:,} updated",
        ),
        (
            "queries",
            f"{total.count:,}, of which {total.slow:,} ({total.slow_rate:.1%}) took longer than "
            f"{stats.queries.slow_query_ms:g} ms"
            + (f", besides {count(cold, 'cold start')}" if cold else ""),
        ),
        ("verdicts", ", ".join(f"{n:,} {name}" for name, n in stats.queries.verdicts.items())),
        (
            "caches",
            ", ".join(f"{_CACHES[name]} {_rate(cache)}" for name, cache in stats.caches.items()),
        ),
    ]


def _rate(cache: CacheStats) -> str:
    if cache.hit_rate is None:
        return "not used yet"
    return f"{cache.hit_rate:.1%} of {cache.hits + cache.misses:,} known"


def _show_kinds(screen: Screen, stats: Stats) -> None:
    kinds = stats.queries.kinds
    rows = [_row(kind, latency) for kind, latency in kinds.items()]
    if len(kinds) > 1:
        rows.append(_row("all", stats.queries.total))
    numbers = ("COUNT", "P50 MS", "P95 MS", "P99 MS", "MEAN MS")
    screen.table(
        (
            Column("SEARCH", style="name"),
            *(Column(each, right=True) for each in numbers),
            Column("SLOW", wide=True),
        ),
        rows,
    )


def _row(kind: str, latency: Latency) -> tuple[str, ...]:
    times = (latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.mean_ms)
    shown = ("-" if each is None else f"{each:,.1f}" for each in times)
    return kind, f"{latency.count:,}", *shown, f"{latency.slow:,} ({latency.slow_rate:.1%})"


def _show_slowest(screen: Screen, stats: Stats) -> None:
    rows = [
        (f"{each.elapsed_ms:,.1f}", each.kind, screen.moment(each.at), _shortened(each.query))
        for each in stats.queries.slowest[:_SHOWN_QUERIES]
    ]
    columns = (Column("MS", right=True), Column("SEARCH", style="name"), Column("WHEN"))
    screen.table((*columns, Column("SLOWEST QUERIES", wide=True)), rows)


def _shortened(query: str) -> str:
    line = one_line(query)
    return line if len(line) <= _SHOWN_QUERY_CHARS else line[: _SHOWN_QUERY_CHARS - 1] + "…"


def _show_work(screen: Screen, stats: Stats) -> None:
    screen.table(
        (
            Column("SEARCH INDEX", style="name"),
            Column("COUNT", right=True),
            Column("LAST S", right=True),
            Column("TOTAL S", wide=True),
        ),
        [
            (
                _WORKS.get(work, work),
                f"{done.count:,}",
                f"{done.last_seconds:,.3f}",
                f"{done.total_seconds:,.3f}",
            )
            for work, done in stats.index_work.items()
        ],
    )
