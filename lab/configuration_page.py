"""``make configuration``: the keys of a channel file, written into docs/configuration.md from their declarations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from binlane.config.by_name import SECTIONS
from binlane.config.declaration import REQUIRED, Key, PerChannel, keys_of
from binlane.config.keys import ChannelConfig
from lab.written import replaced

PAGE: Final = Path(__file__).parents[1] / "docs" / "configuration.md"
_BEGIN: Final = "<!-- keys: written by `make configuration` from plugins/binlane/config/keys.py -->\n"
_END: Final = "<!-- end of keys -->\n"
_ALONE: Final[Mapping[str, str]] = {
    "rename": "Names of databases on the target. [renames.md](renames.md) explains which name is used where and lists "
    "what is refused.",
    "collations": "Substitutes for collations that the target lacks: [collations.md](collations.md).",
}
"""The text of sections that are a single key, which have no dataclass of their own."""


def rendered(page: str) -> str:
    """The page with the keys between its two marks replaced. Raises ValueError if a mark is missing."""
    return replaced(page, _BEGIN, _END, "".join(_sections()), f"{PAGE}: the keys")


def _sections() -> Iterator[str]:
    top = keys_of(ChannelConfig)
    yield _section("The channel", "", {name: key for name, key in top.items() if name not in _ALONE})
    for name in inspect.get_annotations(ChannelConfig):
        if name in _ALONE:
            yield _section(f"`[{name}]`", _ALONE[name], {name: top[name]})
        elif name in SECTIONS:
            keys = {f"{name}.{key}": declared for key, declared in keys_of(SECTIONS[name]).items()}
            yield _section(f"`[{name}]`", " ".join((inspect.getdoc(SECTIONS[name]) or "").split()), keys)


def _section(title: str, text: str, keys: Mapping[str, Key]) -> str:
    rows = "".join(
        f"| `{name}` | {key.kind.title} | {_default(key)} | {_meaning(name, key)} |\n" for name, key in keys.items()
    )
    intro = f"{text}\n\n" if text else ""
    return f"## {title}\n\n{intro}| key | type | default | meaning |\n|---|---|---|---|\n{rows}\n"


def _default(key: Key) -> str:
    if key.default is REQUIRED:
        return "must be given"
    if isinstance(key.default, PerChannel):
        return key.default.shown
    shown = "none" if key.default is None else key.kind.shown(key.default)
    return shown if key.variable is None else f"${key.variable}, else {shown} in the project"


def _meaning(name: str, key: Key) -> str:
    parts = [key.help]
    if key.kind.words:
        parts.append("; ".join(f'"{word}": {word.meaning}' for word in key.kind.words) + ".")
    if key.only is not None:
        section = name.partition(".")[0]
        how = "Not with" if key.only.without else "Only with"
        parts.append(f"{how} `{section}.{key.only.key} = {key.only.words}`.")
    if key.form is not None:
        parts.append(f"The field `{key.form}` of a run's form overrides the key for one run.")
    return " ".join(parts)


def main() -> int:
    """Write the page; 0."""
    PAGE.write_text(rendered(PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
