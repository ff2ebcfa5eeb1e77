"""DECIMAL as rows hold it: groups of nine digits in four bytes, big-endian, all bits inverted below zero.

Sources: MySQL ``strings/decimal.cc`` (decimal2bin), MariaDB ``strings/decimal.c``. Doubles are spelled here, too
(``my_gcvt`` in ``strings/dtoa.cc``): JSON needs them as the server writes them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

_DIGITS_TO_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_GROUP: Final = 9
_MAX_FIXED_POINT: Final = 15
"""``MAX_DECPT_FOR_F_FORMAT``: up to here whole numbers are written without an exponent."""


def decode_decimal(data: bytes, precision: int, scale: int) -> Decimal:
    """A DECIMAL(precision, scale). Raises ValueError for digits that no server writes."""
    if not data:
        raise ValueError("a DECIMAL of no bytes")
    negative = not data[0] & 0x80
    plain = bytes(byte ^ 0xFF for byte in data) if negative else data
    plain = bytes([plain[0] ^ 0x80]) + plain[1:]
    digits, at = "", 0
    for size, width in decimal_groups(precision, scale):
        number = int.from_bytes(plain[at : at + size], "big")
        if number >= 10**width:
            raise ValueError(f"DECIMAL({precision},{scale}) {data.hex()}: {number} in a group of {width} digits")
        digits += f"{number:0{width}d}" if width else ""
        at += size
    if at != len(data):
        raise ValueError(f"DECIMAL({precision},{scale}) of {len(data)} bytes, expected {at}")
    return Decimal((int(negative), tuple(map(int, digits)), -scale))


def decimal_groups(precision: int, scale: int) -> list[tuple[int, int]]:
    """(bytes, digits) of each group of a DECIMAL, in order; a group may be empty."""
    whole, scaled = divmod(precision - scale, _GROUP), divmod(scale, _GROUP)
    widths = [whole[1], *[_GROUP] * whole[0], *[_GROUP] * scaled[0], scaled[1]]
    return [(_DIGITS_TO_BYTES[width], width) for width in widths]


def spell_decimal(value: Decimal) -> str:
    """A DECIMAL as the servers print it: all digits of the scale, no exponent, no minus before zero."""
    return format(value.copy_abs() if value.is_zero() else value, "f")


def spell_double(value: float) -> str:
    """A DOUBLE as the servers print it in a wide field: the fewest digits that give the same number."""
    sign = "-" if str(value).startswith("-") else ""
    _, parts, exponent = Decimal(repr(abs(value))).normalize().as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is no number that a server stores")
    digits = "".join(map(str, parts))
    point = len(digits) + exponent
    if not any(parts):
        return f"{sign}0"
    if point >= 1 - _MAX_FIXED_POINT and (point <= _MAX_FIXED_POINT or len(digits) > point):
        return sign + _fixed_point(digits, point)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1}"


def _fixed_point(digits: str, point: int) -> str:
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"
