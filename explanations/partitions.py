"""Faults, and nodes that are cut off on purpose: by a Fault, or by a user's annotation."""

from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NODES
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import STOP_HEARTBEATS, STOPPED_BY_FAULT, STOPS_HEARTBEATS
from mockube.component_base.counted import counted

from .commands import command
from .explanation import Evidence, Explanation, ObjectName, Origin, Related, Remedy, no_problem
from .facts import FAULTS, Facts
from .records import find_condition
from .remedies import MERGE, patched

_NO_EFFECTS: Final = frozenset({"match", "share", "skip", "times", "seed"})
"""The fields of a Fault that say when it has an effect."""


def explain_fault(fault: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain a Fault by what it does, and to what."""
    spec, status = fault["spec"], fault.get("status") or {}
    hits = counted(status.get("hits") or 0, "request has", "requests have")
    match = ", ".join(f"{name} {value}" for name, value in (spec.get("match") or {}).items())
    subject = f"requests that match {match}" if match else "all requests of users"
    effects = ", ".join(sorted({*spec} - _NO_EFFECTS))
    evidence = [Evidence(text=f"{hits} met it", source="status.hits")]
    if status.get("isExhausted"):
        return no_problem("it has harmed as many requests as it may", *evidence)
    name = (spec.get("match") or {}).get("node") or ""
    node = facts.find(NODES, "", name) if "partition" in spec else None
    ready = () if node is None else find_condition(node, "Ready")
    return Explanation(
        cause=f"it has cut the node {name} off" if "partition" in spec else f"it harms {subject}: {effects}",
        evidence=evidence,
        remedies=[_removal(fault)],
        related=[Related(object=ObjectName.of(node), cause=each.text) for each in ready if node],
        origins=[Origin.of(fault)],
    )


def _removal(fault: ReadOnlyTree) -> Remedy:
    return Remedy(
        text=f"Remove the Fault {meta.name(fault)}:",
        command=command("mockube", "fault", "remove", meta.name(fault)),
    )


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
        remedies=[*map(_removal, faults)],
        origins=[*map(Origin.of, faults)],
    )
