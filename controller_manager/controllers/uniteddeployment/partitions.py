"""How many pods of each subset keep their revision: as it is asked for, and never more than the subset has."""

from collections.abc import Mapping


def partitions(asked: Mapping[str, int], replicas: Mapping[str, int]) -> Mapping[str, int]:
    return {name: min(asked.get(name, 0), count) for name, count in replicas.items()}
