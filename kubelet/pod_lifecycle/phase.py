"""The phase of a pod: Pending, Running, Succeeded or Failed, computed from the statuses of its containers.

Pure. A pod that has processes to stop stays Running (`run_containers` in `containers`), and one whose deadline has
passed or that was preempted is Failed (`pod`).
"""

from collections.abc import Iterable, Sequence

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import podview

from .container import has_succeeded, is_over, never_ran
from .container_status import Container, Role, last_end

ContainerWithStatus = tuple[Container, ReadOnlyTree]


def running_pod_phase(
    init: Iterable[ContainerWithStatus], main: Sequence[ContainerWithStatus], *, is_initialized: bool
) -> str:
    """Return the phase of a pod whose containers may run.

    A pod is Failed when an init container has failed and is not restarted. Until the pod is initialized and each main
    container has run, it is Pending. When no main container will run again, it is Succeeded or Failed.
    """
    for container, status in init:
        ends_pod = container.role is Role.INIT and is_over(container, status)
        if ends_pod and not has_succeeded(container, status):
            return podview.FAILED
    if not is_initialized or any(never_ran(status) for _, status in main):
        return podview.PENDING
    if all(is_over(container, status) for container, status in main):
        all_succeeded = all(has_succeeded(container, status) for container, status in main)
        return podview.SUCCEEDED if all_succeeded else podview.FAILED
    return podview.RUNNING


def stopped_pod_phase(main_statuses: Iterable[ReadOnlyTree]) -> str:
    """Return the phase of a stopped pod: Succeeded if each main container ended with the exit code 0, or else Failed."""
    ends = [last_end(status) for status in main_statuses]
    return (
        podview.SUCCEEDED if all(end is not None and end["exitCode"] == 0 for end in ends) else podview.FAILED
    )
