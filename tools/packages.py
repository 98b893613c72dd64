"""The packages of the distribution, as pyproject.toml lists them, and how it is built."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: Final[tuple[str, ...]] = tuple(_PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])


def build_package(target: str, folder: Path, *, tree: Path = ROOT, **variables: str) -> Path:
    """Build the `wheel` or the `sdist` of a checkout into a folder, and return the file."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    command += ["--directory", str(folder.absolute())]
    subprocess.run(command, cwd=tree, env=os.environ | variables, check=True, capture_output=True)
    return next(folder.glob("*.whl" if target == "wheel" else "*.tar.gz"))
