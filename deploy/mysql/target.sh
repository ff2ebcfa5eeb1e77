# Run once by the MySQL image, in an empty data folder: the account that docs/accounts.md asks for on a target. It may
# grant, so that it can apply the source's own accounts.
mysql --user=root --password="$MYSQL_ROOT_PASSWORD" <<SQL
SET SESSION sql_log_bin = 0;
CREATE USER 'binlane'@'%' IDENTIFIED BY '$BINLANE_PASSWORD';
GRANT ALL PRIVILEGES ON *.* TO 'binlane'@'%' WITH GRANT OPTION;
SQL
