"""A call that does not return is noticed."""

import threading

from archive.storing.answer_watch import watched
from tests.conftest import eventually


def test_a_silent_call_is_told_again_and_again() -> None:
    silences: list[float] = []
    with watched(0.02, silences.append):
        eventually(lambda: len(silences) >= 3)
    assert [round(seconds, 2) for seconds in silences[:3]] == [0.02, 0.04, 0.06]
    assert not any(t.name == "answer watch" for t in threading.enumerate())


def test_a_call_that_answers_is_not_mentioned() -> None:
    silences: list[float] = []
    with watched(60, silences.append):
        pass
    assert silences == []
