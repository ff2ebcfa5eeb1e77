"""The DAG of a channel's restores: a form, the plan, a person's approval, and that restore or none."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import DAG, Param, get_current_context

from binlane.errors import ConfigError
from binlane.orchestration.airflow.dag_shape import RETRIES, restore_dag_id
from binlane.orchestration.airflow.task_errors import airflow_errors, author_of, form_values, note, resolve_connection
from binlane.orchestration.airflow.task_watch import StepOperator
from binlane.orchestration.commands.copies.restore_form import (
    RestoreForm,
    logs_of,
    restore_params,
    targets_of,
)

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.operator import BaseOperator

    from binlane.config import ChannelConfig

PLAN: Final = "plan_restore"
APPROVE: Final = "approve_plan"
RESTORE: Final = "restore_databases"
_APPROVED: Final = "Approve"
"""The provider's word for it."""
SHOWN_KEY: Final = "shown"
"""XCom key of the plan that a person was shown, of the task that has shown it."""
_PLAN_DOC: Final = "Plans what the form asks for, as `binlane restore` does without --yes: nothing is written."
_APPROVE_DOC: Final = "Waits until a person has read the plan. A rejected plan leaves nothing behind."
_RESTORE_DOC: Final = (
    "Makes the plan again, and carries it out if it is the one that was shown and approved, whatever `plan_restore` "
    "has planned since; otherwise it says what has changed. A retry, or a run after the task was cleared, goes on with "
    "what an interrupted attempt has begun."
)

log = logging.getLogger(__name__)


def build_restore_dag(channel: ChannelConfig) -> DAG:
    """The DAG of the restores that the channel's file allows (``[restore]``)."""
    with DAG(
        restore_dag_id(channel.name),
        schedule=None,
        catchup=False,
        # not paused: it runs only when triggered, and then at once
        is_paused_upon_creation=False,
        default_args={"owner": channel.owner, "retry_delay": dt.timedelta(seconds=10)},
        owner_links={} if channel.owner_link is None else {channel.owner: channel.owner_link},
        tags=sorted({"binlane", "restore", *channel.tags}),
        description=f"Databases of channel {channel.name} at a moment of the log, by hand, behind an approval",
        doc_md=_doc(channel),
        params={name: Param(**values) for name, values in restore_params(channel).items()},
        render_template_as_native_obj=False,
        auto_register=False,
    ) as dag:
        approved = _approve()
        approved.set_upstream(_plan(channel))
        approved.set_downstream(_restore(channel))
    return dag


def _doc(channel: ChannelConfig) -> str:
    bases = ", ".join(f"`{each}`" for each in channel.restore.bases) or "none: from the log alone"
    return f"""### Restores beside {channel.name}
Brings databases to a moment of the log, under names of their own: a plan first, which waits for a person's approval in
the task `{APPROVE}`, then that restore or none.

Logs: {", ".join(f"`{each}`" for each in logs_of(channel))}. Folders of dumps: {bases}. Onto:
{", ".join(f"`{each}`" for each in targets_of(channel))}. `docs/restore.md` has the rest.

Channel file: `{channel.file}`.
"""


def _form(context: Context) -> RestoreForm:
    return RestoreForm.of(form_values(context))


def _plan(channel: ChannelConfig) -> BaseOperator:
    def plan_restore() -> dict[str, Any]:
        from binlane.orchestration.commands.copies.restore_digest import digest_of
        from binlane.orchestration.commands.copies.restore_orders import plan_order
        from binlane.orchestration.terminal import as_text
        from binlane.safe_text import one_line

        context = get_current_context()
        with airflow_errors():
            order = plan_order(_form(context), channel, resolve_connection)
        log.info("%s", as_text(order.view))
        note(context, f"planned, nothing is written yet: {order.subject}")
        return {
            "subject": one_line(order.subject),
            # a block of code would be one line there
            "text": "\n\n".join(grid.markdown() for grid in order.view),
            "digest": digest_of(order.facts),
            "facts": dict(order.facts),
        }

    return StepOperator(task_id=PLAN, python_callable=plan_restore, retries=RETRIES, doc_md=_PLAN_DOC)


def _approve() -> BaseOperator:
    # no DAG of the other kinds needs it
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    class PlanApproval(ApprovalOperator):
        """Shows the plan of this moment, and keeps it: the plan's task may run again while this one waits, or later."""

        def execute(self, context: Context) -> Any:
            planned = context["ti"].xcom_pull(task_ids=PLAN)
            self.subject, self.body = planned["subject"], planned["text"]
            context["ti"].xcom_push(SHOWN_KEY, planned)
            return super().execute(context)

    return PlanApproval(task_id=APPROVE, subject="Restore", doc_md=_APPROVE_DOC)


def require_approved(answer: Any, shown: Any) -> Mapping[str, Any]:
    """The plan that was shown and approved. Raises ConfigError unless a person has approved one: whoever may edit runs
    can mark the task as a success, and that is no answer of somebody who may give one (`Required Actions`)."""
    # the provider's HITLTriggerEventSuccessPayload
    is_approved = isinstance(answer, Mapping) and answer.get("chosen_options") == [_APPROVED]
    if not is_approved or not isinstance(shown, Mapping):
        raise ConfigError(
            f"task {APPROVE}: expected the answer {_APPROVED} of a person, found none: the task was marked as a "
            "success, or cleared since; clear it, let somebody answer who may (Required Actions), and clear this task"
        )
    return shown


def _restore(channel: ChannelConfig) -> BaseOperator:
    def restore_databases() -> dict[str, Any]:
        from binlane.orchestration.commands.copies.restore_orders import carry_out
        from binlane.orchestration.terminal import Terminal, as_text

        context = get_current_context()
        ti = context["ti"]
        with airflow_errors():
            shown = ti.xcom_pull(task_ids=APPROVE, key=SHOWN_KEY)
            planned = require_approved(ti.xcom_pull(task_ids=APPROVE), shown)
            form = _form(context)
        facts = planned["facts"]
        with airflow_errors(facts["restore"]):
            done = carry_out(form, channel, facts, Terminal(), author_of(context), resolve_connection)
        text = as_text(done)
        log.info("%s", text)
        note(context, text)
        return {"restore": facts["restore"], "digest": planned["digest"], "note": text}

    return StepOperator(
        task_id=RESTORE, python_callable=restore_databases, retries=channel.apply.task_retries, doc_md=_RESTORE_DOC
    )
