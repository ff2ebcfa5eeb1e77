# The account `binlane`, made once by the MySQL image in an empty data folder. This file is sourced by the two beside it.

# literal TEXT: a string of SQL, whatever characters it has
literal() { printf "'%s'" "$(printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e "s/'/''/g")"; }

# account GRANTS: the account of this server, not of its copies: nothing is logged
account() {
  MYSQL_PWD=$MYSQL_ROOT_PASSWORD mysql --user=root <<SQL
SET SESSION sql_log_bin = 0;
CREATE USER 'binlane'@'%' IDENTIFIED BY $(literal "$BINLANE_PASSWORD");
$1
SQL
}
