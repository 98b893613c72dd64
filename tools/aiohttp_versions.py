"""Run the tests of the server's connections with each release of aiohttp that pyproject.toml allows.

    python -m tools.aiohttp_versions [RELEASE …]

The server uses names of aiohttp that are not public (`component_base/aiohttp_protocol.py`), which any release may change. Each
release is installed into a temporary folder, in front of the one of the environment. Before `<` in pyproject.toml is raised, run it
with the new release, or with a folder that has its source and compiled parser.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.packages import ROOT

FIRST: Final = (3, 14, 1)
BEFORE: Final = (3, 16)
ALLOWED: Final = f"aiohttp>={'.'.join(map(str, FIRST))},<{'.'.join(map(str, BEFORE))}"
"""The requirement in pyproject.toml."""
RELEASES: Final = ("3.14.1", "3.14.2", "3.14.3", "3.14.4", "3.14.5")
TESTS: Final = (
    "tests/unit/apiserver/http",
    "tests/unit/component_base/test_aiohttp_protocol.py",
    "tests/unit/kubelet/test_listener.py",
    "tests/property/test_request_pieces.py",
    "tests/integration/test_listening.py",
    "tests/integration/test_listening_end.py",
)


def is_allowed(release: str) -> bool:
    """Return whether pyproject.toml allows a release."""
    return FIRST <= tuple(int(part) for part in re.findall(r"\d+", release)[:3]) < BEFORE


def check(release: str) -> bool:
    """Return whether the tests pass with a release, or with the one that is installed in a folder."""
    print(f"aiohttp {release}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(release) if Path(release).is_dir() else Path(temporary)
        if not Path(release).is_dir():
            uv = Path(sys.executable).with_name("uv")
            install = [uv, "pip", "install", "-q", "--python", sys.executable, "--target", folder]
            subprocess.run([*install, f"aiohttp=={release}"], check=True)
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, "-m", "pytest", "-q", *TESTS]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> None:
    failed = [release for release in sys.argv[1:] or RELEASES if not check(release)]
    if failed:
        sys.exit(f"the tests fail with aiohttp {', '.join(failed)}")


if __name__ == "__main__":
    main()
