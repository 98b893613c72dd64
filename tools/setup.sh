#!/bin/sh
# Makes the virtual environment from the lock: with uv where there is one, else with the venv and pip of Python itself.
set -eu
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "mockube needs Python 3.11 or newer, and '$PYTHON' is $("$PYTHON" -V 2>&1). Try: make PYTHON=python3.12 …" >&2
    exit 1
}
if command -v uv >/dev/null 2>&1; then
    uv venv --quiet --allow-existing --python "$PYTHON" "$VENV"
    uv pip install --quiet --python "$VENV/bin/python" --require-hashes -r requirements.lock
    uv pip install --quiet --python "$VENV/bin/python" --no-deps --no-build-isolation -e .
else
    "$PYTHON" -m venv "$VENV"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
fi
