"""Entry point of the image: writes a service's secrets where its programs read them, then runs the service's command.

Compose can put a password into a text, but cannot escape it there, and what is in the environment is inherited by every
process. So a service gets the secrets that it needs as they are, and this file writes them as URL, JSON and properties:
POSTGRES_PASSWORD, SOURCE_PASSWORD, TARGET_PASSWORD (Airflow's connections), ADMIN_PASSWORD, SPARK_SECRET.
"""

import json
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path
from urllib.parse import quote

PASSWORDS_FILE = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
SPARK_CONF = Path("/opt/binlane/spark")
"""Of the image's account alone: spark-submit and Spark's services read spark-defaults.conf in SPARK_CONF_DIR."""


def hand_over(environment: MutableMapping[str, str], spark_conf: Path = SPARK_CONF) -> None:
    """Replace the secrets in ``environment`` by the settings that hold them: each service was given its own."""
    postgres = environment.pop("POSTGRES_PASSWORD", None)
    if postgres is not None:
        url = f"postgresql+psycopg2://airflow:{quote(postgres, safe='')}@postgres/airflow"
        environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = url
    for server in ("source", "target"):
        password = environment.pop(f"{server.upper()}_PASSWORD", None)
        if password is not None:
            connection = {"conn_type": "mysql", "host": server, "port": 3306, "login": "binlane", "password": password}
            environment[f"AIRFLOW_CONN_FLEET_{server.upper()}"] = json.dumps(connection)
    admin = environment.pop("ADMIN_PASSWORD", None)
    if admin is not None:
        _write(Path(environment[PASSWORDS_FILE]), json.dumps({"admin": admin}))
    secret = environment.pop("SPARK_SECRET", None)
    if secret is not None:
        # Spark runs what it is sent: its services answer nobody who does not know the secret
        settings = {
            "spark.authenticate": "true",
            "spark.network.crypto.enabled": "true",
            # the escapes of a Java properties file
            "spark.authenticate.secret": secret.replace("\\", "\\\\"),
        }
        _write(spark_conf / "spark-defaults.conf", "".join(f"{key}={value}\n" for key, value in settings.items()))


def _write(file: Path, text: str) -> None:
    """Write a file that only this account can read."""
    file.touch(mode=0o600)
    file.write_text(text, "utf-8")


if __name__ == "__main__":
    hand_over(os.environ)
    os.execvp(sys.argv[1], sys.argv[1:])
