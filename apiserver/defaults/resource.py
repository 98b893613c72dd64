"""Defaults of resource.k8s.io: claims to devices, and devices."""

from typing import Final

from apimachinery.clock import Clock
from apimachinery.timestamps import format_time
from apiserver.defaults.table import Table, Tree, of

_EXACT_COUNT: Final = "ExactCount"


def _count(request: Tree) -> None:
    if request["allocationMode"] == _EXACT_COUNT:
        request.setdefault("count", 1)


_REQUEST: Final = ({"allocationMode": _EXACT_COUNT}, _count)


def defaults(clock: Clock) -> Table:
    """A taint is from when it is first seen."""

    def time_added(taint: Tree) -> None:
        if "timeAdded" not in taint:
            taint["timeAdded"] = format_time(clock.now())

    return of(
        "io.k8s.api.resource.v1",
        {
            "ExactDeviceRequest": _REQUEST,
            "DeviceSubRequest": _REQUEST,
            "DeviceTaint": time_added,
            "NodeAllocatableResourceMapping": {"allocationMultiplier": "1"},
        },
    )
