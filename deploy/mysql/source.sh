# Run once by the MySQL image: the account that docs/accounts.md asks for on a source.
. "${BINLANE_ACCOUNT:-/etc/binlane/mysql/account.sh}"
account "
GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO 'binlane'@'%';
GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, EXECUTE ON *.* TO 'binlane'@'%';"
