"""Kinds that make pods: what is said of their templates, their names and of themselves."""

from collections.abc import Callable, Iterator
from typing import Final

from apimachinery import meta, names
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.resources.templates import TEMPLATES, template
from apiserver.validation.rules import Tree
from apiserver.warnings.addresses import of_ip
from apiserver.warnings.kind import Warnings
from apiserver.warnings.pods import of_template
from apiserver.warnings.volumes import of_claim

_OF_PODS: Final = "this is used in Pod names and hostnames"
_OF_POD: Final = "this is used in the Pod's hostname"
_MANY_COMPLETIONS, _MANY_AT_ONCE = 100_000, 10_000
_TOO_MANY: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)


def _name(tree: Tree, use: str) -> Iterator[str]:
    problems = names.check_dns1123_label(meta.name(tree))
    if problems:
        shown = " ".join(problems)
        yield (
            f"metadata.name: {use}, which can result in surprising behavior; a DNS label is recommended: [{shown}]"
        )


def _pods(kind: GroupKind) -> Callable[[Tree], list[str]]:
    way = TEMPLATES[kind]
    path = ROOT.child(*way)
    return lambda tree: of_template(template(way, tree), path, in_pod=not way)


def _is_new_generation(new: Tree, old: Tree) -> bool:
    return meta.generation(new) != meta.generation(old)


def _of_kind(group: str, kind: str, *, named: bool) -> Warnings:
    """Of one that has a template and nothing else to speak of."""
    pods = _pods(GroupKind(group, kind))

    def create(tree: Tree) -> Iterator[str]:
        if named:
            yield from _name(tree, _OF_PODS)
        yield from pods(tree)

    def update(new: Tree, old: Tree) -> Iterator[str]:
        if _is_new_generation(new, old):
            yield from pods(new)

    return Warnings(create=create, update=update)


# --- Pod, ReplicationController, DaemonSet

_OF_A_POD: Final = _pods(GroupKind("", "Pod"))
_OF_A_CONTROLLER: Final = _pods(GroupKind("", "ReplicationController"))
_OF_A_DAEMON_SET: Final = _pods(GroupKind("apps", "DaemonSet"))


def _create_pod(tree: Tree) -> Iterator[str]:
    yield from _name(tree, _OF_POD)
    yield from _OF_A_POD(tree)


def _update_pod_status(new: Tree, _old: Tree) -> Iterator[str]:
    for field in ("podIPs", "hostIPs"):
        path = ROOT.child("status", field)
        for index, address in enumerate((new.get("status") or {}).get(field) or ()):
            yield from of_ip(address.get("ip", ""), path.index(index).child("ip"))


def _create_controller(tree: Tree) -> Iterator[str]:
    yield from _name(tree, _OF_PODS)
    yield from _OF_A_CONTROLLER(tree)


def _update_controller(new: Tree, old: Tree) -> Iterator[str]:
    """Of the template as it was, as upstream has it."""
    if _is_new_generation(new, old):
        yield from _OF_A_CONTROLLER(old)


def _update_daemon_set(new: Tree, old: Tree) -> Iterator[str]:
    if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
        yield from _OF_A_DAEMON_SET(new)


# --- StatefulSet

_OF_A_STATEFUL_SET: Final = _pods(GroupKind("apps", "StatefulSet"))


def _of_stateful_set(tree: Tree, *within_claim: str) -> Iterator[str]:
    spec = tree.get("spec") or {}
    claims = ROOT.child("spec", "volumeClaimTemplates")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from of_claim(claim.get("spec"), claims.index(index).child(*within_claim))
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        yield "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


def _create_stateful_set(tree: Tree) -> Iterator[str]:
    yield from _OF_A_STATEFUL_SET(tree)
    yield from _of_stateful_set(tree)


def _update_stateful_set(new: Tree, old: Tree) -> Iterator[str]:
    if _is_new_generation(new, old):
        yield from _OF_A_STATEFUL_SET(new)
    yield from _of_stateful_set(new, "Spec")


# --- Job, CronJob

_OF_A_JOB: Final = _pods(GroupKind("batch", "Job"))
_OF_A_CRON_JOB: Final = _pods(GroupKind("batch", "CronJob"))


def _completions(job: Tree, path: str) -> Iterator[str]:
    spec = job.get("spec") or {}
    if (
        spec.get("completionMode") == "Indexed"
        and (spec.get("completions") or 0) > _MANY_COMPLETIONS
        and (spec.get("parallelism") or 0) > _MANY_AT_ONCE
    ):
        yield f"{path}: {_TOO_MANY}"


def _of_job(tree: Tree) -> Iterator[str]:
    yield from _completions(tree, "spec")
    yield from _OF_A_JOB(tree)


def _of_cron_job(tree: Tree) -> Iterator[str]:
    yield from _completions((tree.get("spec") or {}).get("jobTemplate") or {}, "spec.jobTemplate.spec")
    yield from _OF_A_CRON_JOB(tree)


def _create_job(tree: Tree) -> Iterator[str]:
    yield from _name(tree, _OF_PODS)
    yield from _of_job(tree)


def _update_job(new: Tree, old: Tree) -> Iterator[str]:
    if _is_new_generation(new, old):
        yield from _of_job(new)


def _create_cron_job(tree: Tree) -> Iterator[str]:
    yield from _name(tree, _OF_PODS)
    yield from _of_cron_job(tree)


def _update_cron_job(new: Tree, old: Tree) -> Iterator[str]:
    if _is_new_generation(new, old):
        yield from _of_cron_job(new)
    if "TZ" in (new.get("spec") or {}).get("schedule", ""):
        yield (
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )


WARNINGS: Final = {
    GroupKind("", "Pod"): Warnings(create=_create_pod, subresources={"status": _update_pod_status}),
    GroupKind("", "PodTemplate"): _of_kind("", "PodTemplate", named=False),
    GroupKind("", "ReplicationController"): Warnings(create=_create_controller, update=_update_controller),
    GroupKind("apps", "DaemonSet"): Warnings(create=_OF_A_DAEMON_SET, update=_update_daemon_set),
    GroupKind("apps", "Deployment"): _of_kind("apps", "Deployment", named=True),
    GroupKind("apps", "ReplicaSet"): _of_kind("apps", "ReplicaSet", named=True),
    GroupKind("apps", "StatefulSet"): Warnings(create=_create_stateful_set, update=_update_stateful_set),
    GroupKind("batch", "CronJob"): Warnings(create=_create_cron_job, update=_update_cron_job),
    GroupKind("batch", "Job"): Warnings(create=_create_job, update=_update_job),
}
