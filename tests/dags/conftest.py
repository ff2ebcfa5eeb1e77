"""An AIRFLOW_HOME of its own for the tests of this folder: Airflow reads its environment when it is first imported."""

import atexit
import fcntl
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_HOME = tempfile.mkdtemp(prefix="binlane-airflow-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith("AIRFLOW")]:
    del os.environ[_name]
os.environ |= {
    "AIRFLOW_HOME": _HOME,
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME}/airflow.db",
    "AIRFLOW_CONN_BINLANE_DEMO_SOURCE": "mysql://reader:source-pw@127.0.0.1:3306/",
    "AIRFLOW_CONN_BINLANE_DEMO_TARGET": "mysql://writer:target-pw@127.0.0.1:3307/?ssl_mode=disabled",
}


@pytest.fixture(scope="session")
def metadata_database(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Airflow's own tables; `DAG.test` keeps its runs there. Of several workers one makes them, and the others take a
    copy: it is six seconds' work."""
    from airflow.utils.db import initdb

    if "PYTEST_XDIST_WORKER" not in os.environ:
        initdb()
        return
    own, common = Path(_HOME) / "airflow.db", tmp_path_factory.getbasetemp().parent / "airflow.db"
    with common.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_made = common.exists()
        if not is_made:
            initdb()
        source, target = (common, own) if is_made else (own, common)
        with closing(sqlite3.connect(source)) as made, closing(sqlite3.connect(target)) as copy:
            made.backup(copy)
