"""Show a line under the hits if they may not be an answer."""

from __future__ import annotations

from byheart.interfaces.cli.screen import Part, Screen
from byheart.model import RecallAnswer, SearchAnswer

_WORDS = {
    "none": "none of these may answer it",
    "weak": "these may or may not answer it",
    "answered": "answered",
}


def show_doubt(screen: Screen, answer: SearchAnswer | RecallAnswer) -> None:
    """Warn that the best hit may not be an answer; with `explain`, always give the reason."""
    if answer.verdict == "answered" and answer.grounds is None:
        return
    screen.line("")
    line = f"{_WORDS[answer.verdict]} (confidence {answer.confidence:.2f})"
    screen.line(Part(line, "bad" if answer.verdict == "none" else "dim"))
    if answer.grounds is not None:
        figures = {
            "coverage": answer.grounds.coverage,
            "weight": answer.grounds.weight,
            "similarity": answer.grounds.similarity,
        }
        known = [f"{name} {each:.2f}" for name, each in figures.items() if each is not None]
        if answer.grounds.chunks is not None:
            known.append(f"chosen from {answer.grounds.chunks:,}")
        screen.line(Part(f"of the best hit: {', '.join(known)}", "dim"), indent=1)
