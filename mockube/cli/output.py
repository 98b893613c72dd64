"""What commands print, and the codes that they end with."""

import shlex
import signal
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from mockube.clusters.places import DEFAULT, ClusterFolder
from mockube.clusters.record import MEMORY, Record
from mockube.failure import Failure, Missing, Misused, TimedOut


def table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the head. As wide as what is in it, three spaces between."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


class Code(IntEnum):
    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    TIMEOUT = 4
    UNHEALTHY = 5
    """Of a cluster or of a machine that was looked at: the answer, and no failure."""


CODES: Final[Mapping[type[Failure], Code]] = {
    Failure: Code.ERROR,
    Misused: Code.USAGE,
    Missing: Code.NOT_FOUND,
    TimedOut: Code.TIMEOUT,
}


def code_of(failure: Failure) -> Code:
    return next(CODES[kind] for kind in type(failure).__mro__ if kind in CODES)


def signal_exit_code(number: signal.Signals) -> int:
    """As shells tell that a signal has ended a command."""
    return 128 + number


READY: Final = """mockube {version}: a Kubernetes cluster is ready, with {nodes} simulated nodes{elsewhere}:

  export KUBECONFIG={kubeconfig}
  kubectl get nodes
  kubectl create deployment web --image=nginx --replicas=3
  kubectl get pods -o wide

{kept}
{end}"""

_KEPT: Final = {
    True: "What is stored is kept in {store}.",
    False: "What is stored is gone with it; `mockube up --keep` would keep it.",
}


def greeting(place: ClusterFolder, record: Record) -> str:
    name = "" if place.name == DEFAULT else f" --name {place.name}"
    return READY.format(
        version=record.version,
        nodes=record.nodes,
        elsewhere="" if record.detached else ". In another shell",
        kubeconfig=shlex.quote(str(place.kubeconfig)),
        kept=_KEPT[record.store != MEMORY].format(store=record.store),
        end=f"`mockube down{name}` ends it." if record.detached else "Ctrl+C ends it.",
    )
