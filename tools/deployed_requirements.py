"""Write deploy/requirements/: the parts of requirements.lock that an image needs, to build mockube and to run it.

    python tools/deployed_requirements.py

Their lines are the lock's own. Dependencies are read from the installed distributions.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deploy" / "requirements"
ENTRY = re.compile(r"^([a-z0-9.-]+)==(?:.*\\\n)+.*\n", re.MULTILINE)
"""A distribution in the lock: its version, and a hash on each of the lines that follow."""


def parts() -> Mapping[str, str]:
    """Return the content of each file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    roots = {"run": project["project"]["dependencies"], "build": project["dependency-groups"]["build"]}
    lock = {match[1]: match[0] for match in ENTRY.finditer((ROOT / "requirements.lock").read_text())}
    return {
        f"{name}.txt": "".join(lock[needed] for needed in sorted(closure(requirements)))
        for name, requirements in roots.items()
    }


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the names of the requirements and of all that they need."""
    names: set[str] = set()
    left = [Requirement(one) for one in requirements]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if name in names or not _applies(requirement):
            continue
        names.add(name)
        left += map(Requirement, requires(name) or ())
    return names


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in parts().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
