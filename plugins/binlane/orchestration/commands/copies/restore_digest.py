"""The digest of a restore's plan: who has approved a plan gets that restore, or none.

It covers what is restored, from which dump and which stretch of which log, up to which place, and onto which server;
not what the log has got behind the end since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from binlane.connections import Endpoints
from binlane.errors import PlanError
from binlane.restore.dump_file import DumpPlace
from binlane.restore.log_scan import LogScan
from binlane.state.records.restores import RestoreDefinition

PlanFacts = Mapping[str, str]
"""What a plan's digest covers, by name, as text."""

NAME: Final = "restore"
END: Final = "end"
DIGEST_LINE: Final = "# plan: "


def plan_facts(
    name: str, definition: RestoreDefinition, scanned: LogScan, dump: DumpPlace | None, endpoints: Endpoints
) -> PlanFacts:
    """What the digest of this plan covers."""
    log = definition.log if endpoints.source is None else str(endpoints.source)
    return {
        NAME: name,
        "databases": ", ".join(f"{old} as {final}" for old, final in definition.databases),
        "tables": ", ".join(definition.tables) or "all",
        # what was there gets a name with the time of the plan
        "replaced": ", ".join(final for final, _ in definition.replaced),
        "base": f"{definition.base}, {definition.digest}" if definition.base else "the log",
        "definers": "" if dump is None else ", ".join(sorted(dump.definers)),
        "log": log,
        "begin": definition.begin,
        END: str(scanned.end),
        "files": ", ".join(scanned.files),
        "transactions": f"{scanned.transactions:,} of {scanned.all_transactions:,} in the log",
        "row changes": f"{scanned.rows:,}",
        "places and times of the transactions": scanned.digest,
        "target": str(endpoints.target),
    }


def digest_of(facts: PlanFacts) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def require_approved(found: PlanFacts, digest: str, approved: PlanFacts | None = None) -> None:
    """Raises PlanError unless the plan ``found`` has this digest; with the facts that were ``approved``, it says which
    of them have changed."""
    if (now := digest_of(found)) == digest:
        return
    names = [] if approved is None else [*approved, *(name for name in found if name not in approved)]
    changed = [
        f"{name}: {(approved or {}).get(name, '-')!r}, now {found.get(name, '-')!r}"
        for name in names
        if (approved or {}).get(name) != found.get(name)
    ]
    why = "; ".join(changed) or "the dump, the log up to the end, or the target is another one, or --until is now"
    end = f", with the end {found[END]} in place of now" if END in found else ""
    raise PlanError(
        f"restore {found[NAME]}: expected the plan that was approved, digest {digest}, found the plan {now} ({why}); "
        f"nothing was written; look at the new plan and approve it{end}"
    )


def digest_line(digest: str) -> str:
    """The line of the channel file that says with which plan the restore has begun."""
    return f"{DIGEST_LINE}{digest}"
