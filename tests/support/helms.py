"""helm: the one on PATH, or one that Go builds from its modules."""

import shutil
from pathlib import Path

from tests.support import gopher

MODULE = Path(__file__).parents[1] / "examples/helm"
PACKAGE = "helm.sh/helm/v3/cmd/helm"


def helm(folder):
    """Where it is; one that is built goes to the folder. Skips the test by name where there is none."""
    found = shutil.which("helm")
    return Path(found) if found else gopher.build(MODULE, folder / "helm", PACKAGE)
