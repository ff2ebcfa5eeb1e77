"""A command's imports are kept from the garbage collector, and nothing else is."""

import gc
from collections.abc import Iterator

import pytest

from binlane.kept_imports import kept_imports


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
