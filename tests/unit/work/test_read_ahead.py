"""Read ahead or not, the same things come in the same order, and errors where they belong."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from binlane.work.read_ahead import ahead, made_ahead


def numbers(end: int, done: list[str], error: Exception | None = None) -> Generator[int]:
    try:
        yield from range(end)
        if error is not None:
            raise error
    finally:
        done.append("closed")


@pytest.mark.parametrize("end", [0, 1, 2, 5])
def test_items_are_read_ahead_in_their_order(end: int) -> None:
    done: list[str] = []
    assert list(ahead(numbers(end, done))) == list(range(end))
    assert done == ["closed"]


def test_the_next_thing_is_asked_for_while_the_last_one_is_worked_on_and_no_other() -> None:
    asked: list[int] = []
    second, third = threading.Event(), threading.Event()

    def things() -> Generator[int]:
        for number, event in enumerate((None, second, third)):
            asked.append(number)
            if event is not None:
                event.set()
            yield number

    taken = ahead(things())
    assert next(taken) == 0
    assert second.wait(10), "asked for by nobody"
    assert asked == [0, 1]
    assert (next(taken), third.wait(10)) == (1, True)


def test_an_error_comes_behind_what_came_before_it() -> None:
    done: list[str] = []
    taken = ahead(numbers(2, done, ValueError("damaged")))
    assert (next(taken), next(taken)) == (0, 1)
    with pytest.raises(ValueError, match="damaged"):
        next(taken)
    assert done == ["closed"]


def test_closed_early_it_closes_what_it_reads_and_leaves_no_thread() -> None:
    done: list[str] = []
    taken = ahead(numbers(1_000_000, done))
    assert next(taken) == 0
    taken.close()
    assert done == ["closed"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("binlane-ahead")]


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_things_are_made_ahead_in_their_order_and_few_at_a_time(count: int) -> None:
    held, most, lock = 0, 0, threading.Lock()

    def make(item: int) -> int:
        nonlocal held, most
        with lock:
            held += 1
            most = max(most, held)
        return item * 10

    found = []
    for each in made_ahead(make, range(count), 2):
        found.append(each)
        with lock:
            held -= 1
    assert found == [item * 10 for item in range(count)]
    assert most <= 2


def test_an_error_is_raised_in_the_place_of_its_item() -> None:
    made = made_ahead(lambda item: 6 // item, [3, 2, 0, 1], 2)
    assert [next(made), next(made)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(made)
