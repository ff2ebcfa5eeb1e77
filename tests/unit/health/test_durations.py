import pytest

from binlane.errors import ConfigError
from binlane.health.durations import seconds_of, span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.4, "0 s"), (59, "59 s"), (60, "1 min"), (7_500, "2 h 5 min"), (7_201, "2 h"), (90_061, "1 d 1 h"),
     (86_400 * 400, "400 d"), (-3, "0 s")],
)  # fmt: skip
def test_a_duration_is_written_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("15min", 900), ("2h", 7_200), ("7d", 604_800),
                          ("2w", 1_209_600), (" 0 ", 0)],
)  # fmt: skip
def test_a_duration_is_read_as_people_type_it(text: str, seconds: int) -> None:
    assert seconds_of("--max-lag", text) == seconds


@pytest.mark.parametrize("text", ["", "h", "2 h", "-1h", "1.5h", "2y", "99999999999", "2h\n3"])
def test_an_invalid_duration_is_refused_with_its_option(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--max-lag: expected a duration such as 90s"):
        seconds_of("--max-lag", text)
