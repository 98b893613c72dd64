"""Nodes that are cut off on purpose: by a Fault, or by a user's annotation."""

from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import CONTROL, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import STOP_HEARTBEATS, STOPPED_BY_FAULT, STOPS_HEARTBEATS

from .commands import command
from .explanation import Evidence, Explanation, Origin, Remedy
from .facts import Facts
from .remedies import MERGE, patched

FAULTS: Final = GroupResource(CONTROL, "faults")


def explain_cut_off(node: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain a node whose kubelet is disconnected on purpose; None if it is not."""
    value = meta.annotations(node).get(STOP_HEARTBEATS)
    if value not in STOPS_HEARTBEATS:
        return None
    name = meta.name(node)
    evidence = [Evidence(text=f"{STOP_HEARTBEATS} is {value}", source="metadata.annotations")]
    if value != STOPPED_BY_FAULT:
        return Explanation(
            cause=f"the node {name} is disconnected by the annotation {STOP_HEARTBEATS}",
            evidence=evidence,
            remedies=[
                patched(
                    "Connect it again:",
                    node,
                    {"metadata": {"annotations": {STOP_HEARTBEATS: None}}},
                    media_type=MERGE,
                )
            ],
            origins=[Origin.of(node, "metadata", "annotations", STOP_HEARTBEATS)],
        )
    faults = [
        fault
        for fault in facts.list(FAULTS)
        if "partition" in fault["spec"] and (fault["spec"].get("match") or {}).get("node") == name
    ]
    names = ", ".join(map(meta.name, faults))
    return Explanation(
        cause=f"the Fault {names} has cut the node {name} off"
        if names
        else f"a Fault with a partition has cut the node {name} off",
        evidence=evidence,
        remedies=[
            Remedy(
                text=f"Remove the Fault {meta.name(fault)}:",
                command=command("mockube", "fault", "remove", meta.name(fault)),
            )
            for fault in faults
        ],
        origins=[*map(Origin.of, faults)],
    )
