"""Bytes of a column -> text, by the column's character set, as the servers themselves convert them to utf8mb4.

Most character sets use Python's codecs; the tables here have the differences from the servers (compared byte by byte
with MySQL 9.7 and MariaDB 10.11). A value with bytes that are undefined in its character set stays bytes.
"""
# ruff: noqa: RUF001

from __future__ import annotations

import codecs
import functools
from collections.abc import Mapping
from typing import Final

BINARY: Final = "binary"
_UNDEFINED: Final = "\ufffe"
"""The mark for "no such character" of ``codecs.charmap_decode``."""

_UPPER_HALVES: Final[Mapping[str, str]] = {
    "armscii8": (
        "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
        "\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f"
        "\xa0❁§։)(»«—.՝,-՟…՜"
        "՛՞ԱաԲբԳգԴդԵեԶզԷէ"
        "ԸըԹթԺժԻիԼլԽխԾծԿկ"
        "ՀհՁձՂղՃճՄմՅյՆնՇշ"
        "ՈոՉչՊպՋջՌռՍսՎվՏտ"
        "ՐրՑցՒւՓփՔքՕօՖֆ’'"
    ),
    "dec8": (
        "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
        "\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f"
        "\xa0¡¢£\ufffd¥\ufffd§¤©ª«\ufffd\ufffd\ufffd\ufffd"
        "°±²³\ufffdµ¶·\ufffd¹º»¼½\ufffd¿"
        "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ"
        "\ufffdÑÒÓÔÕÖŒØÙÚÛÜŸ\ufffdß"
        "àáâãäåæçèéêëìíîï"
        "\ufffdñòóôõöœøùúûüÿ\ufffd\ufffd"
    ),
    "geostd8": (
        "€\ufffd‚\ufffd„…†‡\ufffd‰\ufffd‹\ufffd\ufffd\ufffd\ufffd"
        "\ufffd‘’“”•–—\ufffd\ufffd\ufffd›\ufffd\ufffd\ufffd\ufffd"
        "\xa0¡¢£¤¥¦§¨©ª«¬\xad®¯"
        "°±²³´µ¶·¸¹º»¼½¾¿"
        "აბგდევზჱთიკლმნჲო"
        "პჟრსტჳუფქღყშჩცძწ"
        "ჭხჴჯჰჵ\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"
        "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd№\ufffd\ufffd"
    ),
    "keybcs2": (
        "ČüéďäĎŤčěĚĹÍľĺÄÁ"
        "ÉžŽôöÓůÚýÖÜŠĽÝŘť"
        "áíóúňŇŮÔšřŕŔ¼¡«»"
        "░▒▓│┤╡╢╖╕╣║╗╝╜╛┐"
        "└┴┬├─┼╞╟╚╔╩╦╠═╬╧"
        "╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
        "αßΓπΣσµτΦΘΩδ∞φε∩"
        "≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0"
    ),
}
"""Characters 128 to 255 of 8-bit character sets without a Python codec; U+FFFD: undefined. Below 128: ASCII."""
_EIGHT_BIT: Final[Mapping[str, tuple[str, Mapping[int, str]]]] = {
    "ascii": ("ascii", {}),
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": ("cp1256", dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), _UNDEFINED)),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": ("cp866", {0xFC: "\u207f", 0xFD: "\xb2"}),
    "greek": ("iso8859_7", {0xA1: "\u02bd", 0xA2: "\u02bc", **dict.fromkeys((0xA4, 0xA5, 0xAA), _UNDEFINED)}),
    "hebrew": ("iso8859_8", {0xAF: "\u203e"}),
    "hp8": ("hp_roman8", {}),
    "koi8r": ("koi8_r", {}),
    "koi8u": ("koi8_u", {0x95: "\u2022"}),
    "latin1": ("cp1252", {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}),
    "latin2": ("iso8859_2", {}),
    "latin5": ("iso8859_9", {}),
    "latin7": ("iso8859_13", {}),
    "macce": ("mac_latin2", {}),
    "macroman": ("mac_roman", {}),
    "swe7": ("ascii", dict(zip(b"@[\\]^`{|}~\x7f", "ÉÄÖÅÜéäöåü\ufffe", strict=True))),
    "tis620": ("tis_620", {}),
}
"""Python's codec, and the bytes where the servers differ from it."""
_WIDE: Final[Mapping[str, str]] = {
    "big5": "big5",
    "cp932": "cp932",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "sjis": "shift_jis",
    "ucs2": "utf-16-be",
    "ujis": "euc_jp",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
}
_WIDEST: Final[Mapping[str, str]] = dict.fromkeys(("ucs2", "utf8mb3"), "\uffff")
"""The highest code point of each Unicode character set."""
_WHOLE: Final = frozenset({"gb18030", "utf16", "utf16le", "utf32", "utf8mb4"})
"""Character sets with every letter of Unicode."""
_SERVER_CHARACTERS: Final[Mapping[str, Mapping[int, int]]] = {
    "eucjpms": str.maketrans("〜‖−¢£¬", "～∥－￠￡￢"),
    "gb18030": str.maketrans("\ue7c7", "\u1e3f"),
    "sjis": str.maketrans("＼", "\\"),
    "ujis": str.maketrans("＼", "\\"),
}
"""Python's character -> the servers' character."""
_UNKNOWN_TO_SERVERS: Final[Mapping[str, frozenset[str]]] = {
    "big5": frozenset("╴￣ˍ"),
    # what Python makes of the single bytes A0, FD, FE and FF
    "cp932": frozenset("\uf8f0\uf8f1\uf8f2\uf8f3"),
}


def _eight_bit_table(codec: str, differences: Mapping[int, str]) -> str:
    read = (bytes([byte]).decode(codec, "replace").replace("\ufffd", _UNDEFINED) for byte in range(256))
    return "".join(differences.get(byte, character) for byte, character in enumerate(read))


@functools.cache
def _table(charset: str) -> str | None:
    """Built on first use: most processes need one or two tables, and each loads a codec."""
    if (how := _EIGHT_BIT.get(charset)) is not None:
        return _eight_bit_table(*how)
    if (upper := _UPPER_HALVES.get(charset)) is not None:
        return bytes(range(128)).decode("ascii") + upper.replace("\ufffd", _UNDEFINED)
    return None


def decode_text(data: bytes, charset: str | None) -> str | None:
    """The decoded text; None if the bytes are invalid or the character set is not known."""
    if charset is None:
        return None
    table = _table(charset)
    try:
        if table is not None:
            return codecs.charmap_decode(data, "strict", table)[0]
        codec = _WIDE.get(charset)
        if codec is None:
            return None
        text = data.decode(codec)
        # more than one spelling of a character, or one that the set has not: the server's own rule is not known
        exact = text.encode(codec) == data and max(text, default="") <= _WIDEST.get(charset, "\U0010ffff")
    except UnicodeError:
        return None
    if not exact or not _UNKNOWN_TO_SERVERS.get(charset, frozenset()).isdisjoint(text):
        return None
    return text.translate(_SERVER_CHARACTERS.get(charset, {}))


def eight_bit_characters(charset: str) -> str | None:
    """The 256 characters of an 8-bit character set, U+FFFE for undefined bytes; None for other character sets."""
    return _table(charset)


def has_all_letters(charset: str, other: str) -> bool:
    """Whether a client's character set has every letter of another one: a server sends such values unchanged, and of
    others '?' for each letter that is lacking. Not, of a character set that is not known."""
    if charset in (BINARY, *_WHOLE) or (charset and charset == other):
        return True
    characters, others = _table(charset), _table(other)
    if characters is not None and others is not None:
        return {*others} - {_UNDEFINED} <= {*characters}
    if charset == "utf8mb3":
        return others is not None or other in _WIDE.keys() - _WHOLE
    return charset in _WIDE and other == "ascii"


def wide_codec(charset: str) -> tuple[str, frozenset[str]] | None:
    """Python's codec for a multi-byte character set, and the characters where the servers differ from it."""
    codec = _WIDE.get(charset)
    otherwise = frozenset(map(chr, _SERVER_CHARACTERS.get(charset, {})))
    return None if codec is None else (codec, otherwise | _UNKNOWN_TO_SERVERS.get(charset, frozenset()))


def guessed_text(data: bytes) -> str | None:
    """Text of a column whose character set is not logged: printable UTF-8, else None."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(character.isprintable() or character in "\t\n\r" for character in text) else None
