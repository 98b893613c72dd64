"""Which function converts which objects."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from apiserver.resources.conversion import autoscalers, events
from apiserver.resources.spec import GroupVersion
from apiserver.storage.stored import Tree


class Conversion(NamedTuple):
    """Between a version and the one that is stored. Trees are answered anew, and share their parts."""

    to_stored: Callable[[Tree], Tree]
    from_stored: Callable[[Tree], Tree]


Conversions: TypeAlias = Mapping[tuple[GroupVersion, str], Conversion]
"""By a version that is not stored, and the resource's name."""

CONVERSIONS: Conversions = MappingProxyType(
    {
        (("events.k8s.io", "v1"), "events"): Conversion(events.to_core, events.to_events),
        (("autoscaling", "v1"), "horizontalpodautoscalers"): Conversion(autoscalers.to_v2, autoscalers.to_v1),
    }
)
