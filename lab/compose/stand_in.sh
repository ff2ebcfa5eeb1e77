#!/usr/bin/env bash
# An image of Debian's packages in the place of one that no registry gives here, for `make compose-test`.
#
#   lab/compose/stand_in.sh python:3.13.15-slim-trixie@sha256:... | postgres:17.11@... | mysql:9.7.2@... NAME
#
# The archive is the one of this machine's apt sources; mmdebstrap makes the file system, `docker build` the image, called
# NAME. It does what docker-compose.yml needs of the first image and no more: it is no base for a site.
# Exit 0: the image is there. Exit 2: a name that this file does not know. Exit 3: it cannot be made; why is said.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
none() { printf 'stand_in: %s\n' "$*" >&2; exit 3; }
case "$1" in
  python:3.13*-trixie@*) suite=trixie packages=python3,python3-venv,ca-certificates ;;
  postgres:17*) suite=trixie packages=postgresql-17 ;;
  mysql:9.7*) suite=sid packages=mysql-server-core,mysql-client-core ;;
  *) echo "stand_in: no stand-in for $1" >&2; exit 2 ;;
esac
command -v mmdebstrap >/dev/null || none "mmdebstrap is missing: apt-get install mmdebstrap"
archive=$( { grep -hs '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}'
             grep -hs '^deb ' /etc/apt/sources.list /etc/apt/sources.list.d/*.list | awk '{print $2 ~ /^\[/ ? $3 : $2}'
           } | grep -E '/debian/?$' | head -1 || true)
[ -n "$archive" ] || none "no Debian archive in this machine's apt sources"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# a mirror's copy of a release may be older than the release says; its signature is checked all the same
mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --include="$packages" "$suite" "$work/files.tar" \
  "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main" || none "$packages of $suite cannot be had"
files=binlane-stand-in:$$
docker import "$work/files.tar" "$files" >/dev/null
mkdir "$work/context"
{
  echo "FROM $files"
  case "$1" in
    python:*)
      # the machine's certificates: its package index may be a mirror
      cp /etc/ssl/certs/ca-certificates.crt "$work/context/"
      echo "COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt"
      echo "ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt"
      echo "RUN python3 -m venv /usr/local"
      ;;
    postgres:*)
      cp postgres-entrypoint.sh "$work/context/entrypoint.sh"
      echo "ENV PATH=/usr/lib/postgresql/17/bin:/usr/sbin:/usr/bin:/sbin:/bin"
      ;;
    mysql:*)
      cp mysql-entrypoint.sh "$work/context/entrypoint.sh"
      echo "RUN useradd --system --uid 999 --user-group mysql"
      ;;
  esac
  if [ -f "$work/context/entrypoint.sh" ]; then
    echo "COPY entrypoint.sh /entrypoint.sh"
    echo 'ENTRYPOINT ["/entrypoint.sh"]'
  fi
} > "$work/context/Dockerfile"
DOCKER_BUILDKIT=0 docker build --quiet --tag "$2" "$work/context" 2>"$work/log" || none "$(tail -n 3 "$work/log")"
