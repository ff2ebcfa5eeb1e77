"""Dates and times in row images -> text as the servers print it; TIMESTAMP in UTC.

Text and not ``datetime``, because zero dates, 31 February (ALLOW_INVALID_DATES) and 838 hours are valid values.
Formats: MySQL ``libs/mysql/binlog/event``, ``sql-common/my_time.cc`` (my_datetime_packed_from_binary and others),
MariaDB ``sql/field.cc`` and ``sql/compat56.cc``. The high-precision types of MariaDB 5.3
(``Field_temporal_with_date_hires``), which ``mysql56_temporal_format=OFF`` still creates, have no length in the log: a
schema must supply it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

_ZERO_TIMESTAMP: Final = "0000-00-00 00:00:00"
_TIME2_ZERO: Final = 0x800000
_DATETIME2_ZERO: Final = 0x8000000000
_TIME_LIMIT_SECONDS: Final = 838 * 3600 + 59 * 60 + 59


def year(data: bytes) -> int:
    """0, or 1901 to 2155."""
    return 1900 + data[0] if data[0] else 0


def date(data: bytes) -> str:
    """DATE: day in 5 bits, month in 4, year in 15, little-endian."""
    packed = int.from_bytes(data, "little")
    return _date(packed >> 9, packed >> 5 & 15, packed & 31)


def old_time(data: bytes) -> str:
    """TIME before 5.6: the decimal number HHMMSS, little-endian."""
    packed = int.from_bytes(data, "little", signed=True)
    rest, second = divmod(abs(packed), 100)
    hour, minute = divmod(rest, 100)
    return _signed(packed < 0, _clock(hour, minute, second))


def old_datetime(data: bytes) -> str:
    """DATETIME before 5.6: the decimal number YYYYMMDDHHMMSS, little-endian."""
    day_part, clock = divmod(int.from_bytes(data, "little"), 1_000_000)
    rest, day = divmod(day_part, 100)
    of_year, month = divmod(rest, 100)
    hour, rest = divmod(clock, 10_000)
    return f"{_date(of_year, month, day)} {_clock(hour, *divmod(rest, 100))}"


def old_timestamp(data: bytes) -> str:
    """TIMESTAMP before 5.6: seconds since the epoch, little-endian."""
    return _timestamp(int.from_bytes(data, "little"), 0, 0)


def timestamp2(data: bytes, fsp: int) -> str:
    """TIMESTAMP: seconds since the epoch, then the fraction, big-endian."""
    return _timestamp(int.from_bytes(data[:4], "big"), _fraction(data[4:], fsp), fsp)


def time2(data: bytes, fsp: int) -> str:
    """TIME: hours, minutes, seconds and fraction as one big-endian number, with an offset so that bytes sort by
    value."""
    bits = 8 * (len(data) - 3)
    packed = int.from_bytes(data, "big") - (_TIME2_ZERO << bits)
    seconds, fraction = abs(packed) >> bits, abs(packed) & (1 << bits) - 1
    clock = _clock(seconds >> 12 & 0x3FF, seconds >> 6 & 63, seconds & 63)
    return _signed(packed < 0, clock + _digits(_fraction(fraction.to_bytes(len(data) - 3, "big"), fsp), fsp))


def datetime2(data: bytes, fsp: int) -> str:
    """DATETIME: year * 13 + month, day, hour, minute, second in 40 bits, then the fraction, big-endian."""
    packed = int.from_bytes(data[:5], "big") - _DATETIME2_ZERO
    if packed < 0:
        raise ValueError(f"DATETIME {data.hex()}: below zero")
    of_year, month = divmod(packed >> 22, 13)
    clock = _clock(packed >> 12 & 31, packed >> 6 & 63, packed & 63)
    return f"{_date(of_year, month, packed >> 17 & 31)} {clock}{_digits(_fraction(data[5:], fsp), fsp)}"


def hires_timestamp(data: bytes, fsp: int) -> str:
    """TIMESTAMP of MariaDB 5.3: as now, but the fraction has exactly ``fsp`` digits."""
    return _timestamp(int.from_bytes(data[:4], "big"), _limited(int.from_bytes(data[4:], "big"), fsp), fsp)


def hires_time(data: bytes, fsp: int) -> str:
    """TIME of MariaDB 5.3: units of the last digit, above the lowest possible time."""
    packed = int.from_bytes(data, "big") - (_TIME_LIMIT_SECONDS + 1) * 10**fsp
    seconds, fraction = divmod(abs(packed), 10**fsp)
    rest, second = divmod(seconds, 60)
    hour, minute = divmod(rest, 60)
    return _signed(packed < 0, _clock(hour, minute, second) + _digits(fraction, fsp))


def hires_datetime(data: bytes, fsp: int) -> str:
    """DATETIME of MariaDB 5.3: year, month, day, hour ... as a mixed-radix number."""
    packed, fraction = divmod(int.from_bytes(data, "big"), 10**fsp)
    values = []
    for radix in (60, 60, 24, 32, 13):
        packed, value = divmod(packed, radix)
        values.append(value)
    second, minute, hour, day, month = values
    return f"{_date(packed, month, day)} {_clock(hour, minute, second)}{_digits(fraction, fsp)}"


def json_datetime(packed: int, *, date_only: bool) -> str:
    """A date or time inside a JSON document: DATETIME's bits without its zero, and 24 bits of microseconds."""
    if packed < 0:
        raise ValueError(f"JSON: a date of {packed}")
    fraction, seconds = packed & 0xFFFFFF, packed >> 24
    of_year, month = divmod(seconds >> 22, 13)
    day = _date(of_year, month, seconds >> 17 & 31)
    if date_only:
        return day
    return f"{day} {_clock(seconds >> 12 & 31, seconds >> 6 & 63, seconds & 63)}{_digits(_limited(fraction, 6), 6)}"


def json_time(packed: int) -> str:
    """A time inside a JSON document: TIME's bits without its zero."""
    seconds, fraction = abs(packed) >> 24, abs(packed) & 0xFFFFFF
    clock = _clock(seconds >> 12 & 0x3FF, seconds >> 6 & 63, seconds & 63)
    return _signed(packed < 0, clock + _digits(_limited(fraction, 6), 6))


def _fraction(data: bytes, fsp: int) -> int:
    """A fraction's digits: two in each byte; an odd number of digits is padded with 0."""
    value = _limited(int.from_bytes(data, "big"), 2 * len(data))
    return value // 10 if fsp & 1 else value


def _limited(value: int, digits: int) -> int:
    if value >= 10**digits:
        raise ValueError(f"a fraction of {value} in {digits} digits")
    return value


def _timestamp(seconds: int, fraction: int, fsp: int) -> str:
    if seconds == 0 and fraction == 0:
        return _ZERO_TIMESTAMP + _digits(0, fsp)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S") + _digits(fraction, fsp)


def _date(of_year: int, month: int, day: int) -> str:
    if of_year > 9999 or month > 12 or day > 31:
        raise ValueError(f"a date of year {of_year}, month {month}, day {day}")
    return f"{of_year:04d}-{month:02d}-{day:02d}"


def _clock(hour: int, minute: int, second: int) -> str:
    if hour > 838 or minute > 59 or second > 59:
        raise ValueError(f"a time of {hour} hours, {minute} minutes, {second} seconds")
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def _digits(fraction: int, fsp: int) -> str:
    return f".{fraction:0{fsp}d}" if fsp else ""


def _signed(negative: bool, text: str) -> str:
    return f"-{text}" if negative else text


WithFraction = Callable[[bytes, int], str]
HIRES_TIMESTAMP: Final = (4, 5, 5, 6, 6, 7, 7), hires_timestamp
HIRES_TIME: Final = (3, 4, 4, 5, 5, 5, 6), hires_time
HIRES_DATETIME: Final = (5, 6, 6, 7, 7, 7, 8), hires_datetime
"""Bytes of MariaDB 5.3's types by the digits of their fraction, and their readers; those of 0 digits are in the old
format instead."""
