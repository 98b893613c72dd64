"""The pods of a workload: which of them are not ready, and why; and why others are not created."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import PODS
from mockube.apimachinery.quantity import parse as parse_quantity
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.counted import counted

from .assumptions import assumed_evidence, assumed_remedies, assumed_text
from .explanation import Evidence, Explanation, ObjectName, Related, Remedy, unknown
from .facts import Facts
from .owners import template_change, template_origin
from .pods import RECENT, explain_pod
from .records import condition_evidence, find_events, true_condition
from .refusals import Bound, in_cluster, refusal_of

MAX_EXPLAINED: Final = 3
"""The pods that are explained one by one: those of a workload mostly wait for the same thing."""


class Members:
    """The pods that an object controls."""

    def __init__(self, owner: ReadOnlyTree, facts: Facts) -> None:
        self.owner, self._facts = owner, facts
        namespace = meta.namespace(owner)
        self.is_readable = facts.may_list(PODS, namespace)
        owned = [pod for pod in facts.list(PODS, namespace) if meta.is_controlled_by(pod, owner)]
        pods = sorted(owned, key=lambda pod: str(meta.metadata(pod).get("creationTimestamp") or ""))
        self.ended = [pod for pod in pods if is_terminal(pod)]
        """Those that failed or succeeded, which the controllers do not count."""
        remaining = [pod for pod in pods if not is_terminal(pod)]
        self.pods = [pod for pod in remaining if not meta.is_deleting(pod)]
        self.ending = [pod for pod in remaining if meta.is_deleting(pod)]

    @property
    def failed(self) -> Sequence[ReadOnlyTree]:
        return [pod for pod in self.ended if pod["status"]["phase"] == "Failed"]

    @property
    def unready(self) -> Sequence[ReadOnlyTree]:
        return [pod for pod in self.pods if not conditions.is_true(pod, "Ready")]

    def all_ready(self, cause: str, *evidence: Evidence) -> Explanation:
        """Explain a workload whose pods are ready, which of them are so by assumption, and which were started again, or replaced."""
        failed = [pod for pod in reversed(self.failed) if self._has_ended_lately(pod)]
        restarted = [pod for pod in self.pods if _is_restarted(pod)]
        for pod in [*failed, *restarted][:MAX_EXPLAINED]:
            found = explain_pod(pod, self._facts)
            if found.state == "Explained":
                return replace(
                    found,
                    cause=f"{cause}; {meta.name(pod)}: {found.cause}",
                    evidence=[*found.evidence, *evidence],
                    related=related_of([(pod, found)]),
                )
        return Explanation(
            state="NoProblem",
            cause=f"{cause}{assumed_text(self.pods)}",
            evidence=[*evidence, *[*assumed_evidence(self.pods)][:MAX_EXPLAINED]],
            remedies=[*assumed_remedies(self.pods)],
        )

    def _has_ended_lately(self, pod: ReadOnlyTree) -> bool:
        times = [each.get("lastTransitionTime") or "" for each in conditions.of(pod)]
        ended = max(times, default="")
        return bool(ended) and self._facts.now - parse_time(ended) <= RECENT

    def explain(self, replicas: int, subject: str) -> Explanation | None:
        """Explain pods that are not ready, or that are missing; None if the pods are as they should be."""
        if not self.is_readable:
            return unknown(f"{subject} cannot be explained without the right to list its pods")
        if len(self.pods) < replicas and (refused := self.creation_failure(replicas)):
            return refused
        if self.unready:
            return self.explain_pods(self.unready, replicas)
        if len(self.pods) < replicas and self.failed:
            return self._explain_failed(replicas)
        if len(self.pods) < replicas:
            return unknown(
                f"{len(self.pods)} of {replicas} pods exist, and no failure of a creation is recorded",
                *self._other_pods(),
            )
        return None

    def explain_pods(self, pods: Sequence[ReadOnlyTree], replicas: int) -> Explanation:
        """Explain some of the unready pods: the cause of the first one that is known is that of the workload."""
        explained = explain_first(pods, self._facts)
        pod, first = explained[0]
        return Explanation(
            state=first.state if first.state != "NoProblem" else "Unknown",
            cause=f"{len(self.unready)} of {replicas} pods are not ready; {meta.name(pod)}: {first.cause}",
            evidence=[*first.evidence, *self._other_pods()],
            nodes=first.nodes,
            remedies=first.remedies,
            origins=first.origins,
            related=related_of(explained),
        )

    def _explain_failed(self, replicas: int) -> Explanation:
        """Explain pods that are missing because each one fails, as those that a kubelet rejects."""
        pod = self.failed[-1]
        found = explain_pod(pod, self._facts)
        count = counted(len(self.failed), "has", "have")
        return replace(
            found,
            cause=f"{len(self.pods)} of {replicas} pods exist, and {count} failed; {meta.name(pod)}: {found.cause}",
            evidence=[*found.evidence, *self._other_pods()],
            related=related_of([(pod, found)]),
        )

    def creation_failure(self, replicas: int) -> Explanation | None:
        """Explain pods that the server refuses to create, by the condition or else the newest Event about that."""
        failure = true_condition(self.owner, "ReplicaFailure")
        evidence = [*self._failed_creation()] if failure is None else [condition_evidence(failure)]
        if not evidence:
            return None
        namespace = meta.namespace(self.owner)
        message, missing = _said_by_server(evidence[0].text), max(1, replicas - len(self.pods))
        refusal = in_cluster(refusal_of(message, namespace, count=missing), namespace, self._facts)
        of_template = [template_origin(self.owner, self._facts, *refusal.field)] if refusal.field else []
        return Explanation(
            cause=f"{len(self.pods)} of {replicas} pods exist: {refusal.text}",
            evidence=[*evidence, *refusal.evidence, *self._other_pods()],
            remedies=[*self._bounded(refusal.bound), *refusal.remedies],
            origins=[*refusal.origins, *of_template],
        )

    def _bounded(self, bound: Bound | None) -> Iterator[Remedy]:
        """Yield the change of the first container that does not keep a bound."""
        if bound is None:
            return
        for container in self.owner["spec"]["template"]["spec"]["containers"]:
            resources = container.get("resources") or {}
            value = (resources.get(bound.field) or {}).get(bound.resource)
            if value and bound.is_kept(value):
                continue
            changes = {bound.field: {bound.resource: bound.amount}}
            requested = (resources.get("requests") or {}).get(bound.resource)
            if not bound.is_least and requested and parse_quantity(bound.amount) < parse_quantity(requested):
                changes["requests"] = {bound.resource: bound.amount}
            flags = [f"--{field}={bound.resource}={bound.amount}" for field in changes]
            yield template_change(
                self.owner,
                self._facts,
                f"Set {bound.field}.{bound.resource} of the container {container['name']} to {bound.amount}",
                {"containers": [{"name": container["name"], "resources": changes}]},
                command=("set resources", f"--containers={container['name']}", *flags),
            )
            return

    def _failed_creation(self) -> Sequence[Evidence]:
        """Return the newest Event about a failed creation, unless a later one succeeded."""
        failed = find_events(self.owner, self._facts, ("FailedCreate",), limit=1)
        created = find_events(self.owner, self._facts, ("SuccessfulCreate",), limit=1)
        return failed if failed and (not created or failed[0].time >= created[0].time) else ()

    def _other_pods(self) -> Iterator[Evidence]:
        """Yield how many pods do not count: those that are being deleted, and those that have ended."""
        for pods, state in (
            (self.ending, ("pod is being deleted", "pods are being deleted")),
            (self.ended, ("pod has ended", "pods have ended")),
        ):
            if pods:
                yield Evidence(text=f"{counted(len(pods), *state)}, such as {meta.name(pods[0])}")


def explain_first(pods: Sequence[ReadOnlyTree], facts: Facts) -> Sequence[tuple[ReadOnlyTree, Explanation]]:
    """Explain the first pods; those whose cause is known come first."""
    explained = [(pod, explain_pod(pod, facts)) for pod in pods[:MAX_EXPLAINED]]
    return sorted(explained, key=lambda pair: pair[1].state != "Explained")


def related_of(explained: Iterable[tuple[ReadOnlyTree, Explanation]]) -> Sequence[Related]:
    return [Related(object=ObjectName.of(obj), cause=found.cause) for obj, found in explained]


def _is_restarted(pod: ReadOnlyTree) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(each.get("restartCount") for each in statuses)


def _said_by_server(message: str) -> str:
    return message.removeprefix("(combined from similar events): ").removeprefix("Error creating: ")


def is_terminal(pod: ReadOnlyTree) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
