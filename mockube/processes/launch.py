"""The command lines of the two processes of a control plane."""

import asyncio
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Final

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.processes.child_processes import Program
from mockube.processes.control_plane import ControlPlane
from mockube.processes.defaults import KRUISE, NODES
from mockube.processes.preimport import preimport_command
from mockube.processes.supervised_process import Report

SERVER: Final = "apiserver"
MANAGER: Final = "controller-manager"

NODE_RESTRICTION: Final = "NodeRestriction"

ACCOUNTS_KEY: Final = "sa.key"
AUTHORITY: Final = ("ca.crt", "ca.key")
"""The certificate and key that sign certificates of clients, unless the server gets others."""
CLUSTER_SIGNING: Final = "--cluster-signing-"
"""In the server's folder of certificates."""
PYTHON: Final = (sys.executable, "-P")
"""Modules in the current folder must not be imported."""


class Launch(Struct, frozen=True, kw_only=True):
    kubeconfig: Path
    """The administrator's: written when the server listens."""
    logs: Path
    """A folder, in which each of them writes a file."""
    nodes: int = NODES
    packs: str = KRUISE
    """Kinds to serve besides Kubernetes' own."""
    flags: Sequence[str] = ()
    """More flags of the API server. Of two values of one flag the last counts."""
    manager_flags: Sequence[str] = ()

    @property
    def manager_kubeconfig(self) -> Path:
        """Beside the administrator's: the manager has the rights of roles alone."""
        return self.kubeconfig.with_name("controller-manager.kubeconfig")

    def log(self, component: str) -> Path:
        return self.logs / f"{component}.log"


def control_plane(launch: Launch, *, clock: Clock, report: Report) -> ControlPlane:
    kubeconfig = str(launch.manager_kubeconfig)
    server = [
        *(*PYTHON, "-m", "mockube.apiserver", "--write-kubeconfig", str(launch.kubeconfig)),
        *("--write-manager-kubeconfig", kubeconfig, "--packs", launch.packs),
        # Usage is simulated where nodes are; later flags, of the user, may change that.
        *("--simulate-metrics", str(launch.nodes > 0).lower()),
        *(*plugin_flags(launch.flags), *launch.flags),
    ]
    manager = [
        *("--kubeconfig", kubeconfig, "--simulate-nodes", str(launch.nodes)),
        *("--use-service-account-credentials", "true"),
        *("--secure-port", "0", "--metrics-port", "0"),
        *(*_signing_flags(launch.flags, launch.manager_flags), *launch.manager_flags),
    ]
    return ControlPlane(
        server=Program(name=SERVER, command=server, log=launch.log(SERVER)),
        manager=Program(
            name=MANAGER,
            command=preimport_command(PYTHON, "mockube.controller_manager", manager),
            log=launch.log(MANAGER),
        ),
        clock=clock,
        report=report,
    )


def plugin_flags(flags: Sequence[str]) -> Sequence[str]:
    """The admission plugins that kubeadm turns on, unless the flag names others."""
    return (
        ()
        if any(NODE_RESTRICTION in flag for flag in flags)
        else ("--enable-admission-plugins", NODE_RESTRICTION)
    )


def _signing_flags(server: Sequence[str], manager: Sequence[str]) -> Sequence[str]:
    """The manager signs with the keys that the server has in its folder, tokens and certificates, unless it has others."""
    words = [word for flag in server for word in flag.split("=", 1)]
    folders = [Path(value) for flag, value in pairwise(words) if flag == "--cert-dir"]
    if not folders:
        return ()
    flags: list[str] = []
    if not {"--service-account-key-file", "--service-account-signing-key-file"} & {*words}:
        flags += ("--service-account-private-key-file", str(folders[-1] / ACCOUNTS_KEY))
    if "--client-ca-file" not in words and not any(flag.startswith(CLUSTER_SIGNING) for flag in manager):
        certificate, key = (str(folders[-1] / name) for name in AUTHORITY)
        flags += ("--cluster-signing-cert-file", certificate, "--cluster-signing-key-file", key)
    return flags


class Shape(Struct, frozen=True, kw_only=True):
    """What a cluster consists of that is thrown away."""

    nodes: int = NODES
    packs: str = KRUISE
    flags: Sequence[str] = ()
    """More flags of the API server."""
    manager_flags: Sequence[str] = ()
    """And of the controller manager."""


def temporary_launch(folder: Path, shape: Shape) -> Launch:
    """All files are written to the folder; the port is a free one."""
    return Launch(
        kubeconfig=folder / "kubeconfig",
        logs=folder,
        nodes=shape.nodes,
        packs=shape.packs,
        flags=("--secure-port", "0", "--cert-dir", str(folder / "certificates"), *shape.flags),
        manager_flags=shape.manager_flags,
    )


def importing(name: str) -> asyncio.Task[ModuleType]:
    return asyncio.create_task(asyncio.to_thread(import_module, name))
