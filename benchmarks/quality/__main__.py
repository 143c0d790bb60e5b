"""Quality: how well are questions of public retrieval sets answered, through the product itself?

    python benchmarks/quality run --data FOLDER --stores FOLDER --out RUN.jsonl [--before OLD.jsonl]
    python benchmarks/quality compare OLD.jsonl NEW.jsonl [--system hybrid] [--against fts]
    python benchmarks/quality verdict --data FOLDER --stores FOLDER [--small 3,10,30]
    python benchmarks/quality contexts --data FOLDER --stores FOLDER
    python benchmarks/quality vectors --data FOLDER --stores FOLDER --out RUN.jsonl [--late 20]

FOLDER holds one folder per set; docs/quality-method.md says where to get them. Every document is
saved as a memory; turns of conversations are logged with their roles and dates, each conversation
in its own session, and asked about at their dates. Stores are kept between runs. `run` asks
every question in every mode, and the peers that are installed, and prints nDCG@10, recall, MRR and
hit@1, with a 95 % range of the difference to an earlier run. `compare` shows what two runs, or two
systems of one, gave question by question, and the worst losses. `verdict` asks every set its own
questions and some of the others': how often is each verdict given, and how far is `confidence`
right? With `--small`, it asks stores of so many documents. `contexts` counts the passages that a
context holds and leaves out as unrelated. `vectors` tries other ways to make vectors, on samples of
the sets, and on documents with sections (`wikitexts`, `pubmed`, `obsidian-help`, `rust-book`); what
is embedded on the way is kept beside the stores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import stores
from contexts import Given, ask_contexts, render_contexts
from kept import KeptVectors
from links import read_link_sets
from measures import measure
from runs import (
    Outcome,
    mean,
    read_run,
    render,
    render_against_better,
    show_losses,
    write_run,
)
from sets import RetrievalSet, find_sets, read_set, sample_set
from small_stores import fit_small, judge_small, render_families, render_small
from spans import read_span_sets
from systems import MODES, PEERS, Byheart, System, make_peers
from token_model import TokenModel
from verdicts import (
    Judged,
    fit_again,
    judge_set,
    render_first_hits,
    render_reliability,
    render_verdicts,
)

from byheart.contracts import TokenCounter


def ask(whole: RetrievalSet, system: System) -> list[Outcome]:
    """Ask a system every question of a set."""
    started = time.perf_counter()
    outcomes = []
    for each in whole.questions:
        found = system.find(each)
        outcomes.append(
            Outcome(
                whole.name,
                system.name,
                each.name,
                each.text,
                each.category,
                found,
                list(each.gains),
                measure(found, each.gains),
            )
        )
    milliseconds = (time.perf_counter() - started) / len(outcomes) * 1000
    print(
        f"{whole.name}  {system.name}  nDCG@10 {mean(outcomes, 'ndcg@10'):.4f}  "
        f"{milliseconds:.1f} ms a question",
        file=sys.stderr,
        flush=True,
    )
    return outcomes


def run_set(whole: RetrievalSet, options: argparse.Namespace) -> Iterator[Outcome]:
    """Ask all systems about one set."""
    with stores.open_store(options.stores, whole) as filled:
        print(file=sys.stderr)
        for mode in options.modes.split(","):
            for granularity in options.granularities.split(","):
                yield from ask(whole, Byheart(filled, mode, granularity))
        if "hybrid" in options.modes and options.rrf:
            yield from ask(whole, Byheart(filled, "hybrid", fusion="rrf"))
    wanted = options.peers.split(",") if options.peers else ()
    for peer in make_peers(wanted, whole, stores.store_path(options.stores, whole), filled.names):
        yield from ask(whole, peer)


def run(options: argparse.Namespace) -> None:
    """Run the evaluation and print its table."""
    options.stores.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    for whole in read_wanted(options):
        outcomes += run_set(whole, options)
        write_run(options.out, outcomes)  # after each set: a long run may be stopped
    print(render(outcomes, read_run(options.before) if options.before else ()))
    print(f"\n{render_against_better(outcomes)}")


def compare(options: argparse.Namespace) -> None:
    """Print the differences of two runs."""
    before, after = read_run(options.old), read_run(options.new)
    against = options.against or options.system
    print(show_losses(before, after, options.system, against, options.losses))


def verdict(options: argparse.Namespace) -> None:
    """Judge answerable and unrelated questions, and print what was said of them."""
    options.stores.mkdir(parents=True, exist_ok=True)
    sets = list(read_wanted(options))
    if len(sets) < 2:
        sys.exit("verdict needs two sets or more: unrelated is what another set asks")
    modes = options.modes.split(",")
    if options.small:
        small = list(_judge_small(sets, modes, options))
        print(render_small(small), render_families(small), fit_small(small), sep="\n\n")
        return
    judged: list[Judged] = []
    for whole in sets:
        with stores.open_store(options.stores, whole) as filled:
            judged += judge_set(whole, sets, filled, modes, options.unrelated)
        print(f"{whole.name} {len(judged):,}", file=sys.stderr, flush=True)
    tables = (render_first_hits(judged), render_verdicts(judged), render_reliability(judged))
    print(*tables, sep="\n\n")
    for mode in modes:
        print(f"\n{fit_again(judged, mode)}")


def contexts(options: argparse.Namespace) -> None:
    """Ask for contexts, and print what was put in and left out as unrelated."""
    options.stores.mkdir(parents=True, exist_ok=True)
    folders = find_sets(options.data, options.sets.split(",") if options.sets else None)
    sets = [read_set(folder) for folder in folders]
    given: list[Given] = []
    for whole in sets:
        with stores.open_store(options.stores, whole) as filled:
            given += ask_contexts(whole, sets, filled, options.questions)
    print(render_contexts(given))


def _judge_small(
    sets: Sequence[RetrievalSet], modes: Sequence[str], options: argparse.Namespace
) -> Iterator[Judged]:
    kept, _ = open_kept(options.stores)
    sizes = [int(each) for each in options.small.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        yield from judge_small(sets, kept, Path(folder) / "s.db", sizes, options.draws, modes)


def vectors(options: argparse.Namespace) -> None:
    """Try every variation of the vector retriever, or late interaction over the first hits."""
    # Imported here, because these replace parts of the index, and may lag behind its changes.
    from late_interaction import try_late_interaction
    from trials import Trials, render_trials

    kept, folder = open_kept(options.stores)
    outcomes: list[Outcome] = []
    for whole in read_samples(options, kept.model.embedder):
        with Trials(whole, folder, kept) as trials:
            if options.late:
                outcomes += try_late_interaction(whole, trials, kept, options.late)
            else:
                outcomes += trials.run_all(options.only.split(",") if options.only else ())
        write_run(options.out, outcomes)
    print(render_trials(outcomes))


def read_wanted(options: argparse.Namespace) -> Iterator[RetrievalSet]:
    """Read the sets that are wanted, or samples of them."""
    names = options.sets.split(",") if options.sets else None
    return stores.read_samples(options.data, names, options.questions, options.sessions)


def read_samples(options: argparse.Namespace, tokens: TokenCounter) -> Iterator[RetrievalSet]:
    """Take samples of the sets that are wanted, and those whose documents have sections, whole."""
    names = options.sets.split(",") if options.sets else None
    for folder in find_sets(options.data, names):
        yield sample_set(read_set(folder), options.documents, options.questions)
    yield from read_span_sets(options.data, names, tokens)
    yield from read_link_sets(options.data, names, tokens)


def open_kept(stores: Path) -> tuple[KeptVectors, Path]:
    """Open what is kept beside the stores, and give the folder of stores made of samples."""
    folder = stores / "samples"
    folder.mkdir(parents=True, exist_ok=True)
    return KeptVectors(folder / "kept-vectors", stores, TokenModel()), folder


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="ask every question")
    running.add_argument("--data", type=Path, required=True)
    running.add_argument("--stores", type=Path, required=True)
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--before", type=Path)
    running.add_argument("--sets", help="names, with commas; all by default")
    running.add_argument("--sessions", type=int, help="of a set of sessions; all by default")
    running.add_argument("--questions", type=int, help="of a set, at most; all by default")
    running.add_argument("--modes", default=",".join(MODES))
    running.add_argument("--granularities", default="coarse")
    running.add_argument("--peers", default=",".join(PEERS))
    running.add_argument("--rrf", action=argparse.BooleanOptionalAction, default=True)
    running.set_defaults(command=run)
    comparing = commands.add_parser("compare", help="compare two runs question by question")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--system", default="hybrid")
    comparing.add_argument("--against", help="another system of the old run")
    comparing.add_argument("--losses", type=int, default=5, help="how many to show of each set")
    comparing.set_defaults(command=compare)
    judging = commands.add_parser("verdict", help="judge answerable and unrelated questions")
    judging.add_argument("--data", type=Path, required=True)
    judging.add_argument("--stores", type=Path, required=True)
    judging.add_argument("--sets", help="names, with commas; all by default")
    judging.add_argument("--sessions", type=int, help="of a set of sessions; all by default")
    judging.add_argument("--questions", type=int, help="of a set, at most; all by default")
    judging.add_argument("--modes", default=",".join(MODES))
    judging.add_argument("--unrelated", type=int, default=50, help="how many of each other set")
    judging.set_defaults(command=verdict)
    judging.add_argument("--small", help="sizes of small stores to judge instead, with commas")
    judging.add_argument("--draws", type=int, default=20, help="how many small stores of each set")
    prompting = commands.add_parser("contexts", help="count the passages that contexts hold")
    prompting.add_argument("--data", type=Path, required=True)
    prompting.add_argument("--stores", type=Path, required=True)
    prompting.add_argument("--sets", help="names, with commas; all by default")
    prompting.add_argument("--questions", type=int, default=100, help="of a set, at most")
    prompting.set_defaults(command=contexts)
    trying = commands.add_parser("vectors", help="try other ways to make vectors")
    trying.add_argument("--data", type=Path, required=True)
    trying.add_argument("--stores", type=Path, required=True)
    trying.add_argument("--out", type=Path, required=True)
    trying.add_argument("--sets", help="names, with commas; all by default")
    trying.add_argument("--only", help="names of variations, with commas; all by default")
    trying.add_argument("--documents", type=int, default=1000, help="of a set, at least")
    trying.add_argument("--questions", type=int, default=300, help="of a set, at most")
    trying.add_argument(
        "--late", type=int, help="compare so many first hits token by token instead"
    )
    trying.set_defaults(command=vectors)
    options = parser.parse_args()
    options.command(options)


if __name__ == "__main__":
    main()
