"""What the two processes of a control plane are started with: the one place that knows both command lines."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mockube.plane.processes import ControlPlane

NODES = 3
KRUISE = "kruise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    kubeconfig: Path
    """Written when the server is ready."""
    nodes: int = NODES
    packs: str = KRUISE
    """Kinds to serve besides Kubernetes' own."""
    flags: Sequence[str] = ()
    """More flags of the API server."""
    log: Path | None = None
    """Where both write what they log; on this process's stderr if nowhere else."""


def control_plane(launch: Launch) -> ControlPlane:
    kubeconfig = str(launch.kubeconfig)
    return ControlPlane(
        server=python("apiserver", "--write-kubeconfig", kubeconfig, "--packs", launch.packs, *launch.flags),
        manager=python(
            "controller_manager",
            *("--kubeconfig", kubeconfig, "--simulate-nodes", str(launch.nodes)),
            *("--secure-port", "0", "--metrics-port", "0"),
        ),
        log=launch.log,
    )


def throwaway(folder: Path, *, nodes: int = NODES, packs: str = KRUISE, flags: Sequence[str] = ()) -> Launch:
    """All that is written goes to the folder; the port is a free one."""
    return Launch(
        kubeconfig=folder / "kubeconfig",
        nodes=nodes,
        packs=packs,
        flags=("--secure-port", "0", "--cert-dir", str(folder / "certificates"), *flags),
        log=folder / "log",
    )


def python(module: str, *arguments: str) -> Sequence[str]:
    return [sys.executable, "-m", module, *arguments]
