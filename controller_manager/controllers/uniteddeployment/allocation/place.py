"""What an allocator knows of a subset: what is asked for it, and how it stands."""

from dataclasses import dataclass
from typing import Final

from apimachinery.intstr import IntOrString

UNLIMITED: Final = 2**31 - 1


class AllocationError(ValueError):
    """What is asked for cannot be shared out; the message is upstream's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    name: str
    replicas: IntOrString | None = None
    min_replicas: IntOrString | None = None
    max_replicas: IntOrString | None = None
    exists: bool = False
    """It has a workload; of one that has none, all that follows is as here."""
    current: int = 0
    """The replicas that its workload is to have."""
    ready: int = 0
    unschedulable: bool = False
    marked: bool = False
    """It was unschedulable before this was looked at."""
    reserved: int = 0
    """Its pods that others stand for."""
