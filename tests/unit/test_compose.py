"""docker-compose.yml names nothing that does not exist: paths, variables, ports, versions, connections, commands.

``make compose-test`` starts it.
"""

import json
import re
import shutil
import subprocess
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

from binlane import __version__
from binlane.config import load_channel
from binlane.connections import environment_resolver, resolve_endpoints
from lab.compose.engine import images

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
OURS = [name for name, service in SERVICES.items() if "build" in service]
CHANNEL = ROOT / "deploy" / "channels" / "fleet.toml"


_spec = spec_from_file_location("entry", ROOT / "deploy" / "image" / "entry.py")
assert _spec is not None
assert _spec.loader is not None
ENTRY: Any = module_from_spec(_spec)
_spec.loader.exec_module(ENTRY)

HOSTILE = 'it\'s "a\\b" @/:%#p \u00e9'
"""A password with what a URL, JSON and SQL escape."""


def environment(service: str) -> dict[str, str]:
    return {name: str(value) for name, value in SERVICES[service].get("environment", {}).items()}


def mounts(service: str) -> list[tuple[str, str]]:
    return [(str(mount).split(":")[0], str(mount).split(":")[1]) for mount in SERVICES[service].get("volumes", ())]


@pytest.mark.parametrize("service", SERVICES)
def test_mounted_paths_exist(service: str) -> None:
    for source, _ in mounts(service):
        if source.startswith("."):
            assert (ROOT / source).exists(), source
        else:
            assert source in COMPOSE["volumes"], f"{source}: no such volume"


def test_every_volume_is_used() -> None:
    assert set(COMPOSE["volumes"]) == {name for service in SERVICES for name, _ in mounts(service) if name[0] != "."}


def test_folders_that_the_image_copies_exist() -> None:
    copied = [name for line in re.findall(r"^COPY ([^-].+)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]]
    assert copied
    let_through = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {f"!{name.split('/')[0]}" for name in copied} <= set(let_through)
    for name in copied:
        assert (ROOT / name).exists(), name


def test_the_image_is_tagged_with_the_projects_version() -> None:
    assert {SERVICES[name]["image"] for name in OURS} == {f"binlane:{__version__}"}


def test_the_images_python_is_one_that_the_project_allows() -> None:
    (found,) = re.findall(r"^ARG PYTHON_IMAGE=python:3\.(\d+)\.", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"$PYTHON_IMAGE"}
    assert set(re.findall(r"/python3\.(\d+)/", DOCKERFILE)) == {found}
    low, high = re.findall(
        r"3\.(\d+)", tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    )
    assert int(low) <= int(found) < int(high)


def test_the_servers_version_is_one_that_was_tried() -> None:
    [series] = re.findall(r"mysql:(\d+\.\d+)\.", SERVICES["source"]["image"])
    assert SERVICES["target"]["image"] == SERVICES["source"]["image"]
    assert f"MySQL {series}" in (ROOT / "docs" / "conformance.md").read_text("utf-8")


def test_every_image_of_others_has_a_version_and_a_digest_and_can_be_another_one() -> None:
    named = {service["image"] for service in SERVICES.values() if "build" not in service}
    assert named == {f"${{{variable}:-{name}}}" for variable, name in images().items() if variable != "PYTHON_IMAGE"}
    assert images().keys() == {"MYSQL_IMAGE", "POSTGRES_IMAGE", "PYTHON_IMAGE"}
    for name in images().values():
        assert re.fullmatch(r"[a-z]+:\d+(\.\d+)+(-[a-z]+)*@sha256:[0-9a-f]{64}", name), name


def test_every_variable_that_must_be_set_is_named_at_the_top() -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", TEXT))
    (told,) = re.findall(r"for name in ([A-Z_ ]+); do", TEXT.split("x-binlane")[0])
    assert asked == set(told.split())


def test_no_secret_is_written_into_the_file() -> None:
    for service in SERVICES:
        for name, value in environment(service).items():
            if re.search("PASSWORD|SECRET", name) and not name.endswith("_FILE"):
                assert re.fullmatch(r"\$\{[A-Z_]+:\?\}", value), f"{service}: {name}"


@pytest.mark.parametrize("service", [name for name in SERVICES if name != "init" and name != "spark-worker"])
def test_services_that_others_wait_for_say_when_they_are_well(service: str) -> None:
    assert SERVICES[service]["healthcheck"]["test"]


def test_services_wait_for_services_that_exist() -> None:
    for service in SERVICES.values():
        for name, wait in service.get("depends_on", {}).items():
            ready = "healthcheck" in SERVICES[name]
            assert wait["condition"] == ("service_healthy" if ready else "service_completed_successfully")


def test_the_channels_connections_are_in_the_environment(tmp_path: Path) -> None:
    channel = load_channel(CHANNEL)
    given = environment("scheduler")
    ENTRY.hand_over(given, tmp_path)
    endpoints = resolve_endpoints(channel, environment_resolver(given))
    assert endpoints.source is not None
    assert {endpoints.source.host, endpoints.target.host} <= set(SERVICES)
    assert channel.spark.connection == "binlane_spark"
    assert f"AIRFLOW_CONN_{channel.spark.connection.upper()}" in given
    assert channel.spark.conf["spark.driver.host"] == SERVICES["scheduler"]["hostname"]


def test_a_service_has_no_secret_that_it_does_not_need() -> None:
    secrets = {
        name: {key for key, value in environment(name).items() if re.fullmatch(r"\$\{[A-Z_]+:\?\}", value)}
        for name in SERVICES
    }
    servers = {"SOURCE_PASSWORD", "TARGET_PASSWORD"}
    airflow = {"POSTGRES_PASSWORD"}
    jwt = {"AIRFLOW__API_AUTH__JWT_SECRET"}
    assert secrets == {
        "source": {"MYSQL_ROOT_PASSWORD", "BINLANE_PASSWORD"},
        "target": {"MYSQL_ROOT_PASSWORD", "BINLANE_PASSWORD"},
        "spark-master": {"SPARK_SECRET"},
        "spark-worker": {"SPARK_SECRET"},
        "postgres": airflow,
        "init": airflow | {"ADMIN_PASSWORD"},
        "dag-processor": airflow,
        "apiserver": airflow | servers | jwt,
        "scheduler": airflow | servers | jwt | {"SPARK_SECRET"},
    }


def test_services_meet_only_on_the_networks_that_they_need() -> None:
    assert {name: set(service["networks"]) for name, service in SERVICES.items()} == {
        "source": {"servers"},
        "target": {"servers"},
        "spark-master": {"spark"},
        "spark-worker": {"spark"},
        "postgres": {"airflow"},
        "init": {"airflow"},
        "dag-processor": {"airflow"},
        "apiserver": {"airflow", "servers"},
        "scheduler": {"airflow", "servers", "spark"},
    }


def test_secrets_are_escaped_where_programs_read_them_and_stay_in_no_environment(tmp_path: Path) -> None:
    passwords = tmp_path / "passwords.json"
    given = dict.fromkeys(("POSTGRES_PASSWORD", "SOURCE_PASSWORD", "TARGET_PASSWORD", "ADMIN_PASSWORD"), HOSTILE)
    given |= {"SPARK_SECRET": HOSTILE, ENTRY.PASSWORDS_FILE: str(passwords), "OTHER": "kept"}

    ENTRY.hand_over(given, tmp_path)

    database = make_url(given.pop("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"))
    assert (database.host, database.password) == ("postgres", HOSTILE)
    for server in ("source", "target"):
        resolved = environment_resolver({"AIRFLOW_CONN_X": given.pop(f"AIRFLOW_CONN_FLEET_{server.upper()}")})("x")
        assert (resolved.host, resolved.password) == (server, HOSTILE)
    assert given == {ENTRY.PASSWORDS_FILE: str(passwords), "OTHER": "kept"}
    assert json.loads(passwords.read_text("utf-8")) == {"admin": HOSTILE}
    defaults = tmp_path / "spark-defaults.conf"
    assert "spark.authenticate.secret=" + HOSTILE.replace("\\", "\\\\") in defaults.read_text("utf-8").splitlines()
    assert {each.stat().st_mode & 0o777 for each in (passwords, defaults)} == {0o600}


def test_the_mysql_image_s_script_escapes_the_account_s_password() -> None:
    script = f'source {ROOT}/deploy/mysql/account.sh; literal "$1"'
    said = subprocess.run(["bash", "-c", script, "bash", HOSTILE], capture_output=True, text=True, check=True).stdout
    assert said == "'" + HOSTILE.replace("\\", "\\\\").replace("'", "''") + "'"


def test_hosts_and_ports_in_the_environment_are_those_of_services() -> None:
    addresses = [
        (host, port)
        for service in OURS
        for value in map(str, SERVICES[service].get("environment", {}).values())
        for host, port in re.findall(r"(?:@|://)([a-z][a-z-]+):(\d+)", value)
    ]
    listening = {"apiserver": "8080", "source": "3306", "target": "3306"}
    assert addresses
    assert all(listening[host] == port for host, port in addresses)
    assert "--port 8080" in SERVICES["apiserver"]["command"]
    assert SERVICES["apiserver"]["ports"] == ["127.0.0.1:${BOARD_PORT:-8080}:8080"]


def test_the_worker_calls_the_master_where_it_listens() -> None:
    assert "--host spark-master --port 7077" in SERVICES["spark-master"]["command"]
    assert SERVICES["spark-worker"]["command"].endswith("--work-dir /tmp/spark spark://spark-master:7077")
    assert '"host": "spark://spark-master", "port": 7077' in environment("scheduler")["AIRFLOW_CONN_BINLANE_SPARK"]


def test_compose_itself_takes_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    command = next(
        (
            [*words, "--file", str(ROOT / "docker-compose.yml"), "config", "--quiet"]
            for words in (["docker", "compose"], ["docker-compose"])
            if shutil.which(words[0])
            and subprocess.run([*words, "version"], capture_output=True, check=False).returncode == 0
        ),
        None,
    )
    if command is None:
        pytest.skip("no Docker Compose to check with: apt-get install docker.io docker-compose")
    for name in re.findall(r"\$\{([A-Z_]+):\?", TEXT):
        monkeypatch.setenv(name, "secret")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
