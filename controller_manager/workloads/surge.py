"""How far a rollout may go: the pods beyond the wanted number, and those that may be missing."""

from typing import NamedTuple

from apimachinery.intstr import IntOrString, scaled


class Fenceposts(NamedTuple):
    surge: int
    unavailable: int


def fenceposts(
    max_surge: IntOrString | None, max_unavailable: IntOrString | None, replicas: int
) -> Fenceposts:
    """Both as numbers. A surge is rounded up and unavailability down, so that a small workload keeps its pods.

    Both may come to nothing by rounding; one pod may be missing then, or the rollout could not begin.
    """
    surge = scaled(max_surge or 0, replicas, round_up=True)
    unavailable = scaled(max_unavailable or 0, replicas, round_up=False)
    return Fenceposts(surge, unavailable if surge or unavailable else 1)
