import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from byheart.errors import InvalidInput
from byheart.model.ids import new_memory_id, parse_chunk_id

MANY_IDS = (
    "from byheart.model.ids import new_memory_id\nfor _ in range(2000): print(new_memory_id())"
)

# Fork twice while the clock stands still, as it does after it was set back.
FORKS_UNDER_A_STOPPED_CLOCK = """
import os, time
now = time.time_ns()
time.time_ns = lambda: now
from byheart.model.ids import new_memory_id
new_memory_id()
for _ in range(2):
    child = os.fork()
    if not child:
        print("\\n".join(new_memory_id() for _ in range(100)), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_ids_of_a_process_sort_in_the_order_they_were_made() -> None:
    made = [new_memory_id() for _ in range(5000)]
    assert made == sorted(made)


def test_ids_of_a_later_millisecond_sort_later() -> None:
    earlier = new_memory_id()
    time.sleep(0.003)
    assert new_memory_id() > earlier


def test_ids_are_plain_text_of_one_length() -> None:
    made = [new_memory_id() for _ in range(100)]
    assert all(re.fullmatch(r"mem_[0-9a-hjkmnp-tv-z]{26}", each) for each in made)


def test_ids_stay_in_order_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_memory_id()
    past = time.time_ns() - 3_600_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: past)
    later = [new_memory_id() for _ in range(3)]
    assert [before, *later] == sorted({before, *later})


def test_ids_made_by_many_threads_are_unique() -> None:
    with ThreadPoolExecutor(16) as threads:
        made = list(threads.map(lambda _: new_memory_id(), range(8000)))
    assert len(set(made)) == 8000


def test_ids_made_by_many_processes_are_unique() -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", MANY_IDS], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    made = [line for each in processes for line in each.communicate()[0].split()]
    assert len(made) == len(set(made)) == 6000


def test_ids_made_by_forked_processes_are_unique_even_when_the_clock_stands_still() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", FORKS_UNDER_A_STOPPED_CLOCK],
        capture_output=True,
        text=True,
        check=True,
    )
    made = answer.stdout.split()
    assert len(made) == len(set(made)) == 200


def test_a_chunk_id_is_the_memory_id_and_the_chunk_index() -> None:
    memory_id = new_memory_id()
    assert parse_chunk_id(f"{memory_id}#17") == (memory_id, 17)


@pytest.mark.parametrize(
    "wrong", ["", "#", "mem_1", "mem_1#", "#1", "mem_1#x", "mem_1#-1", "a#1#2"]
)
def test_what_is_no_chunk_id_is_refused_with_the_form_to_give(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="<memory_id>#<chunk_index>"):
        parse_chunk_id(wrong)
