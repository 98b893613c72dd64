"""maxSurge and maxUnavailable of a Deployment as numbers of pods; upstream's `ResolveFenceposts`."""

from typing import NamedTuple

from mockube.apimachinery.intstr import IntOrString, scaled_value


class Fenceposts(NamedTuple):
    max_surge: int
    max_unavailable: int


def resolve_fenceposts(
    max_surge: IntOrString | None, max_unavailable: IntOrString | None, replicas: int
) -> Fenceposts:
    """Resolve numbers or percentages of the replicas to numbers of pods.

    maxSurge is rounded up and maxUnavailable down, so that a small workload keeps its pods. If both are 0, the result
    allows one unavailable pod, because the rollout could not begin otherwise.
    """
    surge = scaled_value(max_surge or 0, replicas, round_up=True)
    unavailable = scaled_value(max_unavailable or 0, replicas, round_up=False)
    return Fenceposts(surge, unavailable if surge or unavailable else 1)
