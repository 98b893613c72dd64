#!/bin/sh
# Makes the virtual environment: `tools/setup.sh run` installs what running needs, `tools/setup.sh dev` also what
# development needs. It uses uv where there is one, else the venv and pip of Python itself.
# PYTHON may name an interpreter, VENV the folder. Does nothing when the environment is already what it would make.
set -eu
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv}
level=${1:-dev}
# An interpreter that was named once is kept until another is named.
PYTHON=${PYTHON:-$(sed -n 's/^PYTHON=//p' "$VENV/.set-up-run" 2>/dev/null || true)}

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "mockube: $1"
    shift
    for line in "$@"; do say "  $line"; done
    exit 1
}

# The extras are installed for their entry points: they are imported from the checkout.
extras() { find extras -mindepth 2 -maxdepth 2 -name pyproject.toml 2>/dev/null | sort | sed 's|^\(.*\)/pyproject.toml|./\1|'; }

# A virtual environment knows its own path and the checkout's, so one that was copied or moved is made anew.
# pyproject.toml counts up to its [tool] tables: those are read when a tool runs.
state() {
    printf '%s\n' "PYTHON=$PYTHON" "$VENV" "$(pwd -P)"
    {
        for project in . $(extras); do sed '/^\[tool\./,$d' "$project/pyproject.toml"; done
        cat requirements/run.txt requirements/build.txt tools/setup.sh
        if [ "$1" = dev ]; then cat requirements/dev.txt; fi
    } | cksum
}

is_current() { [ -x "$VENV/bin/python" ] && [ "$(cat "$VENV/.set-up-$1" 2>/dev/null)" = "$(state "$1")" ]; }

# In an activated environment its own programs come first on the PATH; they must not make the environment that replaces it.
leave_environment() {
    [ -d "$VENV/bin" ] || return 0
    PATH=$(printf '%s\n' "$PATH" | tr : '\n' | while read -r folder; do
        [ "$folder" -ef "$VENV/bin" ] || printf '%s:' "$folder"
    done)
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

# The files of requirements/ are complete, so that no installer has to look for dependencies.
install_with_uv() { uv pip install --quiet --python "$VENV/bin/python" --no-deps "$@"; }

install_with_pip() { run_pip install --quiet --disable-pip-version-check --no-compile --no-deps "$@"; }

# The interpreter's own pip saves the seconds that it takes to install another one.
run_pip() {
    if "$VENV/bin/python" -c 'import pip' 2>/dev/null; then
        "$VENV/bin/python" -m pip "$@"
    else
        "$python" -m pip --python "$VENV/bin/python" "$@"
    fi
}

create_with_uv() { uv venv --quiet --python "$python" "$VENV"; }

create_with_pip() {
    if "$python" -m venv --without-pip "$VENV"; then
        if run_pip --version >/dev/null 2>&1 || "$VENV/bin/python" -m ensurepip >/dev/null; then return; fi
    fi
    fail "'$python' cannot make virtual environments." \
        "Debian and Ubuntu keep that in a package of its own: apt install python3-venv. Or install uv."
}

install() {
    "install_with_$installer" "$@" && return
    fail "the packages of requirements/ could not be installed; $installer said why, above." \
        "No network? Once there is one, type the same again: nothing is half done." \
        "Behind a proxy: set HTTPS_PROXY. With a mirror: set UV_DEFAULT_INDEX (uv) or PIP_INDEX_URL (pip) to its address." \
        "With a folder of wheels: set UV_FIND_LINKS (uv) or PIP_FIND_LINKS (pip) to its path."
}

install_run() {
    remove_old
    say "Making $VENV with $installer; this happens once, and again when requirements/ changes …"
    "create_with_$installer"
    install --require-hashes -r requirements/run.txt -r requirements/build.txt
    install --no-build-isolation -e . $(extras | sed 's/^/-e /')
}

install_dev() {
    say "Installing the tools of development into $VENV …"
    install --require-hashes -r requirements/dev.txt
}

# Python writes bytecode of what it imports when it first starts. Where it is told not to, each process would start in twice the time.
compile_all() {
    [ -n "${PYTHONDONTWRITEBYTECODE:-}" ] || return 0
    set -- "$VENV/lib"
    if [ -w . ]; then set -- "$@" apimachinery apiserver client component_base container_runtime controller_manager etcd explanations extras kubelet mockube network packs publisher scheduler; fi
    "$VENV/bin/python" -m compileall -q "$@" >/dev/null || true
}

if is_current "$level"; then exit 0; fi
leave_environment
python=$(find_python)
if uv --version >/dev/null 2>&1; then installer=uv; else installer=pip; fi
if ! is_current run; then
    install_run
    state run >"$VENV/.set-up-run"
fi
if [ "$level" = dev ]; then
    install_dev
    state dev >"$VENV/.set-up-dev"
fi
compile_all
