#!/usr/bin/env bash
# Server programs beside the system's, for the lab and the tests alone, unpacked from the system's own package archive.
#
#   lab/server_programs.sh                        what tests can use: MySQL, MariaDB of Debian's bullseye (10.5) and trixie (11.8)
#   lab/server_programs.sh mysql [SUITE]          MySQL: of Debian's sid, or of this release of Ubuntu
#   lab/server_programs.sh mariadb SUITE          MariaDB of a release of Debian: bullseye, trixie ...
#
# The archive is the one of this machine's apt sources. Server and client programs and every library that they need are
# downloaded and unpacked under ~/.cache/binlane (mysql, mariadb-SUITE) and run by their own dynamic loader: no package of
# the system is touched. lab/programs.py finds them there. Nothing is done for programs that are there and run.
# With a family, prints the path of its server program on the last line.
# Exit 0: the server runs. Exit 2: wrong arguments. Exit 3: this machine's archive has none (tests with it are skipped).
set -euo pipefail
cache=$HOME/.cache/binlane

if [ $# -eq 0 ]; then
  for wanted in "mysql" "mariadb bullseye" "mariadb trixie"; do
    # each alone: tests need none of them, and run with those that are there; side by side: each waits for the archive
    { bash "${BASH_SOURCE[0]}" $wanted || echo "no $wanted: its tests are skipped"; } &
  done
  wait
  exit 0
fi

family=$1
suite=${2:-}
none() { printf 'server_programs: %s\n' "$*" >&2; exit 3; }
case "$family" in
  mysql) root=$cache/mysql program=mysqld ;;
  mariadb) root=$cache/mariadb-${suite:?"which release of Debian? (bullseye, trixie ...)"} program=mariadbd ;;
  *) echo "server_programs: $family is neither mysql nor mariadb" >&2; exit 2 ;;
esac
server=$root/bin/$program
if [ -x "$server" ] && "$server" --version >/dev/null 2>&1; then echo "$server"; exit 0; fi

command -v apt-get >/dev/null && command -v dpkg >/dev/null || none "this system has no apt-get and dpkg"
# archive_of DISTRIBUTION: the address of its archive in this machine's apt sources
archive_of() {
  { grep -hs '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}'
    grep -hs '^deb ' /etc/apt/sources.list /etc/apt/sources.list.d/*.list | awk '{print $2 ~ /^\[/ ? $3 : $2}'
  } | grep -E "/$1/?\$" | head -1 || true
}
distribution=debian
archive=$(archive_of debian)
if [ -z "$archive" ] && [ "$family" = mysql ]; then
  # Ubuntu's releases have MySQL, Debian's have not: there it is in sid alone
  distribution=ubuntu
  archive=$(archive_of ubuntu)
  suite=${suite:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
fi
[ -n "$archive" ] || none "no archive of Debian${suite:+ ($suite)} in this machine's apt sources"
suite=${suite:-sid}

# beside ROOT, so that the last step is a rename: a broken-off run leaves nothing that looks whole
mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$work"' EXIT
state=$work/apt
files=$work/new/root
mkdir -p "$state/lists/partial" "$state/archives/partial" "$files" "$work/new/bin"
: > "$state/status"
echo "deb [signed-by=/usr/share/keyrings/$distribution-archive-keyring.gpg] $archive $suite main" > "$state/sources.list"
options=(-q "-oDir::State::Lists=$state/lists" "-oDir::State::status=$state/status" "-oDir::Etc::SourceList=$state/sources.list"
  -oDir::Etc::SourceParts=/dev/null "-oDir::Cache=$state" "-oDir::Cache::archives=$state/archives" -oAPT::Sandbox::User=root)
told() { tail -n 3 "$state/log" >&2; none "$1"; }
apt-get "${options[@]}" update >"$state/log" 2>&1 || told "$suite cannot be read from this machine's archive"

# mysql-server-core or mariadb-server-core, in some releases with the series in the name; the same of the clients
core=$(apt-cache "${options[@]}" search --names-only "^$family-server-core(-[0-9.]+)?\$" | awk '{print $1}' | head -1)
[ -n "$core" ] || none "$suite has no $family-server-core"
client=${core/server/client}
apt-get "${options[@]}" install --download-only -y --no-install-recommends "$core" "$client" >>"$state/log" 2>&1 \
  || told "$core cannot be downloaded"
# some client programs, and mysql_clone, are in the packages without -core, which would bring Perl along
(cd "$state/archives" && apt-get "${options[@]}" download "${client/-core/}" "${core/-core/}") >>"$state/log" 2>&1 \
  || told "${client/-core/} and ${core/-core/} cannot be downloaded"
for package in "$state"/archives/*.deb; do dpkg -x "$package" "$files"; done
rm -rf "$files"/usr/share/{doc,man,locale,perl,lintian} "$files"/usr/lib/*-linux-gnu/perl*

# the file itself: its links in lib64 may be absolute
loader=$(cd "$files" && find . -type f \( -name 'ld-linux-*' -o -name 'ld-[0-9]*.so' \) | sed 's/^\.//' | head -1)
[ -n "$loader" ] || none "$suite has no dynamic loader for this machine"
place="r='$root/root'"
libraries=$(cd "$files" && find . -maxdepth 3 -type d -path '*/lib/*-linux-gnu' | sed 's/^\./$r/' | paste -sd:)
run="exec \"\$r$loader\" --library-path \"$libraries\""

# by_loader PATH: the program of that name becomes a script that runs it with its own libraries
by_loader() {
  mv "$files/$1" "$files/$1.bin"
  printf '#!/bin/sh\n%s\n%s "$r/%s.bin" "$@"\n' "$place" "$run" "$1" > "$files/$1"
  chmod +x "$files/$1"
}
# in_bin NAME TEXT: a script of that name that the lab calls
in_bin() {
  printf '#!/bin/sh\n%s\n%s\n' "$place" "$2" > "$work/new/bin/$1"
  chmod +x "$work/new/bin/$1"
}
share=$(cd "$files/usr/share" && for name in mariadb mysql mysql-*; do [ -d "$name/charsets" ] && echo "$name" && break; done)
# --no-defaults has to come first, then where this copy keeps its files, then the caller's options
places="--lc-messages-dir=\"\$r/usr/share/$share\" --character-sets-dir=\"\$r/usr/share/$share/charsets\" --plugin-dir=\"\$r/usr/lib/mysql/plugin\""
if [ "$family" = mysql ]; then
  for name in mysql mysqlbinlog mysqldump mysqladmin; do
    [ ! -f "$files/usr/bin/$name" ] || in_bin "$name" "$run \"\$r/usr/bin/$name\" \"\$@\""
  done
  # the folder that this package allows LOAD DATA and OUTFILE for is the installed server's
  in_bin mysqld "$run \"\$r/usr/sbin/mysqld\" --no-defaults $places --secure-file-priv= \"\$@\""
else
  # mariadb-install-db calls programs by their place
  by_loader usr/sbin/mariadbd
  by_loader usr/bin/my_print_defaults
  by_loader usr/bin/resolveip
  for name in mariadb mariadb-binlog mariadb-dump mariadb-admin; do
    [ -f "$files/usr/bin/$name" ] || continue
    by_loader "usr/bin/$name"
    in_bin "$name" "exec \"\$r/usr/bin/$name\" \"\$@\""
  done
  in_bin mariadbd "exec \"\$r/usr/sbin/mariadbd\" --no-defaults --basedir=\"\$r/usr\" $places \"\$@\""
  in_bin mariadb-install-db "exec sh \"\$r/usr/bin/mariadb-install-db\" --no-defaults --basedir=\"\$r/usr\" \"\$@\""
fi
rm -rf "$root"
mv "$work/new" "$root"
"$server" --version >&2 || none "$suite's $program does not run here"
echo "$server"
