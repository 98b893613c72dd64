"""What is printed when a cluster is ready."""

import shlex
from typing import Final

from mockube.clusters.places import DEFAULT, Place
from mockube.clusters.record import MEMORY, Record

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


def greeting(place: Place, record: Record) -> str:
    name = "" if place.name == DEFAULT else f" --name {place.name}"
    return READY.format(
        version=record.version,
        nodes=record.nodes,
        elsewhere="" if record.detached else ". In another shell",
        kubeconfig=shlex.quote(str(place.kubeconfig)),
        kept=_KEPT[record.store != MEMORY].format(store=record.store),
        end=f"`mockube down{name}` ends it." if record.detached else "Ctrl+C ends it.",
    )
