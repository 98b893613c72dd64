"""The programs of a pod's containers: what their commands do in the context of the pod. Pure."""

from collections.abc import Callable
from functools import partial
from itertools import takewhile

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.environment import identity_of, known_environment
from mockube.controller_manager.kubelet.containers.mounts import shared_mount_paths, writable_paths
from mockube.controller_manager.kubelet.containers.program import (
    CommandContext,
    Invocation,
    MountPaths,
    RunBehavior,
    invocation_of,
    program_of,
)
from mockube.controller_manager.kubelet.pod_script import Script


def program_of_run(
    pod: ReadOnlyTree, container: ReadOnlyTree, script: Script
) -> Callable[..., RunBehavior | None]:
    """Return a function that returns the container's program; its argument `restarts` selects the run."""
    earlier = _earlier_commands(pod, container, script)
    shared_mounts = shared_mount_paths(pod, container) if earlier else ()
    return partial(program_of, container, _context(pod, container, script, shared_mounts, earlier))


def _context(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    script: Script,
    shared_mounts: MountPaths,
    earlier: tuple[Invocation, ...] = (),
) -> CommandContext:
    return CommandContext(
        script=script.command(container["name"]),
        environment=partial(known_environment, pod, container),
        identity=identity_of(pod, container),
        volumes=writable_paths(pod, container),
        shared_mounts=shared_mounts,
        earlier=earlier,
    )


def _earlier_commands(pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> tuple[Invocation, ...]:
    """Return the commands of the init containers that run before a container and share volumes with others."""
    others = pod["spec"].get("initContainers")
    if not others or not container.get("volumeMounts"):
        return ()
    invocations = (
        invocation_of(other, _context(pod, other, script, shared_mounts))
        for other in takewhile(lambda other: other is not container, others)
        if (shared_mounts := shared_mount_paths(pod, other))
    )
    return tuple(invocation for invocation in invocations if invocation is not None)
