"""A restore over a database that is there: one of the two is whole under the name at any time, the other is kept."""

from __future__ import annotations

from typing import Any, Final

import pytest

from binlane.model import Flavor
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies.restore_plan import RestoreRequest, plan_restore
from binlane.restore import replacement
from binlane.restore.final_names import moved
from tests.chaos.proxy import Act, proxy
from tests.integration.restore.scene import DATABASE, Scene, answer, contents, scene_of
from tests.integration.window.conftest import Channel, ChannelOf, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]

FORMER: Final = (
    "CREATE DATABASE back CHARACTER SET latin1",
    "USE back",
    "CREATE TABLE a (id INT PRIMARY KEY, former INT) ENGINE = InnoDB",
    "CREATE TABLE child (id INT PRIMARY KEY, a_id INT, CONSTRAINT c_ibfk_1 FOREIGN KEY (a_id) REFERENCES a (id))",
    "INSERT INTO a VALUES (1, 1), (2, 2)",
    "INSERT INTO child VALUES (1, 1)",
    "CREATE VIEW w AS SELECT former FROM a",
    "CREATE VIEW only_former AS SELECT id FROM back.a",
    "CREATE TRIGGER tr BEFORE INSERT ON a FOR EACH ROW SET NEW.former = 9",
    "CREATE TRIGGER other BEFORE DELETE ON child FOR EACH ROW SET @x = 1",
    "CREATE PROCEDURE p() SELECT 'former'",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SET @y = 1",
)
NUMBERED: Final = (
    "CREATE SEQUENCE `s` START WITH 5",
    "CREATE TABLE `numbered` (`id` bigint DEFAULT nextval(`s`) PRIMARY KEY, `v` int)",
)


def add_numbered(scene: Scene) -> bytes:
    """A table that counts by a sequence, in the dump; the dump without it."""
    file, behind = scene.dump("one.sql"), b"DROP TABLE IF EXISTS `a`;\n"
    without = file.read_bytes()
    # dumps have the database's name there
    made = "".join(f"{each};\n" for each in NUMBERED).replace("(`s`)", f"(`{DATABASE}`.`s`)").encode()
    file.write_bytes(without.replace(behind, made + behind))
    return without


def drop_numbered(scene: Scene, database: str) -> None:
    """The table takes rows, and counts in its own database."""
    target = scene.channel.target
    run_on(target, f"INSERT INTO {database}.numbered (v) VALUES (1)", log=False)
    [(_, shown)] = target.query(f"SHOW CREATE TABLE {database}.numbered")
    assert f"DEFAULT nextval(`{database}`.`s`)" in shown
    run_on(target, f"DROP TABLE {database}.numbered", f"DROP SEQUENCE {database}.s", log=False)


def kept(scene: Scene) -> dict[str, object]:
    found = contents(scene.channel.target, "back_replaced")
    # kept definitions name their database
    return {name: str(value).replace("back_replaced", "back") for name, value in found.items()}


def former_of(scene: Scene) -> dict[str, object]:
    """What is there before the restore."""
    run_on(scene.channel.target, *FORMER, log=False)
    return {name: str(value) for name, value in contents(scene.channel.target, "back").items()}


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_database_is_replaced_and_the_former_one_is_kept(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value))
    target, former = scene.channel.target, former_of(scene)
    events = "SELECT status FROM information_schema.events WHERE event_schema = %s"
    assert scene.restore("--replace", "--json", base="one.sql") == 0
    assert answer(capsys)["replaces"] == {"back": "back_replaced"}
    assert scene.databases() == {"back"}
    with pytest.MonkeyPatch.context() as patch:
        # RENAME TABLE fails behind the DROP of triggers and events
        patch.setattr(replacement, "moved", lambda each, new: f"{moved(each, new)}, back.gone TO {new}.gone")
        assert scene.restore("r1", "--replace", "--yes", base="one.sql") != 0
        assert "gone" in capsys.readouterr().err
    assert {name: str(value) for name, value in contents(target, "back").items()} == former
    assert target.query(events, ("back",)) == [("ENABLED",)]
    file = scene.channel.channels.parent / "restores" / "r1.toml"
    file.write_text(file.read_text() + "\n[apply]\nlock_wait_timeout = 1\n")
    with target.connect() as report, report.cursor() as cursor:
        # a long report: it is waited for in front of the DROPs
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM back.child")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replacement, "drop", None)
            assert scene.channel.cli("restore", "--continue", "r1") != 0
        assert "Lock wait timeout exceeded" in capsys.readouterr().err
    assert {name: str(value) for name, value in contents(target, "back").items()} == former
    assert scene.channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    said = " ".join(capsys.readouterr().out.split())
    assert "what was there as back is kept as back_replaced" in said
    assert "`binlane restore --drop-replaced r1` drops it" in said
    assert contents(target, "back") == scene.expected
    assert kept(scene) == former
    defaults = "SELECT default_character_set_name FROM information_schema.schemata WHERE schema_name = %s"
    assert target.query(defaults, ("back_replaced",)) == [("latin1",)]
    assert target.query(defaults, ("back",)) != [("latin1",)]
    assert target.query(events, ("back_replaced",)) != [("ENABLED",)]

    # the second one keeps the first under another name
    run_on(target, "DELETE FROM back.a")
    assert scene.restore("r2", "--replace", "--yes", base="one.sql") != 0
    assert "expected no other restore of this name, found r1" in capsys.readouterr().err
    assert scene.channel.cli("restore", "--drop", "r1") == 0
    assert "so does what they have replaced: back_replaced" in capsys.readouterr().out
    assert scene.restore("r2", "--replace", "--yes", base="one.sql") == 0, capsys.readouterr().err
    assert contents(target, "back") == scene.expected
    assert kept(scene) == former
    assert target.query("SELECT COUNT(*) FROM back_replaced_2.a") == [(0,)]
    assert scene.channel.cli("restore", "--drop-replaced", "r2") == 0
    assert scene.databases() == {"back", "back_replaced"}
    # what somebody else makes of that name is none of the restore's
    run_on(target, "CREATE DATABASE back_replaced_2", log=False)
    capsys.readouterr()
    assert scene.channel.cli("restore", "--drop-replaced", "r2") != 0
    assert "expected one that has replaced a database" in capsys.readouterr().err
    assert scene.channel.cli("restore", "--continue", "r2") == 0
    assert "is kept as" not in capsys.readouterr().out
    assert scene.channel.cli("restore", "--drop", "r2") == 0
    assert scene.databases() == {"back", "back_replaced", "back_replaced_2"}


@pytest.mark.parametrize("flavor", list(Flavor))
def test_the_events_that_ran_are_named_and_no_others(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    idle = "CREATE EVENT {} ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM a WHERE id < 0"
    scene = scene_of(channel_of(flavor.value, flavor.value), also=(idle.format("idle"),))
    target = scene.channel.target
    former_of(scene)
    run_on(target, "USE back", idle.format("former_idle"), log=False)
    assert scene.restore("--replace", "--json", base="one.sql") == 0
    assert answer(capsys)["events"].startswith("back.e: enabled there; ")
    assert scene.restore("--replace", base="one.sql") == 0
    assert "events" in capsys.readouterr().out.split("digest")[0]
    with pytest.MonkeyPatch.context() as patch:
        # killed when the former events are gone: the next attempt makes them again
        patch.setattr(replacement, "give_back", lambda *_: None)
        patch.setattr(replacement, "moved", lambda each, new: f"{moved(each, new)}, back.gone TO {new}.gone")
        assert scene.restore("r1", "--replace", "--yes", base="one.sql") != 0
    events = "SELECT event_name, status FROM information_schema.events WHERE event_schema = %s ORDER BY 1"
    assert target.query(events, ("back",)) == []
    capsys.readouterr()
    assert scene.channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    said = " ".join(capsys.readouterr().out.split())
    enable = f"ALTER DEFINER = '{scene.source.user}'@'%' EVENT `back`.`e` ENABLE"
    assert f"event back.e, which an attempt had dropped, is there again, disabled: {enable} " in said
    assert f"run again behind: {enable}; one that was disabled there stays so" in said
    assert "events that ran in the former back, and are disabled in back_replaced: back_replaced.e what" in said
    assert "idle" not in said
    stopped, off = ("e", target.query(events, ("back",))[0][1]), "DISABLED"
    assert stopped[1] in ("SLAVESIDE_DISABLED", "REPLICA_SIDE_DISABLED")
    assert target.query(events, ("back",)) == [stopped, ("idle", off)]
    assert target.query(events, ("back_replaced",)) == [stopped, ("former_idle", off)]
    run_on(target, enable, log=False)
    assert target.query(events, ("back",)) == [("e", "ENABLED"), ("idle", off)]
    assert scene.channel.cli("restore", "--continue", "r1", "--json") == 0
    assert enable not in " ".join(answer(capsys)["notes"])


@pytest.mark.parametrize("flavor", list(Flavor))
def test_grants_on_single_routines_are_named_before_and_behind_the_change_of_places(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value))
    target = scene.channel.target
    former_of(scene)
    of_f = "GRANT EXECUTE ON FUNCTION `back`.`f` TO `caller`@`%` WITH GRANT OPTION"
    of_p = "GRANT EXECUTE, ALTER ROUTINE ON PROCEDURE `back`.`p` TO `caller`@`%`"
    run_on(target, "USE back", "CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x",
           "DROP USER IF EXISTS caller", "CREATE USER caller", of_f, of_p,
           "GRANT SELECT ON back.a TO caller", log=False)  # fmt: skip
    assert scene.restore("--replace", "--json", base="one.sql") == 0
    grants = answer(capsys)["grants"]
    assert grants.startswith("2 grants on single routines: they go with the former routines")
    assert of_f in grants
    assert of_p in grants
    assert scene.restore("--replace", base="one.sql") == 0
    assert "single routines" in " ".join(capsys.readouterr().out.split())
    changes = replacement.change_places

    def killed(*given: Any) -> Any:
        changes(*given)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restoring, "change_places", killed)
        assert scene.restore("r1", "--replace", "--yes", base="one.sql") != 0
    run_on(target, "FLUSH PRIVILEGES", log=False)
    left = [text for (text,) in target.query("SHOW GRANTS FOR caller")]
    assert not [text for text in left if "EXECUTE" in text], "what is believed of DROP"
    assert [text for text in left if "SELECT ON `back`.`a`" in text]
    capsys.readouterr()
    assert scene.channel.cli("restore", "--continue", "r1", "--json") == 0
    notes = answer(capsys)["notes"]
    assert grants in notes
    run_on(target, of_f, log=False)
    with target.connect(user="caller", password="") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT back.f(1)")
        assert cursor.fetchall() == ((2,),), "the restored one"
    run_on(target, "DROP USER caller", log=False)


def test_kinds_of_programs_that_the_restored_database_lacks_are_named(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel, ("untriggered.sql",))
    former_of(scene)
    assert scene.restore("r1", "--replace", "--yes", base="untriggered.sql") == 0, capsys.readouterr().err
    said = " ".join(capsys.readouterr().out.split())
    lost = "back: what was there has 1 procedure, 2 triggers, and what is restored has none of that kind: unless "
    assert said.count(lost) == 2
    assert said.index(lost) < said.index("restore r1: complete") < said.rindex(lost)
    assert "their definitions are kept in back_replaced" in said
    assert "events, and what is restored" not in said


def test_what_cannot_be_replaced_is_refused_by_name(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    scene, target = scene_of(channel), channel.target
    former_of(scene)
    cases = {
        "a foreign key from elsewhere": (
            ("CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.t (id INT, FOREIGN KEY (id) REFERENCES back.a (id))"),
            ("DROP DATABASE elsewhere",),
            "target: table elsewhere.t: expected no foreign key into back, which is replaced, found",
        ),
        "a channel that writes it": (
            (f"INSERT INTO binlane.`databases` VALUES ('{channel.status.channel.name}', 'back', 1, 1, 1, '[]')",),
            ("DELETE FROM binlane.`databases`",),
            "target: database back: expected no channel that writes it, found channel orders",
        ),
        "a routine that names its database in its body": (
            ("CREATE PROCEDURE back.named() SELECT * FROM back.a",),
            ("DROP PROCEDURE back.named",),
            "drop the object from the target, or give another name (--as)",
        ),
    }
    for case, (made, undone, said) in cases.items():
        run_on(target, *made, log=False)
        assert scene.restore("--replace", "--yes", base="one.sql") != 0, case
        assert said in capsys.readouterr().err, case
        run_on(target, *undone, log=False)
        assert scene.databases() == {"back"}
    assert scene.restore("--replace", "--yes", "--table", "a", base="one.sql") != 0
    assert "--table a, --replace: expected one of the two" in capsys.readouterr().err
    run_on(target, "CREATE DATABASE back_empty", log=False)
    assert scene.restore("--replace", "--yes", "--as", "back_empty", base="one.sql") != 0
    assert "target: database back_empty: expected tables in a database that is replaced" in capsys.readouterr().err
    run_on(target, "DROP DATABASE back_empty", log=False)
    # nothing is there that could be replaced
    assert scene.restore("r1", "--replace", "--yes", "--as", "back_new", base="one.sql") == 0
    assert channel.cli("restore", "--drop-replaced", "r1") != 0
    assert "expected one that has replaced a database" in capsys.readouterr().err
    assert contents(target, "back_new") == scene.expected
    assert DATABASE not in scene.databases()


def test_what_is_made_between_a_kill_and_the_next_attempt_is_kept(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, target = scene_of(channel), channel.target
    former_of(scene)
    # a server stores the default of a sequence with its database
    run_on(target, "USE back", *NUMBERED, log=False)
    without = add_numbered(scene)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restoring, "_to_the_end", lambda *_, **__: "killed")

        def planned(request: RestoreRequest, *rest: Any) -> Any:
            found = plan_restore(request, *rest)
            if request.name == "second":
                assert scene.restore("first", "--replace", "--yes", base="one.sql") == 0
            return found

        patch.setattr(restoring, "plan_restore", planned)
        assert scene.restore("second", "--replace", "--yes", base="one.sql") != 0
        assert "expected no other restore of this name, found first" in capsys.readouterr().err
        # nothing of its names is there yet
        for name in ("back_unfinished", "back_replaced"):
            assert scene.restore("third", "--as", name, "--yes", base="one.sql") != 0
            said = capsys.readouterr().err
            assert f"target: database {name}: expected no other restore of this name, found first" in said
    with proxy(target.host, target.port) as cut:
        channel.connect("target_server", target, port=cut.port)
        cut.once(b"RENAME TABLE", Act.CUT_BEFORE)
        assert channel.cli("restore", "--continue", "first") != 0
        assert cut.struck == 1
    channel.connect("target_server", target)
    run_on(target, "USE back", "CREATE PROCEDURE since() SELECT 2", "DROP PROCEDURE p",
           "CREATE PROCEDURE p() SELECT 'changed'", log=False)  # fmt: skip
    elsewhere = "CREATE TABLE elsewhere.t (id INT, CONSTRAINT fk FOREIGN KEY (id) REFERENCES back.a (id))"
    run_on(target, "CREATE DATABASE elsewhere", elsewhere, log=False)
    assert channel.cli("restore", "--continue", "first") != 0
    # its names are fixed
    said = capsys.readouterr().err
    assert "and add it again behind the restore, then `binlane restore --continue first`\n" in said
    assert "--as" not in said
    run_on(target, "ALTER TABLE elsewhere.t DROP FOREIGN KEY fk", log=False)
    # a database of the kept name is somebody else's until the tables get there
    run_on(target, "CREATE TABLE back_replaced.theirs (id INT)", "CREATE PROCEDURE back_replaced.p() SELECT 3",
           log=False)  # fmt: skip
    live = {name: str(value) for name, value in contents(target, "back").items() if name != "triggers"}
    assert channel.cli("restore", "--continue", "first") != 0
    said = capsys.readouterr().err
    assert "database back_replaced: expected nothing in it" in said
    assert (
        "the restored tables (s, a, c, late, numbered) take its place, found procedure p, table theirs; nothing has"
        in said
    )
    assert {name: str(value) for name, value in contents(target, "back").items() if name != "triggers"} == live
    assert target.query("SELECT routine_definition FROM information_schema.routines WHERE routine_schema = "
                        "'back_replaced'") == [("SELECT 3",)]  # fmt: skip
    run_on(target, "DROP DATABASE back_replaced", log=False)
    assert channel.cli("restore", "--continue", "first") == 0, capsys.readouterr().err
    for database in ("back", "back_replaced"):
        drop_numbered(scene, database)
    assert contents(target, "back") == scene.expected
    scene.dump("one.sql").write_bytes(without)
    found = kept(scene)
    assert "since" in str(found["routines"])
    assert "changed" in str(found["routines"])
    assert [name for name, *_ in contents(target, "back_replaced")["triggers"]] == ["other", "tr"]

    # a restore that was killed there and is given up leaves what was there as it was
    assert channel.cli("restore", "--drop", "first") == 0
    with proxy(target.host, target.port) as cut:
        channel.connect("target_server", target, port=cut.port)
        cut.once(b"RENAME TABLE", Act.CUT_BEFORE)
        assert scene.restore("given_up", "--replace", "--yes", base="one.sql") != 0
        assert cut.struck == 1
    channel.connect("target_server", target)
    assert contents(target, "back")["triggers"] == []
    assert channel.cli("restore", "--drop", "given_up") == 0, capsys.readouterr().err
    assert "event back.e, which an attempt had dropped, is there again, disabled" in capsys.readouterr().out
    assert contents(target, "back") == scene.expected


def test_a_name_that_is_taken_behind_the_plan_has_a_way_out(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, target = scene_of(channel), channel.target
    add_numbered(scene)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restoring, "_to_the_end", lambda *_, **__: "killed")
        assert scene.restore("first", "--yes", "--as", "back", base="one.sql") == 0
    run_on(target, "CREATE DATABASE back", log=False)
    assert channel.cli("restore", "--continue", "first") != 0
    said = capsys.readouterr().err
    assert "drop or rename it, then `binlane restore --continue first`; or `binlane restore --drop first`" in said
    assert "--as" not in said
    run_on(target, "DROP DATABASE back", log=False)
    assert channel.cli("restore", "--continue", "first") == 0, capsys.readouterr().err
    drop_numbered(scene, "back")
    assert contents(target, "back") == scene.expected
