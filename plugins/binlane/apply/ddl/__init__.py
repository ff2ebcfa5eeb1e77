"""DDL exactly once: a statement that commits implicitly cannot share a transaction with its position.

So the target itself must show whether the statement has run:

- MySQL with GTIDs: ``gtid_next = '<channel uuid>:<seqno>'``; the server silently skips a GTID that it has. That it
  has begun is logged under a GTID, too, which shows that the server still knows what it has executed. DDL on
  tables that are not InnoDB's, or become others, is committed before its GTID, and on 5.7 any DDL: there a note decides
  as well, as on a target with neither. There a statement that fails may have been logged with a part that has run, and
  has used its GTID: it runs again under the server's own next one.
- MariaDB with a binlog: the definitions of everything that the statement may name are noted before it, and decide
  after a crash. A server that is killed during a DDL can finish it when it starts again, and logs it then; or it has
  logged a statement that it then loses (CREATE and DROP of routines, GRANT, CREATE TABLE ... SELECT); and a statement
  that fails may have been logged with a part that has run. Of the few statements that may leave all definitions as they
  were and must not run twice (a swap by RENAME, EXCHANGE PARTITION), InnoDB's table ids are noted, too. The statement
  gets the server's own next GTID: in a domain of its own, replicas of the target would apply it side by side with the
  rows around it (docs/decisions/0023-a-note-before-ddl.md).
- neither: the note has *InnoDB's table ids* as well. A RENAME swap or EXCHANGE PARTITION keeps the definitions but
  moves the ids. If the outcome stays unknown, the operator decides.
"""
