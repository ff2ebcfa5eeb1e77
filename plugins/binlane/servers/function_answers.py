"""What a server's answer to ``PREPARE .. FROM 'DO name()'`` says of a function's name. To prepare a call calls nothing.

A server looks a name without a database up among its own functions, then among those of libraries, and takes it for a
stored function of the default database otherwise.
"""

from __future__ import annotations

from typing import Final

NOT_OWN: Final = frozenset({1044, 1046, 1305, 1370, 1630})
"""No privilege on the default database, or none selected, in which a stored function could be; no such function; no
EXECUTE for one that could be; none, whose name is also a word of the grammar. Every other answer to a call without
arguments is that of a function of the server's own, or of a library."""
NOTHING_PREPARED: Final = 1461
"""max_prepared_stmt_count: no answer about the function."""
