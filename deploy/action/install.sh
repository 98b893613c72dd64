#!/bin/sh
# Installs mockube into a virtual environment of its own, and puts only its command on the PATH of later steps.
set -eu
package=${MOCKUBE_PACKAGE:-$(cd "$(dirname "$0")/../.." && pwd)}
environment=$RUNNER_TEMP/mockube
if uv --version >/dev/null 2>&1; then
    uv venv --quiet --python ">=3.11" "$environment"
    uv pip install --quiet --python "$environment" "$package"
else
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check "$package"
fi
mkdir -p "$environment/command"
ln -sf ../bin/mockube "$environment/command/mockube"
echo "$environment/command" >>"$GITHUB_PATH"
