"""The pod failure policy and the success policy of a Job."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

from . import index_ranges
from .index_ranges import Intervals

IGNORE: Final = "Ignore"
FAIL_INDEX: Final = "FailIndex"
FAIL_JOB: Final = "FailJob"


class PodFailure(NamedTuple):
    """The result of the pod failure policy for a failed pod."""

    action: str
    """The action of the first rule that matches; empty if none does."""
    message: str = ""
    """The reason why the Job fails; empty if it does not fail."""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the backoff limit."""
        return self.action != IGNORE


NO_RULE: Final = PodFailure("")


def pod_failure(job: ReadOnlyTree, pod: PodView) -> PodFailure:
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        reason = _reason(rule, pod)
        if reason:
            action = rule["action"]
            message = f"{reason} matching {action} rule at index {index}" if action == FAIL_JOB else ""
            return PodFailure(action, message)
    return NO_RULE


def _reason(rule: ReadOnlyTree, pod: PodView) -> str:
    """Return the reason why the rule matches; empty if it does not."""
    name = f"{pod.key.namespace}/{pod.key.name}"
    if rule.get("onExitCodes") is not None:
        status = _matching_container(rule["onExitCodes"], pod.object.get("status") or {})
        if status is None:
            return ""
        code = status["state"]["terminated"].get("exitCode") or 0
        return f"Container {status['name']} for pod {name} failed with exit code {code}"
    condition = _matching_condition(rule.get("onPodConditions") or (), pod.object)
    return "" if condition is None else f"Pod {name} has condition {condition['type']}"


def _matching_container(requirement: ReadOnlyTree, status: ReadOnlyTree) -> ReadOnlyTree | None:
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field) or ():
            if _matches(requirement, container):
                container_status: ReadOnlyTree = container
                return container_status
    return None


def _matches(requirement: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    terminated = (container.get("state") or {}).get("terminated")
    name = requirement.get("containerName")
    if terminated is None or (name is not None and name != container["name"]):
        return False
    code = terminated.get("exitCode") or 0
    is_listed = code in (requirement.get("values") or ())
    operators = {"In": is_listed, "NotIn": not is_listed}
    return code != 0 and operators.get(requirement["operator"], False)


def _matching_condition(patterns: Sequence[Mapping[str, str]], pod: ReadOnlyTree) -> Mapping[str, str] | None:
    types_and_statuses = {(pattern["type"], pattern.get("status") or "True") for pattern in patterns}
    return next(
        (
            condition
            for condition in conditions.of(pod)
            if (condition["type"], condition.get("status")) in types_and_statuses
        ),
        None,
    )


def success_message(job: ReadOnlyTree, succeeded: Intervals) -> str:
    """Return the message about the rule of the success policy that is met; empty if none is."""
    rules: Iterable[ReadOnlyTree] = (job["spec"].get("successPolicy") or {}).get("rules") or ()
    if not succeeded:
        return ""
    for index, rule in enumerate(rules):
        if _is_met(rule, succeeded, job["spec"]["completions"]):
            return f"Matched rules at index {index}"
    return ""


def _is_met(rule: ReadOnlyTree, succeeded: Intervals, completions: int) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and index_ranges.total(succeeded) >= count
    required = index_ranges.parse(rule["succeededIndexes"], completions)
    if not required:
        return False
    common = index_ranges.overlap(required, succeeded)
    return common == index_ranges.total(required) or (count is not None and common >= count)
