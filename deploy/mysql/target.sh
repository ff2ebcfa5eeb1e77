# Run once by the MySQL image: the account that docs/accounts.md asks for on a target, for a channel that leaves out the
# source's accounts (deploy/channels/fleet.toml). It may not CREATE USER or GRANT; rows of mysql.* it can write, as long as
# the server has not partial_revokes = ON and the REVOKE of `binlane grants` (docs/security.md).
. "${BINLANE_ACCOUNT:-/etc/binlane/mysql/account.sh}"
account "
GRANT BINLOG_ADMIN, REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN, CONNECTION_ADMIN ON *.* TO 'binlane'@'%';
GRANT SET_ANY_DEFINER ON *.* TO 'binlane'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES, TRIGGER, EVENT, EXECUTE, CREATE VIEW, SHOW VIEW,
      CREATE ROUTINE, ALTER ROUTINE, CREATE TEMPORARY TABLES, LOCK TABLES, PROCESS ON *.* TO 'binlane'@'%';
GRANT ALL PRIVILEGES ON binlane.* TO 'binlane'@'%';"
