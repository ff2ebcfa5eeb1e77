"""The command line finds the channels folder that Airflow's configuration names."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from binlane.cli import main
from binlane.cli.airflow_folder import IN_CHECKOUT, default_channels, distrusted

FILE: Final = IN_CHECKOUT / "shop.toml"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[binlane]\nchannels = /etc/binlane/channels\n", Path("/etc/binlane/channels")),
        ("[core]\na = %(b)s\n[binlane]\nchannels = ~/channels\n", Path("~/channels").expanduser()),
        ("[binlane]\nchannels =\n", IN_CHECKOUT),
        ("[core]\ndags_folder = /dags\n", IN_CHECKOUT),
        ("[core\nno configuration", IN_CHECKOUT),
    ],
)
def test_the_folder_of_airflow_s_file(tmp_path: Path, text: str, found: Path) -> None:
    (tmp_path / "airflow.cfg").write_text(text)

    assert default_channels({"AIRFLOW_HOME": str(tmp_path)}) == found
    assert default_channels({"AIRFLOW_CONFIG": str(tmp_path / "airflow.cfg"), "AIRFLOW_HOME": "/nowhere"}) == found


def test_a_variable_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_text("[binlane]\nchannels = /etc/binlane/channels\n")
    variables = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__BINLANE__CHANNELS": "/srv/channels"}

    assert default_channels(variables) == Path("/srv/channels")


def test_without_airflow_it_is_the_folder_of_a_checkout(tmp_path: Path) -> None:
    assert default_channels({"AIRFLOW_HOME": str(tmp_path)}) == IN_CHECKOUT


def test_outside_a_checkout_the_channels_are_those_of_the_dags_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = tmp_path / "site" / "dags"
    (dags / "channels").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "airflow.cfg").write_text(f"[core]\ndags_folder = {dags}\n")
    assert default_channels({"AIRFLOW_HOME": str(tmp_path)}) == dags / "channels"
    assert default_channels({"AIRFLOW__CORE__DAGS_FOLDER": str(dags)}) == dags / "channels"
    IN_CHECKOUT.mkdir(parents=True)
    assert default_channels({"AIRFLOW_HOME": str(tmp_path)}) == IN_CHECKOUT


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    IN_CHECKOUT.mkdir(parents=True)
    for folder in (IN_CHECKOUT, IN_CHECKOUT.parent):
        folder.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("folder", [Path(), IN_CHECKOUT.parent, IN_CHECKOUT])
def test_a_checkout_that_everybody_may_write_is_not_taken_by_itself(checkout: Path, folder: Path) -> None:
    assert distrusted() is None
    folder.chmod(0o777)
    assert f"found {(checkout / folder).resolve()}, which everybody may" in str(distrusted())
    # /tmp is such a folder
    folder.chmod(0o1777)
    assert (distrusted() is None) is (folder == Path())


@pytest.mark.parametrize("path", [Path(), IN_CHECKOUT.parent, IN_CHECKOUT, FILE])
@pytest.mark.parametrize(
    ("name", "members", "is_taken"),
    [("ann", (), True), ("ann", ("ann",), True), ("ann", ("ann", "bob"), False), ("staff", (), False)],
)
def test_a_group_of_others_is_trusted_no_more_than_they_are(
    checkout: Path, path: Path, name: str, members: tuple[str, ...], is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = SimpleNamespace(gr_name=name, gr_mem=list(members))
    account = SimpleNamespace(pw_name="ann")
    monkeypatch.setattr("binlane.cli.airflow_folder.grp", SimpleNamespace(getgrgid=lambda _: group))
    monkeypatch.setattr("binlane.cli.airflow_folder.pwd", SimpleNamespace(getpwuid=lambda _: account))
    FILE.touch(0o644)
    assert distrusted() is None
    path.chmod(0o775)
    said = distrusted()
    assert said is None if is_taken else f"found {(checkout / path).resolve()}, which the group {name} may" in str(said)


def test_a_group_without_a_name_is_one_of_others(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("binlane.cli.airflow_folder.grp", SimpleNamespace(getgrgid=unknown))
    IN_CHECKOUT.chmod(0o775)
    assert f"which the group {IN_CHECKOUT.stat().st_gid} may" in str(distrusted())


def test_a_channel_file_that_everybody_may_write_is_not_taken_by_itself(checkout: Path) -> None:
    FILE.touch()
    FILE.chmod(0o666)
    IN_CHECKOUT.joinpath("gone.toml").symlink_to("nowhere")
    assert f"found {checkout / FILE}, which everybody may write" in str(distrusted())
    FILE.chmod(0o644)
    assert distrusted() is None


@pytest.mark.parametrize("folder", [Path(), IN_CHECKOUT.parent, IN_CHECKOUT])
def test_a_checkout_of_another_account_is_not_taken_by_itself(
    checkout: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, own = Path.stat, os.geteuid()

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = [*real(path, follow_symlinks=follow_symlinks)]
        found[4] = 4_000_000 if path == folder else own
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", stat)
    assert f"found {(checkout / folder).resolve()}, which the account 4000000 may" in str(distrusted())
    # root's is everybody's, and a link into a folder of one's own is its owner's
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    assert (distrusted() is None) is (own == 0)


@pytest.mark.parametrize("command", [["config", "shop"], ["check", "shop"]])
def test_a_command_takes_such_a_folder_only_where_somebody_names_it(
    checkout: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BINLANE_CHANNELS", raising=False)
    IN_CHECKOUT.chmod(0o777)
    for named in (False, True):
        monkeypatch.setattr("sys.argv", ["binlane", *command, *(["--channels", str(IN_CHECKOUT)] if named else [])])
        with pytest.raises(SystemExit):
            main()
        told = "".join(capsys.readouterr())
        assert ("which everybody may" in " ".join(told.split())) is not named
        assert ("no channel 'shop'" in told) is named
