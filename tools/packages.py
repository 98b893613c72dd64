"""The packages of the distribution, as pyproject.toml lists them."""

import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: Final[tuple[str, ...]] = tuple(_PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
