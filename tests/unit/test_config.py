"""Channel files: what is read, and how what is wrong is said."""

import datetime as dt
import re
import tomllib
from pathlib import Path

import pytest

from binlane.choices import (
    Assigner,
    Commit,
    Consistency,
    Divide,
    OnConflict,
    PlanEngine,
    Reduce,
    RowImages,
    VerifyScope,
    Writer,
)
from binlane.config import ChannelConfig, DeclaredChannel, declared_channels, find_channel, load_channel
from binlane.config import keys as config
from binlane.config.by_name import all_keys
from binlane.config.declaration import REQUIRED, Key, PerChannel
from binlane.config.kinds import CONNECTION, Table
from binlane.config.node import Node
from binlane.config.rules_digest import rules_digest
from binlane.errors import ConfigError
from binlane.model import Flavor
from binlane.orchestration.effective_rules import selection_of
from binlane.schema.model import Schema
from binlane.shards.selection import Selection
from lab.configuration_page import rendered

ROOT = Path(__file__).parents[2]
MINIMAL = '[source]\nconnection = "a"\n[target]\nconnection = "b"\n'


def channel(folder: Path, text: str, name: str = "shop", environment: dict[str, str] | None = None) -> ChannelConfig:
    file = folder / "dags" / "channels" / f"{name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return load_channel(file, {} if environment is None else environment)


def test_a_file_with_two_connections_is_a_channel_with_defaults(tmp_path: Path) -> None:
    read = channel(tmp_path, MINIMAL)
    assert (read.name, read.root, read.owner) == ("shop", tmp_path, "binlane")
    assert (read.source.connection, read.source.archive, read.target.connection) == ("a", None, "b")
    assert read.window == config.WindowConfig("0 * * * *", 3600, "UTC", dt.date(2026, 1, 1))
    assert read.lanes == config.LanesConfig(
        4,
        "shard_list/shop.list",
        Assigner.DATABASE,
        *(Consistency.EVENTUAL, 60, 0, 2, 500, Divide.KEY, Commit.ALONE),
        allow_torn=False,
    )
    assert read.shard_list_file == tmp_path / "shard_list" / "shop.list"
    assert read.blocks == config.BlocksConfig("auto", 8 << 20, 0, Reduce.AUTO, 64 << 20)
    assert read.filter == config.FilterConfig((), (), (), (), {}, ())
    assert read.rename == ()
    assert read.collations == ()
    assert read.drill == config.DrillConfig(None, None, 3, "@daily")
    assert read.work == config.WorkConfig(str(tmp_path / ".binlane/work"), 24, 10_000)
    assert read.apply == config.ApplyConfig(
        *(3600, 60, 10, 5, 86_400, 30, 0),
        allow_nontransactional=False,
        allow_unsafe=False,
        writer=Writer.BINLOG,
        allow_triggers=(),
        allow_unseen=(),
        on_conflict=OnConflict.STOP,
        row_images=RowImages.AUTO,
    )


EVERY_KEY = """
    owner = "team"
    owner_link = "mailto:team@example.com"
    tags = ["x", "y"]
    description = "words"
    [source]
    archive = "s3://logs/shop"
    server_id = 77
    event_bytes = 33554432
    trusted_files = ["binlog.000123"]
    unlogged_gtids = "11111111-2222-3333-4444-555555555555:1-9"
    ended_sessions = ["17:4711@binlog.000123:4"]
    [target]
    connection = "b"
    [window]
    schedule = "*/15 * * * *"
    follow_seconds = 90
    timezone = "Europe/Berlin"
    start_date = 2026-02-03
    [lanes]
    count = 8
    shard_list = "lists/a.list"
    assigner = "database"
    consistency = "epoch"
    epoch_seconds = 5
    epoch_transactions = 1000
    reader_wait = 7
    fold_gap = 0
    divide = "table"
    commit = "together"
    allow_torn = true
    [filter]
    include_databases = ["shop_*"]
    exclude_databases = ["shop_test"]
    include_tables = ["*.orders", "?.t"]
    exclude_tables = ["*.log"]
    allow_statements = ["SET GLOBAL"]
    [filter.kinds]
    ddl = "refuse"
    truncate = "ignore"
    drop_database = "apply"
    delete = "ignore"
    [rename]
    "prod_*" = "dr_*"
    main = "dr2"
    [collations]
    utf8mb4_0900_ai_ci = "utf8mb4_uca1400_nopad_ai_ci"
    [blocks]
    transactions = 7
    bytes = 65536
    seconds = 30
    reduce = "off"
    [segments]
    bytes = 1048576
    [apply]
    barrier_timeout = 1
    lease_seconds = 5
    retries = 0
    task_retries = 4
    task_timeout = 0
    lock_wait_timeout = 2
    max_threads_running = 7
    allow_nontransactional = true
    allow_unsafe = true
    writer = "auto"
    allow_triggers = ["shop.orders"]
    allow_unseen = ["crm"]
    on_conflict = "overwrite"
    row_images = "full"
    [alert]
    max_age = 1
    max_unverified = 2
    max_pending = 4
    max_full_age = 3
    max_drill_age = 5
    lag_seconds = 60
    callback = "company.alerts.page"
    [verify]
    after_window = "none"
    rows_per_second = 5
    max_threads_running = 6
    slice_seconds = 7
    [drill]
    base = "/backup/all.sql"
    log = "s3://backup/binlog"
    tenants = 9
    schedule = "none"
    [work]
    uri = "s3://work/binlane"
    keep_windows = 1
    keep_history = 7
    [spark]
    engine = "auto"
    min_segments = 3
    connection = "cluster"
    [spark.conf]
    "spark.driver.memory" = "2g"
"""


def test_every_key_of_the_file_reaches_the_channel(tmp_path: Path) -> None:
    read = channel(tmp_path, EVERY_KEY)
    assert (read.owner, read.tags, read.description) == ("team", ("x", "y"), "words")
    assert read.source == config.SourceConfig(
        None,
        "s3://logs/shop",
        77,
        32 << 20,
        ("binlog.000123",),
        "11111111-2222-3333-4444-555555555555:1-9",
        ("17:4711@binlog.000123:4",),
    )
    assert read.window == config.WindowConfig("*/15 * * * *", 90, "Europe/Berlin", dt.date(2026, 2, 3))
    assert read.lanes == config.LanesConfig(
        8,
        "lists/a.list",
        Assigner.DATABASE,
        *(Consistency.EPOCH, 5, 1000, 7, 0, Divide.TABLE, Commit.TOGETHER),
        allow_torn=True,
    )
    kinds = dict.fromkeys(("create", "alter", "rename", "drop"), "refuse")
    kinds |= {"truncate": "ignore", "drop_database": "apply", "delete": "ignore"}
    tables = (("*.orders", "?.t"), ("*.log",))
    assert read.filter == config.FilterConfig(("shop_*",), ("shop_test",), *tables, kinds, ("SET GLOBAL",))
    assert read.rename == (("prod_*", "dr_*"), ("main", "dr2"))
    assert read.collations == (("utf8mb4_0900_ai_ci", "utf8mb4_uca1400_nopad_ai_ci"),)
    assert (read.blocks, read.segments) == (
        config.BlocksConfig(7, 65536, 30, Reduce.OFF, 64 << 20),
        config.SegmentsConfig(1 << 20),
    )
    assert read.apply == config.ApplyConfig(
        *(1, 5, 0, 4, 0, 2, 7),
        allow_nontransactional=True,
        allow_unsafe=True,
        writer=Writer.AUTO,
        allow_unseen=("crm",),
        allow_triggers=("shop.orders",),
        on_conflict=OnConflict.OVERWRITE,
        row_images=RowImages.FULL,
    )
    assert (read.owner_link, read.alert) == (
        "mailto:team@example.com",
        config.AlertConfig(1, 2, 4, 3, 5, 60, "company.alerts.page"),
    )
    assert read.verify == config.VerifyConfig(VerifyScope.NONE, 5, 6, 7)
    assert read.drill == config.DrillConfig("/backup/all.sql", "s3://backup/binlog", 9, None)
    assert read.work == config.WorkConfig("s3://work/binlane", 1, 7)
    assert read.spark == config.SparkConfig(PlanEngine.AUTO, 3, "cluster", {"spark.driver.memory": "2g"})


def test_a_window_s_block_has_room_for_two_blocks(tmp_path: Path) -> None:
    read = channel(tmp_path, MINIMAL + '[blocks]\nreduce = "window"\nbytes = 100000000\n').blocks
    assert read == config.BlocksConfig("auto", 100_000_000, 0, Reduce.WINDOW, 200_000_000)


WRONG = [
    pytest.param("x = 1\n" + MINIMAL, "x: unknown key; known: owner, owner_link, tags", id="unknown top key"),
    pytest.param(
        MINIMAL + "[lanes]\ncuont = 4\n",
        "lanes.cuont: unknown key; did you mean count? known: c",
        id="typo",
    ),
    pytest.param(MINIMAL + "[lanes]\ncount = 0\n", "lanes.count: expected an integer 1..256, got 0", id="too small"),
    pytest.param(MINIMAL + "[lanes]\ncount = 257\n", "lanes.count: expected an integer 1..256, got 257", id="too big"),
    pytest.param(MINIMAL + "[lanes]\ncount = true\n", "lanes.count: expected an integer 1..256, got True", id="bool"),
    pytest.param(MINIMAL + '[lanes]\ncount = "4"\n', "lanes.count: expected an integer 1..256, got '4'", id="text"),
    pytest.param(MINIMAL + '[lanes]\nassigner = "x"\n', "lanes.assigner: expected one of database", id="assigner"),
    pytest.param(
        MINIMAL + '[lanes]\nconsistency = "x"\n',
        "lanes.consistency: expected one of eventual, any_time",
        id="consistency",
    ),
    pytest.param(
        MINIMAL + "[lanes]\nepoch_seconds = 5\n",
        'lanes.epoch_seconds: expected only with consistency = "epoch"',
        id="epoch",
    ),
    pytest.param(
        MINIMAL + '[blocks]\nreduce = "block"\nwindow_bytes = 67108864\n',
        'blocks.window_bytes: expected only with reduce = "auto" or "window", got \'block\'',
        id="window_bytes",
    ),
    pytest.param(
        MINIMAL + '[blocks]\nreduce = "window"\nseconds = 5\n',
        "blocks.seconds: expected only without reduce = \"window\", got 'window'",
        id="seconds",
    ),
    pytest.param(
        MINIMAL + '[blocks]\nreduce = "window"\nwindow_bytes = 16777215\n',
        "blocks.window_bytes: expected an integer 16,777,216..1,073,741,824, got 16777215",
        id="window of two blocks",
    ),
    pytest.param(
        MINIMAL + '[filter]\nexclude_tables = ["a.b", "log"]\n',
        "filter.exclude_tables: expected a list of database.table, patterns with one dot each",
        id="a table's pattern without its database",
    ),
    pytest.param(
        MINIMAL + '[filter.kinds]\ndrops = "ignore"\n',
        "filter.kinds.drops: unknown key; did you mean drop? known: ddl, create",
        id="unknown kind",
    ),
    pytest.param(
        MINIMAL + '[filter.kinds]\nddl = "skip"\n',
        "filter.kinds.ddl: expected one of apply, ignore, refuse",
        id="unknown policy",
    ),
    pytest.param(
        MINIMAL + '[rename]\n"a*" = "b"\n', "rename.a*: expected one star on each side, or no star at all", id="stars"
    ),
    pytest.param(MINIMAL + '[rename]\n"a*b*" = "c*"\n', "rename.a*b*: expected one star on each side", id="two stars"),
    pytest.param(
        MINIMAL + '[rename]\na = "mysql"\n', "rename.a: expected a database that is neither the server's", id="system"
    ),
    pytest.param(
        MINIMAL + '[rename]\na = "#MySQL50#mysql"\n', "rename.a: expected a database that is neither", id="of a folder"
    ),
    pytest.param(MINIMAL + f'[rename]\na = "{65 * "b"}"\n', "rename.a: expected names or patterns of 1", id="too long"),
    pytest.param(
        MINIMAL + '[rename]\n"a*" = "b*"\nab = "c"\n',
        'rename.ab: expected a rule that can apply: "a*" = "b*" comes first',
        id="never reached",
    ),
    pytest.param(
        MINIMAL + '[rename]\na = "c1"\n"b*" = "C*"\n',
        'rename.b*: expected new names that differ from those of "a" = "c1": two databases would become one',
        id="two become one",
    ),
    pytest.param(MINIMAL + "[rename]\na = 1\n", "rename.a: expected text, got 1", id="no text"),
    pytest.param(
        MINIMAL + '[collations]\nutf8mb4_0900_ai_ci = "utf8mb3_bin"\n',
        "collations.utf8mb4_0900_ai_ci: expected a collation of the character set utf8mb4",
        id="another character set",
    ),
    pytest.param(
        MINIMAL + '[collations]\nutf8mb4_bin = "uca1400_ai_ci"\n',
        "collations.utf8mb4_bin: expected a collation of the character set utf8mb4",
        id="a short name",
    ),
    pytest.param(
        MINIMAL + '[collations]\n"utf8mb4 bin" = "x"\n', "collations.utf8mb4 bin: expected two names", id="no names"
    ),
    pytest.param(
        MINIMAL + '[collations]\na_b = "a_c"\na_c = "a_d"\n',
        "collations.a_b: expected another collation, which no other rule replaces",
        id="a chain",
    ),
    pytest.param(
        MINIMAL.replace("connection", "archive", 1) + '[verify]\nafter_window = "full"\n',
        'verify.after_window: expected "none" for a channel that reads an archive',
        id="an archive cannot be verified",
    ),
    pytest.param(MINIMAL + "[apply]\ntask_retries = 3\n", "apply.task_retries: expected an integer 4..100", id="tries"),
    pytest.param(
        MINIMAL + "[apply]\nallow_nontransactional = 1\n",
        "apply.allow_nontransactional: expected true or false, got 1",
        id="boolean",
    ),
    pytest.param(MINIMAL + 'lanes = "x"\n', "target.lanes: unknown key", id="key in the wrong table"),
    pytest.param('lanes = "x"\n' + MINIMAL, "lanes: expected a table, got 'x'", id="no table"),
    pytest.param(
        'owner_link = "team"\n' + MINIMAL,
        "owner_link: expected a link of at most 500",
        id="link",
    ),
    pytest.param(MINIMAL + '[alert]\ncallback = "a.b"\n', "alert.lag_seconds: expected a number of", id="no seconds"),
    pytest.param(
        MINIMAL + '[alert]\nlag_seconds = 1\ncallback = "page"\n', "alert.callback: expected the dotted path", id="path"
    ),
    pytest.param(
        MINIMAL + '[window]\nschedule = "continuous"\n[alert]\nlag_seconds = 3600\n',
        "alert.lag_seconds: expected 0, or more than window.follow_seconds, 3,600",
        id="a deadline before the end of every run",
    ),
    pytest.param('tags = "x"\n' + MINIMAL, "tags: expected a list of texts of at most 100", id="tags"),
    pytest.param(f'tags = ["{101 * "x"}"]\n' + MINIMAL, "tags: expected a list of texts of at", id="a long tag"),
    pytest.param(f'owner = "{501 * "x"}"\n' + MINIMAL, "owner: expected text of at most 500", id="a long owner"),
    pytest.param(
        f'owner_link = "https://{501 * "x"}"\n' + MINIMAL,
        "owner_link: expected a link of at most 500",
        id="a long link",
    ),
    pytest.param('owner = " "\n' + MINIMAL, "owner: expected text of at most 500", id="blank"),
    pytest.param(MINIMAL + '[window]\nschedule = "hourly"\n', "window.schedule: expected a cron expression", id="cron"),
    pytest.param(
        MINIMAL + '[window]\ntimezone = "Mars/X"\n', "window.timezone: expected the name of a time", id="zone"
    ),
    pytest.param(
        MINIMAL + "[window]\nstart_date = 2026-01-01T00:00:00\n", "window.start_date: expected a date", id="date"
    ),
    pytest.param(
        MINIMAL + '[spark]\nconf = { "a" = 1 }\n',
        "spark.conf.a: expected text, got a value of the type int, which is not shown",
        id="spark.conf",
    ),
    pytest.param(
        '[source]\nconnection = "a"\n',
        f"target.connection: expected {CONNECTION.expected}, got nothing",
        id="no target",
    ),
    pytest.param(
        '[target]\nconnection = "a"\n', "source: expected either connection or archive, got neither", id="neither"
    ),
    pytest.param(
        '[source]\nconnection = "a"\narchive = "x"\n[target]\nconnection = "b"\n',
        "source: expected either connection or archive, got connection and archive",
        id="both",
    ),
    pytest.param("[source", "expected TOML: ", id="no TOML"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_an_error_names_file_key_expectation_and_finding(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "dags" / "channels" / "shop.toml"
    with pytest.raises(ConfigError, match="^" + re.escape(f"{file}: {message}")):
        channel(tmp_path, text)


@pytest.mark.parametrize("name", ["a b", "-a", "ü", "x" * 65])
def test_a_file_name_that_is_no_channel_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"the file's name is the channel's: expected up to 64 letters"):
        channel(tmp_path, MINIMAL, name)


def test_a_missing_file_is_an_error_that_lists_the_channels(tmp_path: Path) -> None:
    channel(tmp_path, MINIMAL)
    with pytest.raises(ConfigError, match="no channel 'x'; known: shop"):
        find_channel("x", tmp_path / "dags" / "channels")
    with pytest.raises(ConfigError, match=r"y\.toml: cannot be read: No such file"):
        load_channel(tmp_path / "y.toml")


@pytest.mark.parametrize("folder", ["dags/channels", "channels", "etc/binlane"])
def test_paths_begin_at_the_project_around_the_channels_folder_or_around_dags(tmp_path: Path, folder: str) -> None:
    file = tmp_path / folder / "shop.toml"
    file.parent.mkdir(parents=True)
    file.write_text(MINIMAL)
    project = tmp_path / "etc" if folder == "etc/binlane" else tmp_path
    read = load_channel(file, {})
    assert (read.shard_list_file, read.work.uri) == (
        project / "shard_list" / "shop.list",
        str(project / ".binlane" / "work"),
    )


def test_the_work_folder_comes_from_the_environment_unless_the_file_names_one(tmp_path: Path) -> None:
    outer = {"BINLANE_WORK": "/var/lib/work"}
    assert channel(tmp_path, MINIMAL, environment=outer).work.uri == "/var/lib/work"
    assert channel(tmp_path, MINIMAL + '[work]\nuri = "w"\n', environment=outer).work.uri == str(tmp_path / "w")


def test_the_source_sees_the_same_server_id_in_every_process_and_another_one_a_channel(tmp_path: Path) -> None:
    ids = [channel(tmp_path, MINIMAL, name).source.server_id for name in ("shop", "shop", "other")]
    assert ids == [2_551_374_043, 2_551_374_043, ids[2]]
    assert ids[2] != ids[0]


def test_a_run_of_windows_back_to_back_may_be_late_behind_its_end(tmp_path: Path) -> None:
    text = '[window]\nschedule = "continuous"\nfollow_seconds = 600\n[alert]\nlag_seconds = 601\n'
    assert channel(tmp_path, MINIMAL + text).alert.lag_seconds == 601


def test_no_schedule_means_runs_by_hand_only(tmp_path: Path) -> None:
    assert channel(tmp_path, MINIMAL + '[window]\nschedule = "none"\n').window.schedule is None


@pytest.mark.parametrize("one", declared_channels(ROOT / "dags" / "channels"), ids=lambda one: one.name)
def test_every_channel_of_the_project_is_valid(one: DeclaredChannel) -> None:
    assert load_channel(one, {}).name == one.name


def test_the_page_is_written_from_the_declarations() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert rendered(page) == page, "docs/configuration.md is not up to date: `make configuration` writes it"


def test_a_page_without_its_marks_is_not_written() -> None:
    with pytest.raises(ValueError, match="put them back around the part"):
        rendered("# Configuration")


@pytest.mark.parametrize(("name", "key"), all_keys().items(), ids=all_keys())
def test_a_default_is_one_of_the_values_its_key_takes(name: str, key: Key) -> None:
    """Only a value of the file is checked by its kind when a channel is read."""
    value = key.default.of("shop") if isinstance(key.default, PerChannel) else key.default
    if value is None or value is REQUIRED:
        return
    in_toml = {} if isinstance(key.kind, Table) else list(value) if isinstance(value, tuple) else value
    assert key.kind.read(Node({name: in_toml}, "shop.toml"), name) == value


def test_the_run_form_has_a_field_for_each_key_that_names_one() -> None:
    assert {name: key.form for name, key in all_keys().items() if key.form is not None} == {
        "lanes.count": "lanes",
        "blocks.transactions": "block_size",
        "verify.after_window": "verify",
        "spark.engine": "engine",
    }


def test_a_kind_of_statements_that_is_none_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    target = Schema(Flavor.MARIADB, "10.11.6-MariaDB")
    read = channel(tmp_path, MINIMAL + '[filter]\nallow_statements = ["SET GLOBAL"]\n')
    assert selection_of(read, target).allowed == ("SET GLOBAL",)
    assert selection_of(read, target).to_values()["allowed"] == ["SET GLOBAL"]
    assert Selection.of(selection_of(read, target).to_values()) == selection_of(read, target)
    wrong = channel(tmp_path, MINIMAL + '[filter]\nallow_statements = ["SET GLOBALS"]\n')
    with pytest.raises(ConfigError, match=r"filter\.allow_statements: expected kinds of .*SHUTDOWN.*got 'SET GLOBALS'"):
        selection_of(wrong, target)


@pytest.mark.parametrize(
    "text",
    [
        '[announce]\ncommand = "curl -H s3cret"\n',
        '[announce]\ncommand = ["curl", "", "s3cret"]\n',
        '[announce]\ncommand = { a = "s3cret" }\n',
        '[spark]\nconf = "s3cret"\n',
        '[spark.conf]\n"spark.a" = ["s3cret"]\n',
        '[spark.conf.nested]\n"spark.a" = "s3cret"\n',
        '[lanes]\ncount = "mysql://root:s3cret@h/"\n',
        '[window]\nschedule = "mysql://root:s3cret@h:3306/"\n',
    ],
)
def test_no_error_shows_a_value_that_may_be_a_secret(tmp_path: Path, text: str) -> None:
    file = tmp_path / "dags" / "channels" / "shop.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n' + text)
    with pytest.raises(ConfigError) as refused:
        load_channel(file, {})
    assert "s3cret" not in str(refused.value)


def test_what_a_verification_compares_is_in_the_digest_of_its_rules(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        return rules_digest(channel(tmp_path, MINIMAL + text))

    keys = [
        '[filter]\nexclude_databases = ["a"]\n',
        '[rename]\na = "b"\n',
        '[collations]\nutf8mb4_0900_ai_ci = "utf8mb4_unicode_ci"\n',
        '[apply]\nallow_unseen = ["a"]\n',
    ]
    assert len({digest(text) for text in ("", *keys)}) == 5
    assert digest("[apply]\nallow_unseen = []\n") == digest("[lanes]\ncount = 3\n") == digest("")
    assert digest('[apply]\nallow_unseen = ["b", "a"]\n') == digest('[apply]\nallow_unseen = ["a", "b"]\n')


DOTS = 40 * "."
NO_LEVELS = (
    f'a = "{DOTS}"',
    f"a = '{DOTS}'",
    f'a = "\\"{DOTS}"',
    f'a = """\n"{DOTS}"\n{DOTS}\\""" {DOTS}"""""',
    f"a = '''\n'{DOTS}'\n{DOTS}'''''",
    f'a = ""\nb = "{DOTS}"',
    f"a = ''\nb = '{DOTS}'",
    f"# it's {DOTS}",
    f'"{DOTS}" = 1',
    "a.b.c.d.e.f.g = 1\na.b.c.d.e.f.h = 1.5",
    "[a.b.c]\ne.f.g = [1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5]",
)


@pytest.mark.parametrize("text", NO_LEVELS)
def test_dots_that_are_no_levels_of_a_key_are_read_as_they_are(tmp_path: Path, text: str) -> None:
    (tmp_path / "shop.toml").write_text(text)
    assert Node.read(tmp_path / "shop.toml").value == tomllib.loads(text)


@pytest.mark.parametrize("before", ["", *(f"{text}\n" for text in NO_LEVELS)])
@pytest.mark.parametrize("key", ["z.b.c.d.e.f.g.h = 1", "[z.b.c.d.e.f.g.h]", "z = {'a' . b.c.d.e.f.g.\"h\" = 1}"])
def test_a_key_of_more_levels_than_tables_may_have_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, key: str
) -> None:
    """tomllib takes time with the square of the levels."""
    monkeypatch.setattr(tomllib, "loads", None)
    (tmp_path / "shop.toml").write_text(before + key)
    with pytest.raises(ConfigError, match="expected at most 8 tables and lists in each other"):
        Node.read(tmp_path / "shop.toml")
