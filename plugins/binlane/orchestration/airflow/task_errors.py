"""The channel's connections from Airflow, and binlane's errors turned into Airflow's retry or no retry."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, get_current_context

from binlane.config.node import unknown_key
from binlane.connections import Endpoints, endpoint, resolve_endpoints
from binlane.errors import BinlaneError, ConfigError, naming
from binlane.orchestration.airflow.dag_shape import ERROR_KEY, HEALTH_KEY, LONGEST_NOTE, NOTE_KEY
from binlane.orchestration.airflow.releases import AirflowFailException
from binlane.safe_text import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.models import Connection as StoredConnection
    from airflow.sdk import Connection, Context

    from binlane.config import ChannelConfig
    from binlane.connections import Endpoint


def resolve_connection(connection_id: str) -> Endpoint:
    """An endpoint from Airflow's own connections, wherever Airflow keeps them."""
    return endpoint_from(connection_id, BaseHook.get_connection(connection_id))


def endpoint_from(connection_id: str, found: Connection | StoredConnection) -> Endpoint:
    """An endpoint from one of Airflow's connections; raises ConfigError if it is none to a server."""
    return endpoint(
        connection_id,
        conn_type=found.conn_type or "",
        host=found.host or "",
        port=found.port,
        user=found.login or "",
        password=found.password or "",
        extra=found.extra_dejson,
    )


def endpoints_of(channel: ChannelConfig) -> Endpoints:
    """The channel's servers."""
    # every task process parses the DAG's file, without a driver
    from binlane.apply.target_state import knowing_target

    return knowing_target(resolve_endpoints(channel, resolve_connection))


def author_of(context: Context) -> str | None:
    """Who has triggered the run, as it is recorded on the target; None: nobody, or Airflow does not say."""
    user = getattr(context["dag_run"], "triggering_user_name", None)
    return f"{user}, in Airflow" if user else None


def form_values(context: Context) -> Mapping[str, Any]:
    """The values of the run's form: the only reader of ``params``.

    Raises ConfigError for a key of the run's configuration that is no field of the DAG's form: Airflow takes any. So a
    misspelled ``dry_run`` would apply a window. Raises it, too, where Airflow does not hand on the configuration.
    """
    fields, values = context["dag"].params, context["params"]
    conf = context["dag_run"].conf or {}
    for key in sorted(conf):
        if key not in fields:
            raise ConfigError(f"{key}: {unknown_key(key, [*fields])}; trigger the run again")
        if values[key] != conf[key]:
            raise ConfigError(
                f"{key}: expected the run's own value, found the DAG's default: Airflow's setting [core] "
                "dag_run_conf_overrides_params is off; switch it on and trigger the run again"
            )
    return values


def note(context: Context, text: str, health: str = "") -> None:
    """Store a text, and the channel's health, for the run's note; the plugin writes those of all tasks when the run has
    ended. Empty ones are not stored."""
    for key, value in ((NOTE_KEY, text), (HEALTH_KEY, health)):
        if value:
            context["ti"].xcom_push(key, cut(value, LONGEST_NOTE))


def note_error(context: Context, exc: Exception) -> None:
    """Store an error's first two lines for the run's note. A later try of the task begins without them."""
    # an error of binlane's says by itself what it is
    kind = "" if isinstance(exc, BinlaneError) else f"{type(exc).__name__}: "
    said = kind + "\n".join(str(exc).splitlines()[:2])
    context["ti"].xcom_push(ERROR_KEY, cut(said, LONGEST_NOTE))


def _note_of(exc: BinlaneError) -> None:
    # outside a task there is no run
    with suppress(RuntimeError):
        note_error(get_current_context(), exc)


@contextmanager
def airflow_errors(channel: str = "", *, may_retry: bool = True) -> Iterator[None]:
    """Turns binlane's errors into Airflow's retry or no retry. The run's note gets the error of the last try.
    ``channel``: as ``naming``; empty: of a form. ``may_retry``: another try of the task may help."""
    try:
        with naming(channel) if channel else nullcontext():
            yield
    except BinlaneError as exc:
        _note_of(exc)
        if exc.retryable and may_retry:
            raise
        raise AirflowFailException(f"{type(exc).__name__}: {exc}") from exc
