"""DDL exactly once: a statement that commits implicitly cannot share a transaction with its position.

So the target itself must show whether the statement has run:

- MySQL with GTIDs: ``gtid_next = '<channel uuid>:<seqno>'``; the server silently skips a GTID that it has. DDL on
  tables that are not InnoDB's is committed before its GTID: there a note decides as well, as on a target with neither.
- MariaDB with a binlog: ``gtid_domain_id`` of the channel and lane, ``gtid_seq_no`` the seqno; ``@@gtid_binlog_state``
  is read before every attempt. Each lane has its domain, because lanes run their DDL out of seqno order. A server that
  is killed during a DDL can finish it when it starts again, and logs it under a GTID of its own; or it has logged a
  statement that it then loses (CREATE and DROP of routines, GRANT, CREATE TABLE ... SELECT). So the definitions of
  everything that the statement may name are noted before it, and decide after a crash. And a statement that fails may
  have been logged with a part that has run (docs/decisions/0023-a-note-before-ddl.md).
- neither: the note has *InnoDB's table ids* as well. A RENAME swap or EXCHANGE PARTITION keeps the definitions but
  moves the ids. If the outcome stays unknown, the operator decides.
"""
