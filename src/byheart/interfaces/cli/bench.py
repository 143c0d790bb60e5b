"""Define `bench`, which checks whether the store finds its own passages."""

from __future__ import annotations

import click

from byheart.interfaces.cli.errors import FAILURE
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import Column, Part, Screen, count, open_screen, print_json
from byheart.interfaces.cli.store import open_store
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Bench, BenchFigures


@click.command(
    "bench",
    cls=Verb,
    examples=("byheart bench", "byheart bench --questions 200 --seed 7", "byheart bench --json"),
)
@flag(
    "--questions", type=int, default=50, show_default=True, help="The number of questions per mode."
)
@flag(
    "--k",
    type=int,
    default=10,
    show_default=True,
    help="The number of hits in which the answer must be.",
)
@flag("--seed", type=int, default=0, show_default=True, help="The seed that selects the questions.")
@click.pass_context
def bench_command(ctx: click.Context, questions: int, k: int, seed: int) -> None:
    """Test whether the store finds its own passages, and how fast.

    The questions are made of the store's own passages, plus some unrelated ones; stats does not
    count them. The figures are kept beside the store and compared with those of the next run. The
    exit code is 1 if anything is wrong.
    """
    invocation: Invocation = ctx.obj
    with open_store(invocation) as store:
        bench = store.admin.bench(questions, k, seed)
    if invocation.json:
        print_json(bench)
    else:
        _show(open_screen(), bench)
    if not bench.ok:
        ctx.exit(FAILURE)


def _show(screen: Screen, bench: Bench) -> None:
    run, before = bench.run, bench.before
    if run.figures:
        earlier = {each.mode: each for each in before.figures} if before else {}
        names = (f"RECALL@{run.k}", "MRR", "NONE", "UNRELATED")
        screen.table(
            (
                Column("MODE", style="name"),
                Column("QUESTIONS", right=True),
                *(Column(name, right=True) for name in (*names, "P50 MS", "P95 MS")),
            ),
            [_row(each, earlier.get(each.mode)) for each in run.figures],
        )
        since = f"compared with {screen.moment(before.at)}" if before else "no run before"
        about = f"{count(run.chunks, 'chunk')}, model {run.model or 'none'}, {since}"
        screen.line(Part(f"{about}; {bench.elapsed_ms / 1000:.1f} s", "dim"))
        screen.line(Part("NONE: answers that were called none though there is one", "dim"))
        screen.line(Part("UNRELATED: questions without an answer that got one", "dim"))
    screen.line(Part(bench.message, "good" if bench.ok else "bad"))
    for hint in dict.fromkeys(each.hint for each in bench.findings if not each.ok and each.hint):
        screen.line(Part(hint, "dim"), indent=1)


def _row(now: BenchFigures, before: BenchFigures | None) -> tuple[str, ...]:
    recall = f"{now.recall:.3f}" + (f" ({before.recall:.3f})" if before else "")
    p50 = f"{now.p50_ms:,.1f}" + (f" ({before.p50_ms:,.1f})" if before else "")
    return (
        now.mode,
        f"{now.questions:,}",
        recall,
        f"{now.mrr:.3f}",
        f"{now.called_none:,}",
        f"{now.called_answered} of {now.unrelated}",
        p50,
        f"{now.p95_ms:,.1f}",
    )
