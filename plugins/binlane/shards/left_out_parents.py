"""Foreign keys to tables that the channel's filter leaves out.

No window brings the rows of such a parent, so the target refuses the first row of the child (1452), unless somebody
else keeps the parent there. The source has checked the key already.
"""

from __future__ import annotations

from binlane.schema.followers import acts
from binlane.schema.model import ForeignKey, Table
from binlane.shards.selection import Selection


def keys_left_out(table: Table, selection: Selection) -> tuple[ForeignKey, ...]:
    """The foreign keys of a table that is taken, whose parents are not, in the source's names; not those with an
    action, by which the parent's changes would be missing on the target (check ``filtered-parents``)."""
    return tuple(each for each in table.foreign_keys if not acts(each) and selection.table(each.parent) is not None)
