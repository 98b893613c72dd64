"""helm: the one on PATH, or one that Go builds from its modules."""

import fcntl
import shutil
from pathlib import Path

from tests.support.processes import go_programs

MODULE = Path(__file__).parents[2] / "examples/helm"
PACKAGE = "helm.sh/helm/v3/cmd/helm"


def helm(folders):
    """Return its path, or skip the test. A built binary is shared by all workers of a run."""
    found = shutil.which("helm")
    if found:
        return Path(found)
    own = folders.getbasetemp()
    shared = (own.parent if own.name.startswith("worker-") else own) / "helm"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # The first build takes minutes: two at a time would take longer.
        if not shared.exists():
            go_programs.build(MODULE, folders.mktemp("helm") / "helm", PACKAGE).replace(shared)
    return shared
