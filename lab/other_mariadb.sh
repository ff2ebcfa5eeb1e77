#!/usr/bin/env bash
# Another MariaDB series beside the system's: the one that a release of Debian ships, unpacked for the lab alone.
#
#   lab/other_mariadb.sh SUITE [ROOT]     SUITE: bullseye (10.5), trixie (11.8) ...; ROOT: ~/.cache/binlane/mariadb-SUITE
#
# The archive is the one of this machine's own apt sources. Server and client programs and every library that they need
# are downloaded and unpacked under ROOT, and run by their own dynamic loader: no package of the system is touched. A
# no-op where ROOT works already. Prints the path of a `mariadbd`, for BINLANE_MARIADBD or BINLANE_OTHER_MARIADBDS; the
# client programs and mariadb-install-db stand beside it.
# Exit 0: the server runs. Exit 2: no SUITE. Exit 3: this machine's archive has none (tests of that series are skipped).
set -euo pipefail
suite=${1:?"which release of Debian? (bullseye, trixie ...)"}
root=${2:-${HOME}/.cache/binlane/mariadb-$suite}
server=$root/bin/mariadbd
if [ -x "$server" ] && "$server" --version >/dev/null 2>&1; then echo "$server"; exit 0; fi

none() { printf 'other_mariadb: %s\n' "$*" >&2; exit 3; }
command -v apt-get >/dev/null && command -v dpkg >/dev/null || none "this system has no apt-get and dpkg"
archive=$( { grep -hs '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}'
             grep -hs '^deb ' /etc/apt/sources.list /etc/apt/sources.list.d/*.list | awk '{print $2 ~ /^\[/ ? $3 : $2}'
           } | grep -E '/debian/?$' | head -1 || true)
[ -n "$archive" ] || none "no Debian archive in this machine's apt sources"

# beside ROOT, so that the last step is a rename: a broken-off run leaves nothing that looks whole
mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$work"' EXIT
state=$work/apt
files=$work/new/root
mkdir -p "$state/lists/partial" "$state/archives/partial" "$files" "$work/new/bin"
: > "$state/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main" > "$state/sources.list"
options=(-q "-oDir::State::Lists=$state/lists" "-oDir::State::status=$state/status" "-oDir::Etc::SourceList=$state/sources.list"
  -oDir::Etc::SourceParts=/dev/null "-oDir::Cache=$state" "-oDir::Cache::archives=$state/archives" -oAPT::Sandbox::User=root)
told() { tail -n 3 "$state/log" >&2; none "$1"; }
apt-get "${options[@]}" update >"$state/log" 2>&1 || told "$suite cannot be read from this machine's archive"

# mariadb-server-core, or with its series in the name up to 10.5; the same of the clients
core=$(apt-cache "${options[@]}" search --names-only '^mariadb-server-core(-[0-9.]+)?$' | awk '{print $1}' | head -1)
[ -n "$core" ] || none "$suite has no mariadb-server-core"
client=${core/server/client}
apt-get "${options[@]}" install --download-only -y --no-install-recommends "$core" "$client" >>"$state/log" 2>&1 \
  || told "$core cannot be downloaded"
# mariadb-binlog and mariadb-dump are in one of the packages without -core, which would bring Perl along
(cd "$state/archives" && apt-get "${options[@]}" download "${client/-core/}" "${core/-core/}") >>"$state/log" 2>&1 \
  || told "${client/-core/} cannot be downloaded"
for package in "$state"/archives/*.deb; do dpkg -x "$package" "$files"; done
rm -rf "$files"/usr/share/{doc,man,locale,perl,lintian} "$files"/usr/lib/x86_64-linux-gnu/perl*

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
by_loader usr/sbin/mariadbd
by_loader usr/bin/my_print_defaults
by_loader usr/bin/resolveip
for name in mariadb mariadb-binlog mariadb-dump mariadb-admin; do
  [ -f "$files/usr/bin/$name" ] || continue
  by_loader "usr/bin/$name"
  in_bin "$name" "exec \"\$r/usr/bin/$name\" \"\$@\""
done
share=$(cd "$files/usr/share" && for name in mariadb mysql; do [ -d "$name/charsets" ] && echo "$name" && break; done)
# --no-defaults has to come first, then where this copy keeps its files, then the caller's options
in_bin mariadbd "exec \"\$r/usr/sbin/mariadbd\" --no-defaults --basedir=\"\$r/usr\" --lc-messages-dir=\"\$r/usr/share/$share\" \\
  --character-sets-dir=\"\$r/usr/share/$share/charsets\" --plugin-dir=\"\$r/usr/lib/mysql/plugin\" \"\$@\""
in_bin mariadb-install-db "exec sh \"\$r/usr/bin/mariadb-install-db\" --no-defaults --basedir=\"\$r/usr\" \"\$@\""
rm -rf "$root"
mv "$work/new" "$root"
"$server" --version >&2 || none "$suite's mariadbd does not run here"
echo "$server"
