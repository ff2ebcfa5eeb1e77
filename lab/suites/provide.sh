#!/usr/bin/env bash
# The servers' own test suites, for `make suites`: MariaDB's of this Debian, MySQL's of Debian unstable, unpacked for the lab alone.
#
#   lab/suites/provide.sh [ROOT]     ROOT: ~/.cache/binlane/suites
#
# Everything is downloaded from the archive of this machine's own apt sources; no package of the system is touched.
#   ROOT/mariadb/usr    mariadb-test and mariadb-test-data
#   ROOT/mysql/usr      mysql-testsuite, whose programs run with the libraries of server_programs.sh's MySQL
#   ROOT/libraries      what MariaDB's test client needs besides, and libeatmydata, which spares the suites' servers the disk
# A part that is there already is left as it is. Prints ROOT.
# Exit 0: at least one suite is there (which, is said). Exit 3: none can be had (nothing is tried).
set -euo pipefail
root=${1:-${HOME}/.cache/binlane/suites}
none() { printf 'suites: %s\n' "$*" >&2; exit 3; }
command -v apt-get >/dev/null && command -v dpkg >/dev/null || none "this system has no apt-get and dpkg"
mkdir -p "$root"
work=$(mktemp -d "$root/new.XXXXXX")
trap 'rm -rf "$work"' EXIT

# unpack PART PACKAGE...: the packages, by the apt options in `options`, become ROOT/PART; the last step is a rename
unpack() {
  local part=$1 packages=$work/packages/$1
  shift
  mkdir -p "$packages" "$work/$part"
  (cd "$packages" && apt-get "${options[@]}" download "$@") >>"$work/log" 2>&1 \
    || { tail -n 3 "$work/log" >&2; return 1; }
  for package in "$packages"/*.deb; do dpkg -x "$package" "$work/$part"; done
  rm -rf "${root:?}/$part"
  mv "$work/$part" "$root/$part"
}

options=(-q -oAPT::Sandbox::User=root)
if [ ! -d "$root/mariadb/usr" ]; then
  unpack mariadb mariadb-test mariadb-test-data || echo "suites: this release of Debian has no mariadb-test (apt-get update?)" >&2
fi
if [ ! -d "$root/libraries/usr" ]; then
  unpack libraries libpcre2-posix3 libeatmydata1 || echo "suites: no libeatmydata: the suites' servers will wait for the disk" >&2
fi
if [ ! -d "$root/mysql/usr" ]; then
  archive=$( { grep -hs '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}'
               grep -hs '^deb ' /etc/apt/sources.list /etc/apt/sources.list.d/*.list | awk '{print $2 ~ /^\[/ ? $3 : $2}'
             } | grep -E '/debian/?$' | head -1 || true)
  state=$work/apt
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  : > "$state/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive sid main" > "$state/sources.list"
  options+=("-oDir::State::Lists=$state/lists" "-oDir::State::status=$state/status" "-oDir::Etc::SourceList=$state/sources.list"
    -oDir::Etc::SourceParts=/dev/null "-oDir::Cache=$state" "-oDir::Cache::archives=$state/archives")
  { [ -n "$archive" ] && apt-get "${options[@]}" update >>"$work/log" 2>&1 && unpack mysql mysql-testsuite; } \
    || echo "suites: no mysql-testsuite in Debian unstable of this machine's archive" >&2
fi
found=()
for family in mariadb mysql; do [ ! -d "$root/$family/usr" ] || found+=("$family"); done
[ ${#found[@]} -gt 0 ] || none "neither MariaDB's nor MySQL's suites can be had from this machine's archive"
echo "suites: ${found[*]}" >&2
echo "$root"
