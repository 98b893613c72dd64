"""The packages of the distribution, as pyproject.toml lists them, its extras, and how each is built."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: Final[tuple[str, ...]] = tuple(_PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
EXTRAS: Final = tuple(sorted(path.parent for path in ROOT.glob("extras/*/pyproject.toml")))
"""The folders of the extras, each a distribution of its own."""
CODE: Final = (*PACKAGES, "extras")
"""The folders with the code of all distributions."""


def build_package(target: str, folder: Path, *, tree: Path = ROOT, **variables: str) -> Path:
    """Build the `wheel` or the `sdist` of a checkout or an extra into a folder, and return the file."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    command += ["--directory", str(folder.absolute())]
    subprocess.run(command, cwd=tree, env=os.environ | variables, check=True, capture_output=True)
    name = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["name"].replace("-", "_")
    return next(folder.glob(f"{name}-*.whl" if target == "wheel" else f"{name}-*.tar.gz"))
