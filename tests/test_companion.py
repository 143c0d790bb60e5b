"""A thread that works beside one caller at a time."""

import os
import threading

import pytest

from byheart.companion import Companion

PATIENCE = 30  # seconds: only a test that fails waits so long


def test_the_work_is_done_beside_the_caller() -> None:
    went_on = threading.Event()
    wait = Companion().begin(lambda: went_on.wait(PATIENCE))
    went_on.set()
    assert wait() is True


def test_what_goes_wrong_is_raised_where_the_result_is_awaited() -> None:
    def fail() -> None:
        raise LookupError("lost")

    wait = Companion().begin(fail)
    with pytest.raises(LookupError, match="lost"):
        wait()


def test_a_second_caller_does_its_work_itself() -> None:
    companion, go_on = Companion(), threading.Event()
    first = companion.begin(lambda: go_on.wait(PATIENCE))
    second = companion.begin(threading.get_ident)
    go_on.set()
    assert second() == threading.get_ident()
    assert first() is True


def test_it_is_free_again_after_work_that_failed() -> None:
    companion = Companion()
    with pytest.raises(ZeroDivisionError):
        companion.begin(lambda: 1 / 0)()
    assert companion.begin(threading.get_ident)() != threading.get_ident()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_has_one_of_its_own() -> None:
    companion = Companion()
    companion.begin(lambda: None)()
    child = os.fork()
    if child == 0:
        mine = companion.begin(threading.get_ident)() == threading.get_ident()
        os._exit(int(mine))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
