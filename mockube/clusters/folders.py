"""Where a named cluster lies: `$XDG_DATA_HOME/mockube/clusters/NAME`, with everything that is kept of it.

Certificates and keys stay when it ends, so that its kubeconfig is good the next time; so does what `--keep` stores.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from mockube.etcd.errors import UnsafeDirectory
from mockube.failure import Failure, UsageError

DEFAULT: Final = "default"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


class ClusterFolder(Struct, frozen=True, kw_only=True):
    name: str
    path: Path

    @property
    def context(self) -> str:
        """As the cluster, its user and its context are called in a kubeconfig."""
        return "mockube" if self.name == DEFAULT else f"mockube-{self.name}"

    def prepare(self) -> None:
        """Private: its reader has the rights of the administrator."""
        from mockube.etcd.embedded.lock import check_private  # noqa: PLC0415 - most commands only look

        self.path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.path, self.pki, self.logs):
            folder.mkdir(mode=0o700, exist_ok=True)
            try:
                check_private(folder)
            except UnsafeDirectory as error:
                raise Failure(str(error)) from error

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def pki(self) -> Path:
        return self.path / "pki"

    @property
    def admin(self) -> Path:
        """The kubeconfig that the server writes, and the manager reads."""
        return self.pki / "admin.kubeconfig"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def log(self, component: str) -> Path:
        return self.logs / f"{component}.log"

    @property
    def data(self) -> Path:
        """What is stored, where it is kept."""
        return self.path / "data"

    @property
    def record(self) -> Path:
        return self.path / "running.json"

    @property
    def lock(self) -> Path:
        return self.path / "lock"


def cluster_folder(name: str, environment: Mapping[str, str]) -> ClusterFolder:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f'"{name}" is not a valid cluster name: use lower-case letters, digits and "-" between them, at most 40'
        )
    return ClusterFolder(name=name, path=clusters_folder(environment) / name)


def cluster_folders(environment: Mapping[str, str]) -> Sequence[ClusterFolder]:
    """Of every cluster that there is, by name."""
    folder = clusters_folder(environment)
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [ClusterFolder(name=name, path=folder / name) for name in names if _NAME.fullmatch(name)]


def clusters_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of all clusters. A relative $XDG_DATA_HOME is ignored, as the XDG specification requires."""
    xdg_data_home = Path(environment.get("XDG_DATA_HOME", ""))
    data = xdg_data_home if xdg_data_home.is_absolute() else Path.home() / ".local" / "share"
    return data / "mockube" / "clusters"
