"""Channels of one file: a template, its variables, and what each channel gives them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from binlane.config import declared_channels, find_channel, load_channel
from binlane.errors import ConfigError
from binlane.orchestration.commands.setup.config import config
from binlane.regular_files import open_regular

TEMPLATE = """
description = "Shops of ${region}"
tags = ["shops", "${region}"]
[variables]
lanes = 4
[instances]
shop_eu = { region = "eu" }
shop_us = { region = "us", lanes = 8 }
[source]
connection = "${region}_source"
[target]
connection = "${channel}_target"
[lanes]
count = "${lanes}"
[rename]
"${region}_*" = "dr_*"
"""


def written(folder: Path, text: str = TEMPLATE, name: str = "shops") -> Path:
    (folder / f"{name}.toml").write_text(text)
    return folder


def test_each_instance_is_a_channel_with_its_own_values(tmp_path: Path) -> None:
    written(tmp_path)
    europe, america = (load_channel(each, {}) for each in declared_channels(tmp_path))
    assert (europe.name, europe.description, europe.tags) == ("shop_eu", "Shops of eu", ("shops", "eu"))
    assert (america.source.connection, america.target.connection) == ("us_source", "shop_us_target")
    assert (europe.lanes.count, america.lanes.count) == (4, 8)
    assert america.rename == (("us_*", "dr_*"),)
    assert europe.lanes.shard_list == "shard_list/shop_eu.list"
    assert europe.source.server_id != america.source.server_id
    assert find_channel("shop_us", tmp_path).file == tmp_path / "shops.toml"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('{ region = "eu" }', "{}", "channel shop_eu: description: expected variable region in [variables] or"),
        (
            '{ region = "eu" }',
            '{ region = "eu", lane = 3 }',
            "instances.shop_eu.lane: no key of the template has ${lane",
        ),
        ("[variables]", "[variables]\nspare = 1", "variables.spare: no key of the template has ${spare}"),
        (
            "lanes = 8",
            "lanes = 999",
            "channel shop_us: lanes.count: expected an integer 1..256, got 999, from '${lanes}'",
        ),
        ("lanes = 8", 'lanes = "x"', "got 'x', from '${lanes}'"),
        ('region = "us"', "region = true", "expected variable region to be text or a whole number inside 'Shops of"),
        ('region = "us"', 'channel = "us"', "instances.shop_us.channel: expected a variable's name of letters"),
        ("[lanes]", "[lane]", "channel shop_eu: lane: unknown key; did you mean lanes?"),
    ],
)
def test_an_error_names_file_channel_key_and_variable(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in TEMPLATE
    written(tmp_path, TEMPLATE.replace(before, after))
    with pytest.raises(ConfigError) as raised:
        list(map(load_channel, declared_channels(tmp_path)))
    assert str(raised.value).startswith(str(tmp_path / "shops.toml"))
    assert message in str(raised.value)


def test_the_value_of_a_variable_may_have_variables(tmp_path: Path) -> None:
    text = TEMPLATE.replace("lanes = 4", 'lanes = 4\nhost = "${region}.db"\nhosts = ["${host}", "$${x}"]').replace(
        'tags = ["shops", "${region}"]', 'tags = "${hosts}"'
    )
    channel = load_channel(find_channel("shop_eu", written(tmp_path, text)), {})
    assert channel.tags == ("eu.db", "${x}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            'a = "${b}"\nb = "x${a}"',
            "shop_eu: tags: expected variable a to have a value without itself, got a -> b -> a",
        ),
        ('a = ["${a}"]', "shop_eu: tags: expected variable a to have a value without itself, got a -> a"),
        ('a = "${absent}"', "shop_eu: tags: expected variable absent in [variables] or [instances], found none"),
        ('a = "x"\nb = "${a}"', "variables.b: no key of the template has ${b}"),
    ],
)
def test_a_variable_whose_value_cannot_be_found_is_named(tmp_path: Path, values: str, message: str) -> None:
    text = TEMPLATE.replace("[variables]", f"[variables]\n{values}").replace('"${region}"]', '"${region}", "${a}"]')
    with pytest.raises(ConfigError) as raised:
        load_channel(find_channel("shop_eu", written(tmp_path, text)), {})
    assert message in str(raised.value)


def test_each_file_is_parsed_once_however_many_channels_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    written(tmp_path, '[source]\nconnection = "a"\n[target]\nconnection = "b"\n', "alone")
    parsed = list[str]()

    def opened(file: Path) -> IO[bytes]:
        parsed.append(str(file))
        return open_regular(file)

    monkeypatch.setattr("binlane.config.node.open_regular", opened)
    assert [load_channel(each, {}).name for each in declared_channels(tmp_path)] == ["alone", "shop_eu", "shop_us"]
    assert parsed == [str(tmp_path / "alone.toml"), str(tmp_path / "shops.toml")]


def test_an_error_of_one_instance_leaves_the_others(tmp_path: Path) -> None:
    written(tmp_path, TEMPLATE.replace("lanes = 8", "lanes = 999"))
    assert load_channel(find_channel("shop_eu", tmp_path), {}).lanes.count == 4


def test_the_printed_channel_is_a_file_of_the_same_channel(tmp_path: Path) -> None:
    text = TEMPLATE + '[spark.conf]\n"fs.password" = "hunter2"\n[filter.kinds]\nddl = "refuse"\n'
    templates, channels = tmp_path / "templates", tmp_path / "alone"
    templates.mkdir()
    channels.mkdir()
    written(templates, text)
    printed = config("shop_us", templates)
    assert "hunter2" not in printed
    assert 'lanes.count = 8  # from "${lanes}"' in printed
    assert '\n# window.timezone = "UTC"\n' in printed
    alone = load_channel(written(channels, printed.replace("***", "hunter2"), "shop_us") / "shop_us.toml", {})
    instance = load_channel(find_channel("shop_us", templates), {})
    assert replace(alone, file="") == replace(instance, file="")


def test_the_printed_channel_shows_no_argument_of_the_command_that_announces(tmp_path: Path) -> None:
    command = '["curl", "-H", "Authorization: Bearer s3cret", "https://hooks.example.com/s3cret"]'
    written(tmp_path, TEMPLATE + f"[announce]\ncommand = {command}\n")
    assert '\nannounce.command = ["curl", "***", "***", "***"]\n' in config("shop_us", tmp_path)


def test_a_literal_dollar_brace_and_what_is_no_variable_stay(tmp_path: Path) -> None:
    text = TEMPLATE.replace("Shops of ${region}", "$${region} ${env:HOME} $5")
    assert load_channel(find_channel("shop_eu", written(tmp_path, text)), {}).description == "${region} ${env:HOME} $5"


def test_a_file_without_instances_keeps_its_text(tmp_path: Path) -> None:
    text = 'description = "${region}"\n[source]\nconnection = "a"\n[target]\nconnection = "b"\n'
    assert load_channel(find_channel("shop", written(tmp_path, text, "shop")), {}).description == "${region}"


@pytest.mark.parametrize("name", ["a b", "\u202egnp", "<b>x", "[/x]"])
def test_an_instance_whose_name_is_no_channel_s_is_an_error_under_the_file_s_name(tmp_path: Path, name: str) -> None:
    written(tmp_path, TEMPLATE.replace("shop_us =", f'"{name}" ='))
    assert [each.name for each in declared_channels(tmp_path)] == ["shop_eu", "shops"]
    with pytest.raises(ConfigError, match=r"shops\.toml: instances: expected a channel's name of up to 64 letters"):
        load_channel(find_channel("shops", tmp_path), {})


@pytest.mark.parametrize("text", ["[instances]\n", "instances = 3\n"])
def test_a_template_without_a_channel_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"shops\.toml: instances: expected a table with a channel, found none"):
        load_channel(find_channel("shops", written(tmp_path, text)), {})


def test_a_channel_that_two_files_declare_is_an_error_in_both(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, '[source]\nconnection = "a"\n[target]\nconnection = "b"\n', "shop_eu")
    assert [each.name for each in declared_channels(tmp_path)] == ["shop_eu", "shop_us"]
    with pytest.raises(ConfigError, match=r"channel shop_eu: expected one file with it, found .*shops\.toml as well"):
        load_channel(find_channel("shop_eu", tmp_path), {})
