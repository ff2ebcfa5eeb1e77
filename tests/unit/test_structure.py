"""The drawing of the packages and CONTRIBUTING's lists are made from the table that imports are checked against."""

from tests.structure import DRAWING, LAYERS, PAGE, drawing, parts_of, rendered, upward
from tests.unit.test_imports import MAY_IMPORT


def test_every_package_is_in_one_layer_and_imports_none_above() -> None:
    placed = [part for number in range(len(LAYERS)) for part in parts_of(number)]
    assert sorted(placed) == sorted(part for part in MAY_IMPORT if part)
    assert upward() == []


def test_the_drawing_and_the_lists_are_those_of_the_table() -> None:
    """``make structure`` writes them."""
    assert DRAWING.read_text("utf-8") == drawing()
    assert PAGE.read_text("utf-8") == rendered(PAGE.read_text("utf-8"))
