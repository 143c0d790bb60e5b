"""Redaction: how many harmless passages are hit, how many secrets are missed, and its cost.

    python benchmarks/redaction.py [--data FOLDER] [--show N]

FOLDER holds a folder for each set of texts that count as harmless, such as the public evaluation
sets (see docs/quality-method.md). Each text is cut at line ends into passages of at most 1,600
characters, about the size of a chunk; questions are left out. Whatever is redacted is shown,
masked, for a person to judge. Without FOLDER this part is left out.

The recall is measured on the examples of src/byheart/extraction/secret_patterns.json, each in
sentences of six languages. The patterns were written with these examples in view, so this says that
the surroundings do not matter, not how many secrets of the world are found.

The cost is processor time, for 10 kB of prose, of code and of data, and as a share of what `index`
takes without vectors.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import byheart
from byheart.extraction import secret_rules, secrets
from byheart.extraction.secret_rules import fill_in, load_rules
from byheart.extraction.secrets import redact

CHUNK_CHARS = 1_600  # about what `chunk_tokens` allows
TEXT_CHARS = 10_000
AROUND = 30
SENTENCES = {
    "en": "Before I forget, I noted this: {}\nPlease do not show it.",
    "de": "Damit ich es nicht vergesse, habe ich das notiert: {}\nBitte nicht zeigen.",
    "fr": "Pour ne pas l'oublier, j'ai noté ceci : {}\nNe le montrez pas.",
    "es": "Para no olvidarlo, anoté esto: {}\nPor favor no lo muestres.",
    "pt": "Para não esquecer, anotei isto: {}\nPor favor não mostre.",
    "zh": "为了不忘记，我记下了：{}\n请不要给别人看。",
}
_MARKED = re.compile("⟦([^⟧]*)⟧")


# --- Harmless texts ---------------------------------------------------------------------------


def read_texts(folder: Path) -> Iterator[str]:
    """Give the texts of a set, whatever its layout."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name in ("queries.jsonl", "questions_df.csv"):
            continue
        if path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    item = json.loads(line)
                    yield "\n".join(filter(None, (item.get("title"), item.get("text"))))
        elif path.suffix in (".md", ".rst", ".txt", ".json", ".py"):
            yield path.read_text(encoding="utf-8", errors="replace")


def cut(text: str) -> Iterator[str]:
    """Cut a text at line ends into pieces of the size of a chunk."""
    part: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        if part and size + len(line) > CHUNK_CHARS:
            yield "".join(part)
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield "".join(part)


def count_false(data: Path, shown: int) -> None:
    """Print, for each set, how many chunks are redacted, and by which kinds."""
    print("| set | passages | passages redacted | secrets by kind |\n|---|---|---|---|")
    total, hits = 0, 0
    excerpts: list[str] = []
    for folder in sorted(each for each in data.iterdir() if each.is_dir()):
        chunks, redacted, kinds = 0, 0, Counter[str]()
        for text in read_texts(folder):
            for chunk in cut(text):
                chunks += 1
                found = redact(chunk)
                if found.count:
                    redacted += 1
                    kinds.update(found.found)
                    excerpts += (f"{folder.name}: {each}" for each in show(chunk))
        total, hits = total + chunks, hits + redacted
        told = ", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "none"
        print(f"| {folder.name} | {chunks:,} | {redacted} | {told} |")
    print(f"| all | {total:,} | {hits} | {hits / max(1, total) * 10_000:.2f} in 10,000 |")
    for excerpt in excerpts[:shown]:
        print(f"  {excerpt}")


def show(text: str) -> Iterator[str]:
    """Name the rule of each secret, with what stands around it; the secret itself is masked."""
    forms = secrets._Forms(text)
    for rule in load_rules():
        keywords = forms.keywords_of(rule)
        found = list(secrets._find(rule, forms, keywords)) if keywords else []
        for start, end, _ in found:
            value, after = forms.text[start:end], forms.text[end : end + 10]
            before = forms.text[max(0, start - AROUND) : start]
            masked = value[:2] + "*" * min(len(value) - 2, 20)
            yield f"[{rule.name}] {before + masked + after!r}"
        if found:
            forms = secrets._Forms(secrets._replace(forms.text, found, keep_lines=False))


# --- Secrets ----------------------------------------------------------------------------------


def count_missed() -> None:
    """Print how many of the examples are found in sentences of each language."""
    print("\n| language of the sentence | secrets | found |\n|---|---|---|")
    for language, sentence in SENTENCES.items():
        total = found = 0
        for rule in load_rules():
            for example in rule.examples:
                filled = fill_in(example)
                plain = filled.replace("⟦", "").replace("⟧", "")
                # An example that begins in a line of its own keeps it.
                own_line = rule.finder is not None or "^" in (rule.regex or "")
                text = sentence.replace("{}", f"\n{plain}\n" if own_line else plain)
                secret = _MARKED.search(filled)
                assert secret is not None
                total += 1
                found += secret[1] not in redact(text).text
        print(f"| {language} | {total} | {found} ({found / total:.1%}) |")


# --- Cost -------------------------------------------------------------------------------------


def cpu_ms(work: Callable[[], object], times: int = 20) -> float:
    """Give the least processor time that some work takes."""
    best = float("inf")
    for _ in range(times):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best * 1000


def measure_cost() -> None:
    """Print what redaction costs by itself, and as a share of indexing."""
    here = Path(byheart.__file__).parent
    secret_rules._read.cache_clear()
    print(f"\nloading the rules: {cpu_ms(secret_rules.load_rules.__wrapped__, 1):.1f} ms")
    samples = {
        "prose": (here.parents[1] / "docs" / "python.md"),
        "code": here / "store.py",
        "data": here / "interfaces" / "mcp" / "tools.json",
    }
    for name, path in samples.items():
        if path.exists():
            text = path.read_text(encoding="utf-8")[:TEXT_CHARS]
            redact(text)
            print(f"10 kB of {name}: {cpu_ms(lambda text=text: redact(text)):.2f} ms")
    texts = [path.read_text(encoding="utf-8") for path in sorted(here.rglob("*.py"))]
    alone = cpu_ms(lambda: [redact(text) for text in texts], 3)
    with tempfile.TemporaryDirectory() as folder:
        store = byheart.open(Path(folder) / "memory.db", embedding_provider="none")
        with store:
            started_cpu = time.process_time()
            store.index(here, embed=False)
            whole = (time.process_time() - started_cpu) * 1000
    print(
        f"indexing {len(texts)} files without vectors: {whole:.0f} ms, "
        f"of which redaction {alone:.0f} ms ({alone / whole:.1%})"
    )


def main() -> int:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--show", type=int, default=50)
    options = parser.parse_args()
    if options.data is not None:
        count_false(options.data, options.show)
    count_missed()
    measure_cost()
    return 0


if __name__ == "__main__":
    sys.exit(main())
