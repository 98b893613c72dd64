"""How an advanced set says that its pods are updated, with what the absence of a field means."""

from dataclasses import dataclass
from enum import Enum

from apimachinery import intstr
from apimachinery.intstr import IntOrString
from controller_manager.runtime.resource import Tree


class Policy(Enum):
    RECREATE = "ReCreate"
    IN_PLACE_IF_POSSIBLE = "InPlaceIfPossible"
    IN_PLACE_ONLY = "InPlaceOnly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    is_said: bool
    """Without it, pods are replaced one by one, and new ones follow what the status says."""
    paused: bool
    policy: Policy
    grace_seconds: int
    """How long a pod is out of service before it changes in place."""
    kept: int
    """How many pods keep the current revision."""
    max_unavailable: int
    min_ready_seconds: int
    unordered: bool
    priority: Tree | None

    @classmethod
    def of(cls, spec: Tree) -> "Strategy":
        """The strategy, or `IntOrStringError`."""
        said = (spec.get("updateStrategy") or {}).get("rollingUpdate")
        rolling = said or {}
        replicas = 1 if spec.get("replicas") is None else spec["replicas"]
        unordered = rolling.get("unorderedUpdate")
        return cls(
            is_said=said is not None,
            paused=bool(rolling.get("paused")),
            policy=_policy(rolling.get("podUpdatePolicy")),
            grace_seconds=(rolling.get("inPlaceUpdateStrategy") or {}).get("gracePeriodSeconds") or 0,
            kept=min(max(rolling.get("partition") or 0, 0), replicas),
            max_unavailable=at_least_one(rolling.get("maxUnavailable"), replicas),
            min_ready_seconds=rolling.get("minReadySeconds") or 0,
            unordered=unordered is not None,
            priority=(unordered or {}).get("priorityStrategy"),
        )


def _policy(name: str | None) -> Policy:
    """Whatever does not ask for it in place is made anew."""
    return next((policy for policy in Policy if policy.value == name), Policy.RECREATE)


def at_least_one(limit: IntOrString | None, replicas: int) -> int:
    """A share is rounded down."""
    return max(intstr.scaled(1 if limit is None else limit, replicas, round_up=False), 1)
