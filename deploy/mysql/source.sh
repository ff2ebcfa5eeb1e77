# Run once by the MySQL image, in an empty data folder: the account that docs/accounts.md asks for on a source.
mysql --user=root --password="$MYSQL_ROOT_PASSWORD" <<SQL
-- an account of this server, not of its copies
SET SESSION sql_log_bin = 0;
CREATE USER 'binlane'@'%' IDENTIFIED BY '$BINLANE_PASSWORD';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'binlane'@'%';
GRANT SELECT, TRIGGER, EVENT, EXECUTE ON *.* TO 'binlane'@'%';
SQL
