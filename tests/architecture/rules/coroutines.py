"""Rule: a controller decides by pure functions, and has no coroutines; the runnables that the table names have some."""

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.source import Finding, Module

CONTROLLERS, WORKLOADS = "controller_manager/controllers/", "controller_manager/workloads/"
PACKS = "packs/"
"""Nothing in a pack has coroutines but its webhooks: no pack has a runnable."""

RUNNABLES: Mapping[str, str] = {
    "certificates/approving.py": "it requests a SubjectAccessReview before it approves",
    "certificates/cleaner.py": "it examines all requests at intervals",
    "csi/provisioner.py": "it creates one storage class at the start, after it has listed all",
    "devicetainteviction/rules.py": "it runs two controllers that share counts",
    "garbagecollector/": "it reads owners of all kinds from the server before it deletes their dependents",
    "horizontalpodautoscaler/": "it reads metrics and scales from the server",
    "legacytokencleaner/": "it examines all tokens once a day",
    "namespace/": "it deletes all objects of a namespace, and lists what remains",
    "nodeipam/": "it allocates from ranges that it remembers, and releases those that it could not write",
    "nodelifecycle/": "it measures at intervals how long all heartbeats are overdue",
    "podgc/": "it examines all pods at intervals, and reads nodes from the server before it deletes their pods",
    "resourcequota/": "it discovers the kinds that a quota can count",
    "serviceloadbalancer/": "it allocates addresses that it remembers, and releases them",
    "storageversionmigrator/": "it reads all objects of a resource from the server, and writes each",
    "tainteviction/": "it remembers since when a pod tolerates a taint",
    "validatingadmissionpolicystatus/": "it reads the schemas of the server's kinds",
}
"""Which controllers cannot decide from the caches alone, and why. An entry that is no longer needed is an error, too."""


def check(module: Module, runnables: Mapping[str, str] = RUNNABLES) -> Iterator[Finding]:
    if (
        module.path.startswith(WORKLOADS)
        or (module.path.startswith(PACKS) and "/webhooks/" not in module.path)
        or (
            module.path.startswith(CONTROLLERS)
            and not module.path.removeprefix(CONTROLLERS).startswith(tuple(runnables))
        )
    ):
        yield from coroutines(module)


def coroutines(module: Module) -> Iterator[Finding]:
    for node in module.nodes:
        if isinstance(node, ast.AsyncFunctionDef):
            yield Finding(node.lineno, f"{node.name} is a coroutine: return a plan of actions instead")
