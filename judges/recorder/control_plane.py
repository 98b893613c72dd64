"""A real control plane with an empty store, set up as the one that the recordings come from."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.golden import golden
from tests.support.processes.real_kubernetes import (
    RealApiServer,
    RealManager,
    RealScheduler,
    write_kubeconfig,
)
from tests.support.recorded.recordings import FOLDER
from tests.support.stores.etcd_server import QUICK, EtcdServer


@dataclass(frozen=True)
class ControlPlane:
    url: str
    kubeconfig: Path
    audit: Path


@contextmanager
def control_plane(
    folder: Path, *, with_controllers: bool, with_scheduler: bool = True, manager_flags: tuple[str, ...] = ()
) -> Iterator[ControlPlane]:
    with ExitStack() as stack:
        etcd = stack.enter_context(EtcdServer(options=QUICK))
        tokens = FOLDER / "tokens.csv"
        server = stack.enter_context(
            RealApiServer(folder, etcd, tokens=tokens, flags=("--allow-privileged",))
        )
        token = tokens.read_text().partition(",")[0]
        wait_served(server, token)
        kubeconfig = write_kubeconfig(folder / "admin", server.url, server.authority, token)
        if with_controllers:
            for number, component in enumerate((RealManager, RealScheduler)[: 1 + with_scheduler]):
                home = folder / str(number)
                home.mkdir()
                of = (home, kubeconfig, manager_flags) if component is RealManager else (kubeconfig,)
                stack.enter_context(component(*of))
        yield ControlPlane(server.url, kubeconfig, folder / "audit")


def wait_served(server: RealApiServer, token: str) -> None:
    """Poll until the server has created what it needs, or has ended."""
    client = golden.Server(server.url, token)
    while client.send({"method": "GET", "path": "/readyz"})["status"] != 200:
        assert server.is_running, "".join(server.log)
