"""``binlane doctor`` asks a real Airflow for the connections: its metadata database, its secrets backend, its
environment."""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from lab.airflow import PrivateAirflow, new_airflow
from tests.integration.window.conftest import CHANNEL, PLUGINS, Channel, channel, run_on

__all__ = ["channel"]

_IDS: Final = ("source_server", "target_server")
WITHOUT: Final = "without.db"
"""A metadata database without connections."""
_FERNET: Final = "AIRFLOW__CORE__FERNET_KEY"
_KEYS: Final = tuple(base64.urlsafe_b64encode(32 * letter).decode() for letter in (b"a", b"b"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateAirflow]:
    """An Airflow of which only the metadata database is there: nothing runs."""
    airflow = new_airflow(tmp_path_factory.mktemp("airflow"), {}, {_FERNET: _KEYS[0]})
    airflow.run("db", "migrate")
    shutil.copy(airflow.home / "airflow.db", airflow.home / WITHOUT)
    yield airflow
    airflow.stop()


def variable(connection: str) -> str:
    return f"AIRFLOW_CONN_{connection.upper()}"


def typed(
    channel: Channel, site: PrivateAirflow, environment: Mapping[str, str], command: str, *options: str
) -> subprocess.CompletedProcess[str]:
    """A command of a shell that has no connection but those of ``environment``."""
    done = subprocess.run(
        [sys.executable, "-c", "from binlane.cli import program; program()", command, CHANNEL, *options],
        env={
            **site.environment(),
            "BINLANE_CHANNELS": str(channel.channels),
            "PYTHONPATH": str(PLUGINS),
            **environment,
        },
        cwd=channel.project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Pw-77" not in done.stdout + done.stderr
    assert channel.source.password not in done.stdout + done.stderr
    return done


def doctor(
    channel: Channel, site: PrivateAirflow, environment: Mapping[str, str], *options: str
) -> tuple[int, list[str]]:
    """Exit code and lines."""
    done = typed(channel, site, environment, "doctor", *options)
    # Airflow's own lines would be in the way of the report
    # a busy machine may need more than the seconds behind which a command says what it is doing
    assert [line for line in done.stderr.splitlines() if not line.startswith("... ")] == []
    return done.returncode, done.stdout.splitlines()


def kept_in_the_metadata_database(channel: Channel, site: PrivateAirflow) -> None:
    """Once for all tests: each command of Airflow costs seconds, and all have the same servers."""
    text = "{" + ", ".join(f'"{name}": "{channel.environment[variable(name)]}"' for name in _IDS) + "}"
    file = site.home / "connections.json"
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
        site.run("connections", "import", "--overwrite", str(file))


@pytest.mark.trial
def test_a_connection_of_the_metadata_database_is_taken_and_named(channel: Channel, site: PrivateAirflow) -> None:
    kept_in_the_metadata_database(channel, site)
    code, said = doctor(channel, site, {})
    assert code == 0, said
    for part in ("source", "target"):
        assert f"ok    {part}-airflow-connection: Airflow's metadata database" in said
        assert f"ok    {part}-connection" in said
    # no connection to Spark is there: the DAG needs it, the channel's start does not
    [spark] = [line for line in said if "spark-airflow-connection" in line]
    assert spark.startswith("note")
    assert "      airflow connections add spark_default --conn-uri 'spark://host:7077'" in said
    assert not any(line.startswith("note  airflow:") for line in said)


def test_this_shell_alone_is_looked_at_where_airflow_is_not_asked(channel: Channel, site: PrivateAirflow) -> None:
    code, said = doctor(channel, site, channel.environment, "--no-airflow")
    assert code == 0, said
    assert said[:2] == [
        "note  airflow: --no-airflow; only this shell's connections were looked at",
        "ok    source-airflow-connection: AIRFLOW_CONN_SOURCE_SERVER of this shell",
    ]
    nowhere = {"AIRFLOW_HOME": str(channel.project), "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": ""}
    code, said = doctor(channel, site, {**channel.environment, **nowhere})
    why = f"Airflow is not configured here: no {channel.project}/airflow.cfg"
    assert (code, said[0]) == (0, f"note  airflow: {why}; only this shell's connections were looked at")
    code, said = doctor(channel, site, {**channel.environment, **nowhere}, "--airflow")
    assert (code, said[0][:6]) == (1, "FAIL  ")


@pytest.mark.trial
def test_every_command_takes_from_airflow_what_the_shell_has_no_variable_for(
    channel: Channel, site: PrivateAirflow
) -> None:
    """A next step that a task's message names is typed on a worker, whose connections are in the metadata database."""
    kept_in_the_metadata_database(channel, site)
    run_on(channel.source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    done = typed(channel, site, {}, "run", "--engine", "local")
    assert done.returncode == 0, done.stderr
    assert channel.status.channel.windows == 1
    channel.assert_equal()
    # what the shell has, it takes
    done = typed(channel, site, {variable("target_server"): "mysql://nobody:x@127.0.0.1:1/"}, "status")
    assert "target_server (nobody@127.0.0.1:1)" in done.stderr
    nowhere = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "", "AIRFLOW_HOME": str(channel.project)}
    done = typed(channel, site, nowhere, "status")
    assert "expected the environment variable AIRFLOW_CONN_" in done.stderr
    lacking = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{site.home / WITHOUT}"}
    done = typed(channel, site, lacking, "status")
    assert (done.returncode, "in this shell, or it in Airflow, found neither; set it to" in done.stderr) == (2, True)
    done = typed(channel, site, {_FERNET: _KEYS[1]}, "status")
    assert (done.returncode, "stored with another Fernet key" in done.stderr) == (2, True)


@pytest.mark.trial
def test_two_stores_with_other_servers_are_named_and_the_first_is_taken(channel: Channel, site: PrivateAirflow) -> None:
    kept_in_the_metadata_database(channel, site)
    there = channel.environment[variable("source_server")]
    other = there.replace("127.0.0.1", "localhost")
    assert other != there
    target = channel.environment[variable("target_server")]
    code, said = doctor(channel, site, {variable("source_server"): other, variable("target_server"): target})
    assert code == 0, said
    shell = "AIRFLOW_CONN_SOURCE_SERVER of this shell"
    assert f"ok    source-airflow-connection: {shell} and Airflow's metadata database" in said
    [note] = [line for line in said if line.startswith("note  source-airflow-connection")]
    assert note.startswith(
        f"note  source-airflow-connection: source: Airflow's metadata database: expected what {shell}"
    )
    assert "@localhost:" in note.partition(", found ")[0]
    assert "@127.0.0.1:" in note.partition(", found ")[2]


def test_a_connection_that_airflow_lacks_is_named_with_the_command(channel: Channel, site: PrivateAirflow) -> None:
    here = {variable("source_server"): channel.environment[variable("source_server")]}
    here["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{site.home / WITHOUT}"
    code, said = doctor(channel, site, here)
    assert code == 1
    assert (
        "FAIL  target-airflow-connection: target: expected a connection 'target_server', found none in Airflow" in said
    )
    assert "      airflow connections add target_server --conn-uri 'mysql://user:password@host:3306/'" in said
    services = "AIRFLOW_CONN_SOURCE_SERVER of this shell; Airflow's services need this variable, too"
    assert f"ok    source-airflow-connection: {services}" in said


@pytest.mark.trial
def test_stores_that_cannot_be_asked_are_named(channel: Channel, site: PrivateAirflow) -> None:
    kept_in_the_metadata_database(channel, site)
    code, said = doctor(channel, site, {_FERNET: _KEYS[1]})
    assert code == 1
    [line, _] = [line for line in said if line.startswith("FAIL")]
    assert (
        "found none in Airflow; Airflow's metadata database: InvalidToken: it was stored with another Fernet key"
        in line
    )
    empty = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{channel.project}/new.db"}
    code, said = doctor(channel, site, empty)
    assert code == 1
    assert "no such table: connection" in said[0]
    backend = {"AIRFLOW__SECRETS__BACKEND": "no.such.Backend"}
    code, said = doctor(channel, site, {**channel.environment, **backend})
    assert (code, said[0].startswith("FAIL  airflow: Airflow cannot be asked")) == (1, True)


@pytest.mark.trial
def test_a_secrets_backend_is_asked_first(channel: Channel, site: PrivateAirflow, tmp_path: Path) -> None:
    kept_in_the_metadata_database(channel, site)
    held = tmp_path / "held.env"
    held.write_text(f"source_server={channel.environment[variable('target_server')]}\n")
    backend = {
        "AIRFLOW__SECRETS__BACKEND": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
        "AIRFLOW__SECRETS__BACKEND_KWARGS": f'{{"connections_file_path": "{held}"}}',
    }
    _, said = doctor(channel, site, backend)
    [found] = [line for line in said if line.startswith("ok    source-airflow-connection")]
    store = "Airflow's secrets backend LocalFilesystemBackend"
    assert found == f"ok    source-airflow-connection: {store} and Airflow's metadata database"
    # the target's server is asked as the source: two connections of one server
    assert any(line.startswith("note  source-airflow-connection: source: Airflow's metadata database") for line in said)
    held.write_text("spark_default=spark://host:7077\nsource_server=postgres://u:Pw-77@h/\n")
    code, said = doctor(channel, site, backend)
    assert code == 1
    assert (
        "FAIL  source-airflow-connection: source: expected a connection, found connection 'source_server': expected"
        in said[0]
    )
    assert f"ok    spark-airflow-connection: {store}" in said
