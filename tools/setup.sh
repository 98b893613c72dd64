#!/bin/sh
# Makes the virtual environment from the lock: with uv where there is one, else with the venv and pip of Python itself.
# PYTHON may name an interpreter, VENV the folder. Does nothing when the environment is already what it would make.
set -eu
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv}
stamp=$VENV/.set-up
# An interpreter that was named once is kept until another is named.
PYTHON=${PYTHON:-$(sed -n 's/^PYTHON=//p' "$stamp" 2>/dev/null || true)}

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "mockube: $1"
    shift
    for line in "$@"; do say "  $line"; done
    exit 1
}

# A virtual environment knows its own path and the checkout's, so one that was copied or moved is made anew.
# pyproject.toml counts up to its [tool] tables: those are read when a tool runs.
state() {
    printf '%s\n' "PYTHON=$PYTHON" "$VENV" "$(pwd -P)"
    { sed '/^\[tool\./,$d' pyproject.toml; cat requirements.lock tools/setup.sh; } | cksum
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    set -- python3 python3.14 python3.13 python3.12 python3.11 python
    if [ -n "$PYTHON" ]; then set -- "$PYTHON"; fi
    for candidate in "$@"; do
        if is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    tried=${PYTHON:-python3}
    found=$("$tried" --version 2>/dev/null) || found="not here"
    fail "needs Python 3.11 or newer, and '$tried' is $found." "Name another one: make PYTHON=/path/to/python3.12 …"
}

# Only a virtual environment is ever removed: VENV might name a folder that holds something else.
remove_old() {
    if [ -e "$VENV" ] && [ ! -e "$VENV/pyvenv.cfg" ]; then
        fail "$VENV is there and is no virtual environment. Remove it, or name another: make VENV=/tmp/mockube-venv …"
    fi
    rm -rf "$VENV"
}

install_with_uv() {
    uv venv --quiet --python "$1" "$VENV" &&
        uv pip install --quiet --python "$VENV/bin/python" --compile-bytecode --require-hashes -r requirements.lock &&
        uv pip install --quiet --python "$VENV/bin/python" --no-deps --no-build-isolation -e .
}

install_with_pip() {
    "$1" -m venv "$VENV" || fail "'$1' cannot make virtual environments." \
        "Debian and Ubuntu keep that in a package of its own: apt install python3-venv. Or install uv."
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock &&
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
}

if [ -x "$VENV/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$(state)" ]; then
    exit 0
fi

python=$(find_python)
remove_old
if uv --version >/dev/null 2>&1; then installer=uv; else installer=pip; fi
say "Making $VENV with $installer; this happens once, and again when requirements.lock changes …"
"install_with_$installer" "$python" || fail "the packages of requirements.lock could not be installed; $installer said why, above." \
    "No network? Once there is one, type the same again: nothing is half done." \
    "Behind a proxy: set HTTPS_PROXY. With a mirror: set UV_DEFAULT_INDEX (uv) or PIP_INDEX_URL (pip) to its address." \
    "With a folder of wheels: set UV_FIND_LINKS (uv) or PIP_FIND_LINKS (pip) to its path."
# A process then starts in half the time, also where Python is told to write no bytecode of its own.
if [ -w . ]; then "$VENV/bin/python" -m compileall -q apimachinery apiserver component_base controller_manager etcd mockube packs; fi
state >"$stamp"
