#!/bin/bash
# Does for a Debian package of MySQL what the image `mysql` does at its start, as far as docker-compose.yml uses it:
# MYSQL_ROOT_PASSWORD, /docker-entrypoint-initdb.d/*.sh, options of the server as arguments.
set -eo pipefail
data=/var/lib/mysql
if [ "$(id -u)" = 0 ]; then
  mkdir -p /var/run/mysqld /var/lib/mysql-files "$data"
  chown mysql /var/run/mysqld "$data"
  exec setpriv --reuid=mysql --regid=mysql --clear-groups "$0" "$@"
fi
server() { mysqld --no-defaults --datadir="$data" --socket=/var/run/mysqld/mysqld.sock --mysqlx=OFF "$@"; }
if [ ! -d "$data/mysql" ]; then
  server --initialize-insecure
  server "$@" --skip-networking --daemonize --pid-file=/var/run/mysqld/first.pid --log-error="$data/first.err"
  password=$(printf '%s' "$MYSQL_ROOT_PASSWORD" | sed -e 's/\\/\\\\/g' -e "s/'/''/g")
  mysql --user=root <<SQL
SET SESSION sql_log_bin = 0;
CREATE USER 'root'@'%' IDENTIFIED BY '$password';
GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;
ALTER USER 'root'@'localhost' IDENTIFIED BY '$password';
SQL
  for file in /docker-entrypoint-initdb.d/*.sh; do . "$file"; done
  MYSQL_PWD=$MYSQL_ROOT_PASSWORD mysqladmin --user=root shutdown
fi
exec mysqld --no-defaults --datadir="$data" --socket=/var/run/mysqld/mysqld.sock --mysqlx=OFF --bind-address=0.0.0.0 "$@"
