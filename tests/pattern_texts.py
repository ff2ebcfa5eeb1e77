"""Runs the product's patterns over long texts: doubled quotes, and many rounds of what each of their repetitions takes.

Patterns are read from the modules that can be imported (also made ones, and those in tuples and mappings) and from the
calls of ``re`` in all of them. A text is tried short first. Where that takes suspiciously long, a longer one is: a time
that grows with the square of the text, or faster, is more than ``SECONDS`` then. What takes as long because the machine
is busy takes four times a quarter of the text, not sixteen times. The name and the text of each such pattern are
printed.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import binlane
from tests.parsing import parsed

SHORT: Final = 1_000
"""Characters; a pattern whose time doubles with each few of them is found as well."""
LONG: Final = 20_000
SUSPICIOUS: Final = 0.002
"""Seconds of CPU for a short text: some twenty times what a linear pattern takes."""
SECONDS: Final = 0.5
"""Of CPU, for a long text: some fifty times what a linear pattern takes."""
TOO_LONG: Final = 8.0
"""Of CPU: nothing that grows with its text takes as long, however busy the machine is."""
_TRIES: Final = 3
_PARSER: Final = importlib.import_module("re._parser")
_LEFT_OUT: Final = re.compile(r"binlane\.(?:board|airflow_plugin|orchestration\.airflow)\b")
"""They import what is not here, or takes seconds."""
_REPEATED: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_SINGLE: Final = (["IN"], ["ANY"], ["LITERAL"], ["NOT_LITERAL"])
_CATEGORIES: Final = {"SPACE": r"\s", "WORD": r"\w", "DIGIT": r"\d"}
_LETTERS: Final = "a0 \n-.*/\\'\"`(,;@="
"""Tried for a class with many members."""
_MOST: Final = 4
"""Samples of one part of a pattern."""
_ENDS: Final = ("", "\x00")
"""Behind a text, so that it does not match after all."""
_METHODS: Final = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
_METHOD: Final = re.compile(rf"\.({'|'.join(each for each in _METHODS if each != 'split')})\b")


_GRANTS: Final = "grants of a server, each of them a line"
_RULES: Final = "rules of a channel file, which its owner writes"
_TEXTS: Final = "definitions as a server prints them: their quotes are closed"
LEFT: Final[Mapping[str, str]] = {
    "binlane.config.kinds._TABLE_PATTERN": _RULES,
    "binlane.shards.selection._DIVIDED": _RULES,
    "binlane.errors._SECRET": "a URI of at most 4,096 characters",
    "binlane.plan.transaction.rename._ALIAS": _TEXTS,
    "binlane.precheck.account.privileges._COLUMNS": _GRANTS,
    "binlane.precheck.account.privileges._OF_COLUMNS": _GRANTS,
    "binlane.precheck.account.privileges._ROLES": _GRANTS,
    "binlane.precheck.situation.situation.QUALIFIER": _TEXTS,
    "binlane.restore.dump_file._COMMENT": "comments of a dump, each of which has its end",
    "binlane.restore.dump_load._VALUES": "called by match alone, from where the last match has ended",
    "binlane.restore.end._PIECE": "a statement on the command line",
    "binlane.schema.normalize._MEMBER": _TEXTS,
    "binlane.schema.normalize._PIECES": _TEXTS,
    "binlane.sql.accounts._SHOWN": _GRANTS,
    "binlane.sql.charset._SWE7_PIECE": "ends at the first comment that has no end",
    "binlane.sql.server_composed._VIEW": "called by match alone, of a text that a server has composed",
    "binlane.sql.server_composed._ROUTINE": "the same",
    "binlane.sql.server_composed._ACCOUNT": "called by match alone",
    "binlane.sql.server_composed._COMPOSED_GRANT": "called by match alone, from a table",
    "binlane.verify.definitions.account_options._OPTIONS": _GRANTS,
    "binlane.verify.definitions.accounts._ANY_PRIVILEGE": _GRANTS,
    "binlane.verify.definitions.accounts._PRIVILEGE": _GRANTS,
    "binlane.verify.definitions.comparison._PRINTED": _TEXTS,
    "binlane.verify.definitions.show_create._COLLATION": _TEXTS,
    "view_guard.py:37": "statements of binlane's own",
}
"""Patterns that look from each quote, or from each word, for an end that the texts they read have, with these texts."""

MEMORY_LEFT: Final[Mapping[str, str]] = {
    "binlane.restore.end._PIECE": "a statement on the command line",
    "binlane.sql.parse.created_body._CHARACTERISTICS": "what SHOW CREATE prints in front of a body",
    "binlane.sql.parse.shown_table._COMMENT": "the options of a table in SHOW CREATE TABLE",
}
"""Patterns with a repetition of groups that has no end, in modules that read texts of any length, with what they
read."""


class LateError(Exception):
    """A pattern has taken too long."""


def patterns() -> Mapping[str, tuple[re.Pattern[Any], tuple[str, ...]]]:
    """Each pattern of the product, with the methods by which it is called, by the place where it stands."""
    sources = {file: file.read_text() for file in sorted(Path(*binlane.__path__).rglob("*.py"))}
    everything = "\n".join(sources.values())
    found = dict[re.Pattern[Any], tuple[str, tuple[str, ...]]]()
    for module in pkgutil.walk_packages(binlane.__path__, "binlane."):
        if _LEFT_OUT.match(module.name) is None:
            read = importlib.import_module(module.name)
            for name, value in vars(read).items():
                inside = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
                for each in inside:
                    if isinstance(each, re.Pattern) and each not in found:
                        own = inspect.getsource(read)
                        methods = _methods_of(name, own if name[0] == "_" else everything, own)
                        found[each] = (f"{module.name}.{name}", tuple(dict.fromkeys(methods)))
    for file, text in sources.items():
        tree = parsed(text)
        names: dict[Any, str] = {
            each.value: each.target.id
            for each in ast.walk(tree)
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        }
        for call, method in _calls_of_re(tree):
            pattern = _written(call)
            if pattern is not None and pattern not in found:
                name = names.get(call, "")
                methods = [method] if method != "compile" else _methods_of(name, text, text)
                found[pattern] = (f"{file.name}:{call.lineno}", tuple(dict.fromkeys(methods)))
    return {f"{place} ({each.pattern[:40]!r})": (each, methods) for each, (place, methods) in found.items()}


def _methods_of(name: str, text: str, own: str) -> list[str]:
    """The methods by which the patterns of a name are called; of those in a tuple or mapping all of its module."""
    called = rf"\b{name}(?:\[[^\]]*\])?\.({'|'.join(_METHODS)})\b"
    return (re.findall(called, text) if name else []) or _METHOD.findall(own)


def _calls_of_re(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """The calls of functions of ``re``, each with the function's name."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "re":
            name = call.func.attr
            if name in ("compile", *_METHODS):
                yield call, name


def _written(call: ast.Call) -> re.Pattern[Any] | None:
    """The pattern of a call that writes it as it is."""
    if not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    flags = [each for each in (*call.args[1:], *(one.value for one in call.keywords)) if "re." in ast.unparse(each)]
    value = eval(ast.unparse(flags[0]), {"re": re}) if flags else 0
    return re.compile(call.args[0].value, value if isinstance(value, int) else 0)


def texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Texts of about so many characters: doubled, unclosed and escaped quotes of each kind, and rounds of what each
    repetition takes, behind what stands in front of it, and together with that."""
    repeated = dict.fromkeys([("", ""), *_repetitions(_PARSER.parse(pattern.pattern, pattern.flags), [""])])
    for begin in dict.fromkeys(begin for begin, _ in repeated):
        for quote in "`\"'":
            for once in (f"a{quote}{quote}", f"{quote}a{quote}", f"a\\{quote}"):
                yield begin + quote + once * (length // len(once))
                yield begin + once * (length // len(once)) + quote
    for (begin, once), end in itertools.product(repeated, _ENDS):
        if once:
            yield begin + once * (length // len(once)) + end
        if begin + once:
            yield (begin + once) * (length // len(begin + once)) + end


def _repetitions(items: Iterable[tuple[Any, Any]], begins: list[str]) -> Iterator[tuple[str, str]]:
    """What stands in front of each repetition, and one of its rounds; also of those inside of others."""
    before = begins
    for item in items:
        code, value = str(item[0]), item[1]
        inner: list[Any] = []
        if code in _REPEATED:
            _, most, inside = value
            inner = [inside]
            if most > 2:
                yield from itertools.product(before, _samples(inside))
        elif code == "BRANCH":
            inner = list(value[1])
        elif code in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
            inner = [value[-1]]
        elif code == "ATOMIC_GROUP":
            inner = [value]
        for each in inner:
            yield from _repetitions(each, before)
        before = _some(begin + sample for begin in before for sample in _samples([item]))


def takes_memory(pattern: re.Pattern[Any]) -> bool:
    """Whether a pattern repeats a group without an end: ``re`` keeps 100 to 350 bytes for each round until the match
    ends. Repetitions of one character or class take nothing."""
    return _repeats_a_group(_PARSER.parse(pattern.pattern, pattern.flags))


def _repeats_a_group(items: Iterable[tuple[Any, Any]]) -> bool:
    for item in items:
        code, value = str(item[0]), item[1]
        inner: list[Any] = []
        if code in _REPEATED:
            _, most, inside = value
            if most == _PARSER.MAXREPEAT and [str(each[0]) for each in inside] not in _SINGLE:
                return True
            inner = [inside]
        elif code == "BRANCH":
            inner = list(value[1])
        elif code in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
            inner = [value[-1]]
        if any(map(_repeats_a_group, inner)):
            return True
    return False


def _samples(items: Iterable[tuple[Any, Any]]) -> list[str]:
    """Texts that a part of a pattern takes."""
    found = [""]
    for code, value in items:
        found = _some(each + more for each in found for more in _of_one(str(code), value))
    return found


def _of_one(code: str, value: Any) -> list[str]:
    if code in _REPEATED:
        least, most, inside = value
        return _some(
            once * rounds for once in _samples(inside) for rounds in dict.fromkeys((least, min(most, least + 1)))
        )
    if code == "LITERAL":
        return [chr(value)]
    if code in ("NOT_LITERAL", "ANY"):
        return [each for each in "a \n" if code == "ANY" or ord(each) != value]
    if code == "IN":
        first = next(each for each in map(chr, range(1, sys.maxunicode)) if _is_in(each, value))
        return _some(each for each in (*_LETTERS, first) if _is_in(each, value))
    if code == "BRANCH":
        return _some(each for every in value[1] for each in _samples(every)[:2])
    if code == "SUBPATTERN":
        return _samples(value[-1])
    if code == "ATOMIC_GROUP":
        return _samples(value)
    # they take nothing, or, in a few patterns, what a group has taken
    assert code in ("AT", "ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS"), code
    return [""]


def _some(texts: Iterable[str]) -> list[str]:
    return list(itertools.islice(dict.fromkeys(texts), _MOST))


def _is_in(letter: str, members: Iterable[tuple[Any, Any]]) -> bool:
    is_in, negated = False, False
    for code, value in members:
        kind = str(code)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            is_in |= ord(letter) == value
        elif kind == "RANGE":
            is_in |= value[0] <= ord(letter) <= value[1]
        else:
            name = str(value).removeprefix("CATEGORY_")
            matches = re.match(_CATEGORIES[name.removeprefix("NOT_")], letter) is not None
            is_in |= matches != name.startswith("NOT_")
    return is_in != negated


def seconds(call: Callable[[str], object], text: str, most: float = SECONDS) -> float:
    """Seconds of CPU of a call; ``most`` if it takes longer, and is ended."""
    begun = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, most)
        try:
            call(text)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except LateError:
        return most
    return time.process_time() - begun


def _takes_the_square(call: Callable[[str], object], quarter: str, long: str) -> bool:
    """Whether a text takes more than eight times the seconds of its quarter: sixteen times are the square of it.

    Each time, of a few: what else the machine does costs a call some CPU, too, and the quarter is short.
    """
    for _ in range(_TRIES):
        whole = seconds(call, long, TOO_LONG)
        if whole >= TOO_LONG:
            return True
        if whole <= 8 * seconds(call, quarter, TOO_LONG):
            return False
    return True


def slow_text(pattern: re.Pattern[Any], methods: Iterable[str]) -> str:
    """The beginning of a text that the pattern reads too slowly by one of these methods; empty: none was found."""

    def called(method: str, text: str) -> None:
        read = text.encode() if isinstance(pattern.pattern, bytes) else text
        if method in ("match", "fullmatch"):
            getattr(pattern, method)(read)
        else:
            for _ in pattern.finditer(read):
                pass

    calls = [functools.partial(called, method) for method in methods]
    lengths = (SHORT, LONG // 4, LONG)
    long: str
    for text, quarter, long in zip(*(texts(pattern, length) for length in lengths), strict=True):
        for call in calls:
            is_late = seconds(call, text) > SUSPICIOUS and seconds(call, long) >= SECONDS
            if is_late and _takes_the_square(call, quarter, long):
                return long[:60]
    return ""


def late(*_: object) -> None:
    raise LateError


def main() -> None:
    signal.signal(signal.SIGVTALRM, late)
    found = patterns()
    sys.stdout.write(f"{len(found)} patterns\n")
    for gone in sorted(LEFT.keys() - {place.partition(" ")[0] for place in found}):
        sys.stdout.write(f"{gone}: is left out, and is not there\n")
    for place, (pattern, methods) in found.items():
        if place.partition(" ")[0] in LEFT:
            continue
        if text := slow_text(pattern, methods):
            sys.stdout.write(f"{place}: {text!r}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
