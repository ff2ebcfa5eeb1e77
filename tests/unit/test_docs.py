"""The docs are whole: every error, command, option and channel key is in them, and nothing they link to is missing."""

import inspect
import re
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from benchmarks import board, machine, tables, verification
from binlane import errors
from binlane.cli import app
from binlane.config.by_name import all_keys
from binlane.errors import BinlaneError
from binlane.formats import FORMATS
from binlane.state.tables import VERSION
from lab.trial import samples
from tests.ways_out import TROUBLES, Trouble

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
CRASHES = (
    "killed extraction",
    "killed Spark job",
    "killed lane",
    "killed scheduler",
    "killed target server",
    "killed source server",
    "full disk",
    "lost work folder",
    "target from an older backup",
)
PRINTED = (
    "none open",
    ", unfinished",
    "none yet: run the channel again",
    "nobody",
    "; last: ",
    " to its end",
    " s behind now",
    "; again in ",
    "the server says: ",
    "check host and port, then run again when the server answers",
    "; run the step again when the server answers",
    "; this step writes nothing to the target. Free space, or set work.uri to a larger place if no window is open, th",
    "its files are gone from ",
    ": reading the same part of the log again",
    "begins it without a copy (if the schema was lost, first read",
)
"""What docs/recovery.md quotes of status and errors."""
CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def error_classes() -> list[type[BinlaneError]]:
    return [
        found
        for _, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, BinlaneError) and found is not BinlaneError
    ]


def commands() -> dict[str, TyperCommand]:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return {name: command for name, command in group.commands.items() if isinstance(command, TyperCommand)}


def options() -> list[tuple[str, str]]:
    """Command and option, ``--no-...`` and ``--help`` left out."""
    return [
        (name, option)
        for name, command in commands().items()
        for parameter in command.params
        if isinstance(parameter, TyperOption) and parameter.name != "help"
        for option in parameter.opts
    ]


def section(text: str, heading: str) -> str:
    found = re.search(rf"^### {heading}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    return "" if found is None else found[1]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as Git hosts make them."""
    headings = re.findall(r"^#+ (.+)$", CODE_BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_has_a_section_with_an_example_and_what_to_do(error: type[BinlaneError]) -> None:
    text = section(page("docs/troubleshooting.md"), error.__name__)
    assert CODE_BLOCK.search(text), f"docs/troubleshooting.md: expected a section {error.__name__} with a message"
    assert len(CODE_BLOCK.split(text)[-1].split()) >= 3, f"{error.__name__}: nothing is said behind the example"


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_the_docs_say_of_the_retryable_errors_alone_that_they_are_retried(error: type[BinlaneError]) -> None:
    assert ("*Retried" in section(page("docs/troubleshooting.md"), error.__name__)) is error.retryable


def test_no_section_is_about_an_error_that_does_not_exist() -> None:
    documented = re.findall(r"^### (\w+)$", page("docs/troubleshooting.md"), re.MULTILINE)
    assert sorted(documented) == sorted(error.__name__ for error in error_classes())


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda one: one.what)
def test_every_trouble_on_the_target_is_in_its_table_with_what_to_type(trouble: Trouble) -> None:
    typed = ", then ".join(f"`{each}`" for each in trouble.typed)
    assert f"| {trouble.what} | `{trouble.seen}` | {typed} |\n" in (ROOT / "docs/troubleshooting.md").read_text()


@pytest.mark.parametrize("crash", CRASHES)
def test_every_crash_is_walked_through_and_names_a_test_that_does_it(crash: str) -> None:
    text = section(page("docs/recovery.md"), f"A {crash}")
    steps = re.findall(r"^\*\*(\w+)\*\*: ", text, re.MULTILINE)
    assert steps == ["Seen", "Type", "Then"]
    assert CODE_BLOCK.search(text), "expected what the log, the status or the command line shows"
    held = re.findall(r"`((?:integration|chaos|dags)/[\w/]+\.py)::(\w+)`", text)
    assert held != []
    for file, test in held:
        assert f"\ndef {test}(" in (ROOT / "tests" / file).read_text("utf-8")


def test_the_walk_through_shows_what_the_program_prints() -> None:
    """The words around the values are in the code that prints them."""
    shown = "".join(CODE_BLOCK.findall(page("docs/recovery.md").split("## Every crash")[1].split("\n## ")[0]))
    source = "".join(file.read_text("utf-8") for file in (ROOT / "plugins" / "binlane").rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", source)
    for words in PRINTED:
        assert words in shown, f"docs/recovery.md no longer shows {words!r}"
        assert words in joined, f"nothing prints {words!r} any more"


@pytest.mark.parametrize("name", commands())
def test_every_command_is_in_its_page_and_explains_itself(name: str) -> None:
    assert f"`binlane {name}" in page("docs/commands.md")
    assert commands()[name].help


@pytest.mark.parametrize(("command", "option"), options())
def test_every_option_is_in_the_page_of_commands(command: str, option: str) -> None:
    rows = re.findall(rf"^\| `{option}` \| ([^|]+) \|", page("docs/commands.md"), re.MULTILINE)
    assert len(rows) == 1, f"docs/commands.md: expected one row for {option} of `binlane {command}`"
    named = set(re.findall(r"`([\w-]+)`", rows[0]))
    if rows[0].startswith("all but"):
        assert command not in named
    else:
        assert command in named


def test_no_option_of_the_page_of_commands_is_made_up() -> None:
    documented = re.findall(r"^\| `(--[a-z-]+)` \|", page("docs/commands.md"), re.MULTILINE)
    assert sorted(documented) == sorted({option for _, option in options()})


@pytest.mark.parametrize("key", all_keys())
def test_every_key_of_a_channel_is_in_the_configuration_page(key: str) -> None:
    assert f"| `{key}` |" in page("docs/configuration.md")


def test_every_exit_code_is_in_the_page_of_commands() -> None:
    codes = {0, *(error.exit_code for error in error_classes())}
    assert {int(code) for code in re.findall(r"^\| (\d) \|", page("docs/commands.md"), re.MULTILINE)} == codes


@pytest.mark.parametrize(
    ("path", "name"),
    [(path, name) for path, parts in tables.PARTS.items() for name in parts],
    ids=lambda one: str(one)[-9:],
)
def test_the_tables_of_benchmarks_are_their_results(path: Path, name: str) -> None:
    text = path.read_text("utf-8")
    written = tables.with_part(text, name, tables.PARTS[path][name](machine.RESULTS), str(path))
    assert written == text, f"{path.name} is not up to date: `python -m benchmarks.all --write` writes it"
    with pytest.raises(ValueError, match=f"expected the lines .*{name}"):
        tables.with_part(text.replace(f"<!-- end of {name} -->", ""), name, "", str(path))


def test_the_cost_of_a_verification_is_the_benchmarks_result() -> None:
    text = page("docs/comparison.md")
    assert verification.rendered(text) == text, (
        "docs/comparison.md is not up to date: `python -m benchmarks.verification` writes it"
    )
    assert "| MariaDB 1" in text
    assert "| MySQL " in text
    with pytest.raises(ValueError, match="put them back around the part"):
        verification.rendered("# Verify")


def test_the_time_that_views_take_is_the_benchmark_s_result() -> None:
    text = page("docs/board.md")
    assert board.rendered(text) == text, "docs/board.md is not up to date: `python -m benchmarks.board` writes it"
    assert "| board: all channels | " in text


@pytest.mark.parametrize("file", sorted((ROOT / "docs").glob("*.md")), ids=lambda file: file.stem)
def test_sample_outputs_are_those_of_a_trial(file: Path) -> None:
    text = file.read_text("utf-8")
    assert samples.rendered(text) == text, f"{file.name} is not up to date: `make trial` writes its samples"


def test_every_stored_sample_is_shown() -> None:
    assert {file.stem for file in samples.SAMPLES.glob("*")} == samples.wanted() != set()


def test_the_readme_is_one_short_page() -> None:
    assert len(page("README.md").splitlines()) <= 200


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading_that_exist(file: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE_BLOCK.sub("", file.read_text("utf-8"))):
        if target.startswith("https://"):
            continue
        place, _, anchor = target.partition("#")
        linked = file if place == "" else (file.parent / place)
        assert linked.exists(), f"{file.name}: {target}"
        if anchor:
            assert anchor in anchors(linked.read_text("utf-8")), f"{file.name}: {target}"


def test_every_package_has_its_row_in_the_architecture() -> None:
    section = page("docs/architecture.md").partition("## Packages")[2].partition("## Four walks")[0]
    package = ROOT / "plugins" / "binlane"
    found = {str(file.parent.relative_to(package)) for file in package.rglob("__init__.py")} - {"."}
    named = {name for row in section.splitlines() if row.startswith("| `") for name in re.findall(r"`([a-z_/]+)`", row)}
    # the packages in state are named in its row
    assert {each.removeprefix("state/") for each in found} <= named


def test_every_place_for_the_next_feature_is_there() -> None:
    table = page("docs/architecture.md").partition("## Where the next feature goes")[2]
    places = [each for each in re.findall(r"`([a-z_/*.]+)`", table) if "/" in each]
    assert len(places) > 20
    missing = [each for each in places if not any([*ROOT.glob(each), *ROOT.glob(f"plugins/binlane/{each}")])]
    assert missing == []


def test_the_newest_release_says_what_an_upgrade_to_it_needs() -> None:
    """With the version of everything that is stored: whoever raises one says there what it means for a site."""
    newest = re.split(r"^## ", page("CHANGELOG.md"), flags=re.MULTILINE)[1]
    upgrading = " ".join(section(newest, "Upgrading").split())
    assert f"schema `binlane` has version {VERSION}" in upgrading
    for name, each in FORMATS.items():
        written = f"{name.removesuffix('s')} has version" if name == "repair plans" else name
        assert f"{written} {each.version}" in upgrading, name
