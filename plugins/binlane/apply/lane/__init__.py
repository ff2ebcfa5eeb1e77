"""A lane's run, from its position to the window's end. Theory of operation:

A LANE is an ordered list of blocks for one target, and one row of ``binlane.positions``: the seqno up to which its
blocks are applied. It is no process. A process (``runner``) takes a lane by a named lock of its session, the lease. It
has two connections more: one polls positions and leases (``peers``), one sends heartbeats and reads orders
(``heartbeat``). Leases only save work. What keeps a block from being applied twice is the first statement of its
transaction, UPDATE positions .. WHERE seqno = expected, whose row lock also keeps every other runner out.

READ AND WRITE, for each block, in this order:
1. the block is read from the lane's file, one ahead (``blocks``), and the table of ways says how it is applied;
2. BEGIN; the position by compare-and-set; the orders to stop and to skip, as of now;
3. the items, each event or statement in its source's session (``apply.rows``, ``apply.session``);
4. the counters; the end of an epoch, if this lane arrives last; COMMIT. Rows and position commit together.
A DDL runs between two transactions: one that says that it is reached, and one that moves the position (``apply.ddl``).

BARRIERS. Transactions that concern several lanes are applied by one lane, the owner, while all participants stand right
before them; its transactions move them all (``barriers``). A lane that waits polls the positions. A missing lane
without a holder is adopted: moved up to the barrier, across its earlier barriers, and released. A lane only waits for
seqnos before its own next block, so the waits have no circle, and a process can adopt every lane that it waits for:
fewer processes than lanes, down to one, cannot deadlock.

WAYS. ``ways.table`` is the only place that says which way a block takes, and which one follows after which end.
It remembers the ways of blocks over all connections of the run. Shares of one block that commit together agree by
named locks before COMMIT (``together``).

WHAT AN END LEADS TO. After any of them the transaction is rolled back, or its connection is closed, which has the same
effect: position and rows are what they were, but for tables without transactions.
- Deadlock, lock wait timeout: the runner makes new connections and applies the block again, after a pause that grows,
  at most ``retries`` times without a committed block. A share that commits together is applied at once by one lane with
  the shares of all others instead, since the lock may be held by a lane that waits for this one.
- Lost connection: the same. If it was lost during COMMIT, the position shows the outcome: a block behind the position
  is not read again.
- A statement that cannot be rolled back, on a table without transactions: the items end before it, and its transaction
  is applied again as a block of its own, behind a note in ``binlane.ddl``, or under GTIDs (``ways.nontransactional``).
  The transaction that moves the position removes the note, and so does a ROLLBACK that undoes everything. A runner that
  finds a note asks the operator (UndecidableError), unless the target's GTIDs prove the outcome.
- A stop inside a block, or a position inside it, from such a stop: its transactions are applied one by one
  (``ways.pieces``), up to the stop, where the lane ends.
- An order to skip one of its transactions: the same; that one moves the position and is recorded, not written.
- Drift, rows that differ from the log: all lanes stop with the transaction that fails, which ``bisect`` finds. With
  ``on_conflict = "overwrite"`` the block is written row by row, as the log has it (``ways.row_by_row``).
- NULL for a TIMESTAMP that was the current time on the source: again, with the source's session variable.
- Any other error of the target: stored for the other lanes, which stop at their next block; the operator chooses.
- Open temporary tables: a barrier of them is one transaction (``ways.barrier``). They survive ROLLBACK, so every error
  closes its connection. One that has other tables than come next is closed, too, and the run goes on with a new one.

SEVERAL ATTEMPTS, ONE RUN. All that belongs to a connection ends with it (``AttemptState``). Of a run there remain the
counts, the ways, and what was seen of other lanes (``RunState``). A new run begins with the position alone.
"""
