"""An AIRFLOW_HOME of its own for the tests of this folder: Airflow reads its environment when it is first imported."""

import atexit
import os
import shutil
import tempfile
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
def metadata_database() -> None:
    """Airflow's own tables; `DAG.test` keeps its runs there."""
    from airflow.utils.db import initdb

    initdb()
