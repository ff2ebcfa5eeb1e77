"""What is kept from the garbage collector, and that nothing else is."""

import gc
from collections.abc import Iterator

import pytest

from binlane.garbage import kept_imports, uncollected


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_was_made_meanwhile_is_not_looked_at_again_and_collection_goes_on() -> None:
    before = gc.get_freeze_count()
    with kept_imports():
        assert not gc.isenabled()
        made = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(made)


def test_an_import_that_fails_leaves_collection_as_it_was() -> None:
    with pytest.raises(ImportError), kept_imports():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with kept_imports():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_collection_rests_while_the_work_lasts_also_if_it_fails_or_calls_other_such_work() -> None:
    @uncollected()
    def inner() -> bool:
        return gc.isenabled()

    @uncollected()
    def outer() -> None:
        assert not inner()
        assert not gc.isenabled()
        raise LookupError

    with pytest.raises(LookupError):
        outer()
    assert gc.isenabled()
