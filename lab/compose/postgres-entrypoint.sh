#!/bin/bash
# Does for a Debian package of PostgreSQL what the image `postgres` does at its start, as far as docker-compose.yml uses it:
# POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB.
set -eo pipefail
export PGDATA=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
  mkdir -p /var/run/postgresql "$PGDATA"
  chown postgres /var/run/postgresql "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile=<(printf '%s' "$POSTGRES_PASSWORD") --auth-local=trust --auth-host=scram-sha-256
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait start --options="-c listen_addresses=''"
  [ "$POSTGRES_DB" = postgres ] || createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
  pg_ctl --wait --mode=fast stop
fi
exec postgres -c listen_addresses='*'
