"""What is known of a container before it runs: so a simulated one costs nothing while it runs.

A run-time whose containers really run knows nothing before (`NO_PREDICTIONS`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from mockube.apimachinery.tree import ReadOnlyTree

from .behavior import UNKNOWN_TIMELINE, RunBehavior, StopReaction, Timeline
from .images.table import PortBehavior
from .load import NO_LOAD, RunLoad
from .pod_script import Script
from .port_probe import PortAnswer, PortProbe
from .simulation_values import ASSUME


class Predictions(Protocol):
    def image_user(self, container: ReadOnlyTree) -> int | str | None:
        """Return the user of a container's image, or the name by which the image names it; None if it is unknown."""

    def knows_image(self, container: ReadOnlyTree) -> bool:
        """Return whether anything is known of the image of a container, such as its files."""

    def knows_default_command(self, container: ReadOnlyTree) -> bool:
        """Return whether it is known what a container does that runs the command of its image."""

    def unread_configuration(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
        """Return what gives a container's server a configuration that is not read, in words; "" if nothing does."""

    def missing_server(self, container: ReadOnlyTree) -> str:
        """Return the distribution that would read the configuration of a container's server; "" if none is missing."""

    def command_of(self, container: ReadOnlyTree) -> tuple[str, ...]:
        """Return a container's command, or else the command of its image if that is known."""

    def reads_input(self, container: ReadOnlyTree) -> bool:
        """Return whether the image's own command ends with its standard input."""

    def unknown_programs(self, pod: ReadOnlyTree) -> str:
        """Return what becomes of programs of a pod that are not simulated: `ASSUME`, `WAIT` or `FAIL`."""

    def program_of_run(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script
    ) -> Callable[..., RunBehavior | None]:
        """Return a function that returns what a run does, or None if nobody knows; its arguments `restarts` and `started` select the run."""

    def server_load(self, container: ReadOnlyTree, script: Script) -> RunLoad:
        """Return what the server of a container's image uses without requests; `NO_LOAD` if the container runs another program."""

    def end_of_entrypoint(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        script: Script,
        config_map: Callable[[str], ReadOnlyTree | None],
        secret: Callable[[str], ReadOnlyTree | None],
        *,
        host_pods: Iterable[ReadOnlyTree] = (),
    ) -> RunBehavior | None:
        """Return the end of an image's entrypoint that lacks a variable or its port; None if it has all, or nobody knows.

        The functions find objects; `host_pods` are the other pods in the network of the node, if the pod is one of them.
        """

    def reaction_of_run(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        script: Script,
        *,
        seconds: float,
    ) -> StopReaction:
        """Return what a run whose script handles signals does if it is stopped after so many seconds."""

    def ignores_term(self, container: ReadOnlyTree) -> bool:
        """Return whether the image's own program goes on after SIGTERM."""

    def lacks_command(self, container: ReadOnlyTree) -> bool:
        """Return whether certainly neither a container nor its image has a command."""

    def runs_server(self, container: ReadOnlyTree) -> bool:
        """Return whether the container runs the server of its image, which runs until it is stopped."""

    def is_simulated(self, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> bool:
        """Return whether the programs of a container's command are simulated, as far as its objects are known."""

    def unknown_program(self, pod: ReadOnlyTree, container: ReadOnlyTree, script: Script) -> str:
        """Return the program of a container's command that is not simulated, also if it fails; "" if there is none."""

    def handler_timeline(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        script: Script,
        argv: Sequence[str],
        *,
        restarts: int,
    ) -> Timeline:
        """Return the results of the command of a probe or a hook during a run."""

    def unknown_handler_program(self, pod: ReadOnlyTree, container: ReadOnlyTree, argv: Sequence[str]) -> str:
        """Return the program that the command of a probe or a hook lacks; "" if there is none."""

    def port_answer(
        self, pod: ReadOnlyTree, request: PortProbe, script: Script, *, seconds: float = 0.0
    ) -> PortAnswer:
        """Return what a port of a pod answers to an attempt of a probe, some seconds after the start of its container."""

    def port_behavior(self, pod: ReadOnlyTree, port: int) -> PortBehavior | None:
        """Return what the server of a pod does on a port; None if nobody knows, or nothing listens there."""

    def port_changes(self, pod: ReadOnlyTree, port: int) -> tuple[float, ...]:
        """Return the seconds after the start of a container at which the answers of a port change."""


class _NoPredictions:
    def image_user(self, _: ReadOnlyTree) -> int | str | None:
        return None

    def knows_image(self, _: ReadOnlyTree) -> bool:
        return True

    def knows_default_command(self, _: ReadOnlyTree) -> bool:
        return True

    def unread_configuration(self, _pod: ReadOnlyTree, _container: ReadOnlyTree) -> str:
        return ""

    def missing_server(self, _: ReadOnlyTree) -> str:
        return ""

    def command_of(self, container: ReadOnlyTree) -> tuple[str, ...]:
        return (*(container.get("command") or ()), *(container.get("args") or ()))

    def reads_input(self, _: ReadOnlyTree) -> bool:
        return False

    def unknown_programs(self, _: ReadOnlyTree) -> str:
        return ASSUME

    def program_of_run(
        self, _pod: ReadOnlyTree, _container: ReadOnlyTree, _script: Script
    ) -> Callable[..., RunBehavior | None]:
        return lambda **_: None

    def server_load(self, _container: ReadOnlyTree, _script: Script) -> RunLoad:
        return NO_LOAD

    def end_of_entrypoint(
        self,
        _pod: ReadOnlyTree,
        _container: ReadOnlyTree,
        _script: Script,
        _config_map: Callable[[str], ReadOnlyTree | None],
        _secret: Callable[[str], ReadOnlyTree | None],
        *,
        host_pods: Iterable[ReadOnlyTree] = (),
    ) -> RunBehavior | None:
        del host_pods
        return None

    def reaction_of_run(
        self,
        _pod: ReadOnlyTree,
        _container: ReadOnlyTree,
        _script: Script,
        *,
        seconds: float,
    ) -> StopReaction:
        del seconds
        return StopReaction()

    def ignores_term(self, _: ReadOnlyTree) -> bool:
        return False

    def lacks_command(self, _: ReadOnlyTree) -> bool:
        return False

    def runs_server(self, _: ReadOnlyTree) -> bool:
        return False

    def is_simulated(self, _pod: ReadOnlyTree, _container: ReadOnlyTree, _script: Script) -> bool:
        return False

    def unknown_program(self, _pod: ReadOnlyTree, _container: ReadOnlyTree, _script: Script) -> str:
        return ""

    def handler_timeline(
        self,
        _pod: ReadOnlyTree,
        _container: ReadOnlyTree,
        _script: Script,
        _argv: Sequence[str],
        *,
        restarts: int,
    ) -> Timeline:
        del restarts
        return UNKNOWN_TIMELINE

    def unknown_handler_program(
        self, _pod: ReadOnlyTree, _container: ReadOnlyTree, _argv: Sequence[str]
    ) -> str:
        return ""

    def port_answer(
        self, _pod: ReadOnlyTree, _request: PortProbe, _script: Script, *, seconds: float = 0.0
    ) -> PortAnswer:
        del seconds
        return PortAnswer(unknown="the container", is_listening=False)

    def port_behavior(self, _pod: ReadOnlyTree, _port: int) -> PortBehavior | None:
        return None

    def port_changes(self, _pod: ReadOnlyTree, _port: int) -> tuple[float, ...]:
        return ()


NO_PREDICTIONS: Final[Predictions] = _NoPredictions()
