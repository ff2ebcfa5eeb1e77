#!/usr/bin/env bash
# Install what the demo and the tests need and is missing: uv, the locked .venv, MariaDB's server programs, Java 17 or newer,
# and what compiles binlane's kernels: a C compiler, Python's headers, ISA-L.
# System packages come from Debian's or Ubuntu's own archive and start no service: mariadb-server-core holds the programs only.
# Exit 0: everything is there. Exit 2: this account may not install packages; the command to run is printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/sbin:/usr/local/sbin:$HOME/.local/bin:$PWD/.binlane/tools/bin

say() { printf 'setup: %s\n' "$*"; }

# The first of the names that this system's archive has.
candidate() {
  local name
  for name in "$@"; do
    if [ -n "$(apt-cache policy "$name" 2>/dev/null | sed -n 's/^  Candidate: //p' | grep -v '(none)')" ]; then
      echo "$name"
      return
    fi
  done
}

java_is_missing() {
  local version
  version=$( (java -version 2>&1 || true) | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
  [ "${version:-0}" -lt 17 ]
}

mariadb_is_missing() {
  local program
  for program in mariadbd mariadb-install-db mariadb mariadb-binlog; do
    command -v "$program" >/dev/null || return 0
  done
  return 1
}

# install WHAT NAME...: packages by the system's package manager; a NAME is "first|second" where names differ by release
install() {
  local what=$1 root=() names=() choice
  shift
  if ! command -v apt-get >/dev/null; then
    say "$what is missing, and this system has no apt-get: install it (on Debian: ${*//|*/}), then run this again" >&2
    exit 2
  fi
  if [ "$(id -u)" -ne 0 ]; then root=(sudo -n); fi
  if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then
    say "$what is missing, and this account may not install it. Run, then try again:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${*//|*/}" >&2
    exit 2
  fi
  for choice in "$@"; do
    # a fresh machine has no package lists yet
    [ -n "$(candidate ${choice//|/ })" ] || "${root[@]}" apt-get -q update
    names+=("$(candidate ${choice//|/ })")
  done
  say "$what is missing: installing ${names[*]} by apt-get"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${names[@]}"
}

if mariadb_is_missing; then
  install "MariaDB" "mariadb-server-core|mariadb-server-core-10.6" "mariadb-client|mariadb-client-10.6" "mariadb-backup"
fi
# tests restore from its folders; without it they are skipped
if ! command -v mydumper >/dev/null && [ -n "$(candidate mydumper)" ]; then
  install "mydumper" mydumper
fi
if java_is_missing; then
  install "a Java runtime, 17 or newer," "openjdk-17-jre-headless|default-jre-headless"
fi

# The stamp names the lock that .venv was made from, and the kernels that were compiled into it.
kernels=plugins/binlane/kernels
stamp=.venv/binlane.lock
locked=$(cat pyproject.toml uv.lock hatch_build.py $kernels/*.pyx $kernels/*.pxd | sha256sum)
if [ -x .venv/bin/python ] && [ -e $kernels/framing.abi3.so ] && [ "$(cat "$stamp" 2>/dev/null)" = "$locked" ]; then exit 0; fi

if ! uv --version >/dev/null 2>&1; then
  command -v python3 >/dev/null || install "Python" python3
  if python3 -m pip --version >/dev/null 2>&1; then
    say "uv is missing: installing it into .binlane/tools by pip"
    python3 -m pip install -q --target .binlane/tools --require-hashes --only-binary :all: -r deploy/uv.txt
  else
    python3 -c 'import ensurepip, venv' 2>/dev/null || install "Python's venv module" python3-venv
    say "uv is missing: installing it into .binlane/tools, a virtual environment"
    python3 -m venv .binlane/tools
    .binlane/tools/bin/pip install -q --require-hashes --only-binary :all: -r deploy/uv.txt
  fi
fi

# Whether an interpreter was compiled with profile-guided optimization, as distributions and uv compile theirs, and has
# what uv and the tests need of it. Without it, as pyenv compiles unless it is told otherwise, all takes a quarter longer.
is_optimized() {
  "$1" - <<'PYTHON'
import ctypes, lzma, pathlib, sqlite3, ssl, sys, sysconfig
by_hand = "--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or "") and sys.base_prefix != "/usr"
sys.exit(by_hand or not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())
PYTHON
}

# uv takes the interpreter of .venv, of UV_PYTHON or of PATH; the system's own, where that of PATH is a slow one
if [ ! -e .venv ] && [ -z "${UV_PYTHON:-}" ] && usual=$(uv python find --no-python-downloads 2>/dev/null) &&
  ! is_optimized "$usual" 2>/dev/null && own=$(PATH=/usr/bin:$PATH uv python find --no-python-downloads 2>/dev/null) &&
  [ "$own" != "$usual" ] && is_optimized "$own" 2>/dev/null; then
  say "taking $own: $usual was compiled without profile-guided optimization, or lacks its headers"
  export UV_PYTHON=$own
fi

# where there is no interpreter uv brings one, which has its headers
headers_are_missing() {
  local python
  python=$(uv python find --no-python-downloads ${UV_PYTHON:-} 2>/dev/null) || return 1
  "$python" -c 'import pathlib, sys, sysconfig; sys.exit((pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())'
}
if ! command -v cc >/dev/null; then install "a C compiler" gcc libc6-dev; fi
if headers_are_missing; then install "Python's headers" libpython3-dev; fi
if ! echo '#include <isa-l/crc.h>' | cc -E - >/dev/null 2>&1; then install "ISA-L, for checksums," libisal-dev; fi

say "installing the locked packages into .venv (some 1.1 GB where no cache has them), compiling the kernels (25 s of CPU)"
# what compiles the kernels is locked, too: an isolated build would run the registry's newest packages
uv sync --frozen --all-extras --no-install-project
uv sync --frozen --all-extras --reinstall-package binlane --no-build-isolation-package binlane
echo "$locked" > "$stamp"
