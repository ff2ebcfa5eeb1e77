"""A site that has installed binlane: the steps of docs/install.md, by the programs of its environment.

Nothing of the checkout is on its path. Servers are private ones; a channel copies the one onto the other.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.compare import Comparison, compare
from lab.programs import LabError
from lab.servers import private_server
from lab.traffic import run_traffic
from lab.wheel import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.servers import PrivateServer

DAG_FILE: Final = """\
from binlane.orchestration.airflow.replicate_dag import build_dags

globals().update(build_dags())
"""
WRONG_CHANNELS_FILE: Final = """\
from binlane.orchestration.airflow.replicate_dag import require_right_channels

require_right_channels()
"""
CHANNEL: Final = """\
[source]
connection = "shop_source"

[target]
connection = "shop_target"
"""
COMMAND_LINE: Final = (
    "binlane init shop --start oldest",
    "binlane plan shop",
    "binlane run shop",
    "binlane status shop",
    "binlane verify shop --full",
)
AIRFLOW: Final = (
    "airflow db migrate",
    "airflow providers get binlane",
    "airflow plugins",
    "airflow dags reserialize",
    "airflow dags list --columns dag_id,fileloc",
    "airflow dags list-import-errors",
    "binlane init shop --start oldest",
    "airflow dags test replicate_shop",
    "binlane verify shop --full",
)
"""The first one is for a new Airflow alone."""
_TRANSACTIONS: Final = 400


@dataclass(frozen=True, slots=True)
class Site:
    """A folder with a channel, an Airflow's home and the two servers' connections."""

    programs: Path
    folder: Path
    source: PrivateServer
    target: PrivateServer

    def environment(self) -> dict[str, str]:
        """What its programs run with: nothing of this process's Airflow, Python path or channels."""
        ours = ("AIRFLOW", "BINLANE", "PYTHON", "SPARK", "PYSPARK")
        outer = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        uris = {
            f"AIRFLOW_CONN_SHOP_{name}": f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/"
            for name, server in (("SOURCE", self.source), ("TARGET", self.target))
        }
        return {
            **outer,
            **uris,
            "PATH": f"{self.programs}{os.pathsep}{outer['PATH']}",
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__BINLANE__CHANNELS": str(self.channels),
            "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
            "BINLANE_CHANNELS": str(self.channels),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # tables of Airflow's commands are as wide as this
            "COLUMNS": "140",
        }

    @property
    def channels(self) -> Path:
        """The folder of the channel files."""
        return self.folder / "channels"

    def write(self) -> None:
        """The channel's file and the files in the DAGs folder."""
        dags = self.folder / "dags"
        files = {
            self.channels / "shop.toml": CHANNEL,
            dags / "binlane.py": DAG_FILE,
            dags / "wrong_channels.py": WRONG_CHANNELS_FILE,
        }
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def step(self, command: str) -> str:
        """One command of the page; its output. Raises LabError if it fails."""
        name, *arguments = command.split()
        if not (self.programs / name).exists():
            raise LabError(f"{command}: {self.programs} has no {name}")
        return run([str(self.programs / name), *arguments], cwd=self.folder, env=self.environment())

    def compared(self) -> Comparison:
        """Source and target, by the lab's own comparison."""
        return compare(self.source, self.target)


@contextmanager
def new_site(programs: Path, folder: Path) -> Iterator[Site]:
    """A site whose source has a log to apply, while this lasts."""
    with (
        private_server(folder / "source", name="source", durable=False) as source,
        private_server(folder / "target", name="target", durable=False) as target,
    ):
        site = Site(programs, folder / "site", source, target)
        site.write()
        run_traffic(source.connect, tenants=4, transactions=_TRANSACTIONS, threads=2)
        yield site
