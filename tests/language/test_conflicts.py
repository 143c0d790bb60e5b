"""Sentences that contradict each other: the same subject, another value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.language.conflicts import Difference, find_difference, read_claims

_FOLDER = Path(__file__).parents[2] / "benchmarks" / "quality"
PAIRS: Any = json.loads((_FOLDER / "conflict_pairs.json").read_text())
UNSEEN: Any = json.loads((_FOLDER / "unseen_conflict_pairs.json").read_text())


def difference(some: str, other: str) -> Difference | None:
    return find_difference(read_claims(some), read_claims(other))


@pytest.mark.parametrize(
    ("some", "other", "kind"),
    [
        ("The port is 8080.", "The port is 8081.", "number"),
        ("The API listens on port 8080.", "The API listens on port 8081.", "number"),
        ("The project uses Python 3.11.", "The project uses Python 3.12.", "number"),
        ("The meeting is on Monday.", "The meeting is on Tuesday.", "time"),
        ("The flight leaves at 6:50.", "The flight leaves at 8:15.", "time"),
        ("Our database is Postgres.", "Our database is MySQL.", "name"),
        ("We moved the server from Frankfurt to Dublin.", "The server is in Frankfurt.", "name"),
        ("Dark mode is supported.", "Dark mode is not supported.", "negation"),
        ("The flag atlas is enabled.", "The flag atlas is disabled.", "state"),
        ("Worker 1 holds 5 items.", "Worker 1 holds 6 items.", "number"),
        ("Server 3 has 16 GB of memory.", "Server 3 has 32 GB of memory.", "number"),
        ("Port 8080 for the API.", "Port 8081 for the API.", "number"),
        ("Timeout 30s maximum.", "Timeout 60s maximum.", "number"),
        ("Keep 30 backups.", "Keep 14 backups.", "number"),
        ("Max retries: 3", "Max retries: 5", "number"),
    ],
)
def test_another_value_of_the_same_subject_is_a_conflict(some: str, other: str, kind: str) -> None:
    found = difference(some, other)
    assert found is not None
    assert (found.kind, found.some, found.other) == (kind, some, other)


@pytest.mark.parametrize(
    ("some", "other"),
    [
        ("The cache holds 2 GB.", "The cache holds 2048 MB."),
        ("The meeting is at 15:00.", "The meeting is at 3 pm."),
        ("Remote work is forbidden.", "Remote work is not allowed."),
        ("Revenue in 2024 was 3 million.", "Revenue in 2025 was 4 million."),
        ("The API listens on port 8080.", "The admin page listens on port 8081."),
        ("We support Windows.", "We support Linux."),
        ("The port is 8080.", "Should the port be 8081?"),
        ("Worker 1 reports item 2 about topic 12", "Worker 6 reports item 2 about topic 12"),
        ("The worker #1 sees topic 12.", "The worker #2 sees topic 12."),
        ("Worker number 1 is at step five.", "Worker number 2 is at step five."),
        ("Ticket 2001 is open.", "Ticket 2002 is open."),
        ("Team one has 5 people.", "Team two has 5 people."),
        ("Flight 12B leaves at 5:30.", "Flight 12C leaves at 7:30."),
        ("We saw worker 1 report topic 12.", "We saw worker 6 report topic 62."),
        ("The box has 3 shelves and 2 doors.", "The box has 4 shelves and 1 door."),
    ],
)
def test_the_same_value_another_subject_or_another_time_is_none(some: str, other: str) -> None:
    assert difference(some, other) is None


def test_most_contradictions_that_the_rules_were_not_made_for_are_found_and_no_others() -> None:
    found = [pair for pair in UNSEEN["conflicts"] if difference(*pair)]
    assert (len(found), len(UNSEEN["conflicts"])) == (18, 23)
    assert not [pair for pair in UNSEEN["no_conflicts"] if difference(*pair)]


def test_the_conflicting_sentences_of_longer_texts_are_named() -> None:
    some = "We met on Friday. The retry limit is three. Anna took notes."
    other = "Ben asked again. The retry limit is five! Nothing else changed."
    found = difference(some, other)
    assert found == Difference("number", "The retry limit is three.", "The retry limit is five!")


def test_most_pairs_are_told_apart() -> None:
    told = {
        label: [difference(*pair) is not None for pairs in PAIRS[label].values() for pair in pairs]
        for label in ("conflicts", "no_conflicts")
    }
    assert sum(told["conflicts"]) >= 0.95 * len(told["conflicts"])
    assert sum(told["no_conflicts"]) <= 0.03 * len(told["no_conflicts"])


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_two_texts_can_be_compared_in_either_order(some: str, other: str) -> None:
    assert (difference(some, other) is None) == (difference(other, some) is None)
    assert difference(some, some) is None
