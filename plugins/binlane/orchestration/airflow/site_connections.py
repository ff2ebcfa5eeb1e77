"""Connections as this machine's Airflow keeps them: secrets backends, the environment, the metadata database.

A task asks the workers' secrets backend, its environment and the api-server; the api-server asks the secrets backend,
its environment and the metadata database. Outside a task ``BaseHook.get_connection`` does not ask the metadata
database, and no call says which store has answered: so each store is asked here by itself.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from airflow.configuration import conf, ensure_secrets_loaded
from airflow.secrets.environment_variables import EnvironmentVariablesBackend
from airflow.secrets.metastore import MetastoreBackend

from binlane.connections import PREFIX, AskStores, ConnectionStores, StoredConnection
from binlane.orchestration.airflow.releases import AirflowException
from binlane.orchestration.airflow.task_errors import endpoint_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.secrets import BaseSecretsBackend

_ENVIRONMENT: Final = "airflow.secrets.environment_variables.EnvironmentVariablesBackend"


def stores_of_site() -> AskStores:
    """A call that says where a connection is. Raises the errors of Airflow and of its secrets backend if they cannot be
    set up."""
    return partial(_ask, tuple(_stores()))


def _ask(stores: tuple[BaseSecretsBackend, ...], connection_id: str) -> ConnectionStores:
    kept, silent = [], []
    for store in stores:
        place, in_shell = _place(store, connection_id), isinstance(store, EnvironmentVariablesBackend)
        try:
            found = store.get_connection(conn_id=connection_id)
            if found is not None:
                read = partial(endpoint_from, connection_id, found)
                kept.append(StoredConnection(place, in_shell, found.conn_type or "", read))
                # decrypted when it is read: with another Fernet key than the one it was stored with this fails
                _ = found.password, found.extra
        except Exception as exc:  # the errors of a store are its driver's, and Airflow goes on with the next one, too
            kept = [each for each in kept if each.place != place]
            silent.append(f"{place}: {_error(exc)}")
    return ConnectionStores(tuple(kept), tuple(silent))


def _stores() -> Iterator[BaseSecretsBackend]:
    if conf.get("workers", "secrets_backend", fallback=None):
        yield ensure_secrets_loaded(default_backends=[_ENVIRONMENT])[0]
    yield from ensure_secrets_loaded()


def _error(exc: Exception) -> str:
    """The error in one line, without a text that may quote a connection's URI."""
    name = type(exc).__name__
    if name == "InvalidToken":
        return f"{name}: it was stored with another Fernet key than AIRFLOW__CORE__FERNET_KEY has here"
    quotes = isinstance(exc, (ValueError, TypeError, AirflowException))
    return name if quotes else f"{name}: {str(exc).partition(chr(10))[0]}"


def _place(store: BaseSecretsBackend, connection_id: str) -> str:
    if isinstance(store, EnvironmentVariablesBackend):
        return f"{PREFIX}{connection_id.upper()} of this shell"
    if isinstance(store, MetastoreBackend):
        return "Airflow's metadata database"
    return f"Airflow's secrets backend {type(store).__name__}"
