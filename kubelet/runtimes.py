"""The run-times of the kubelets' containers: which there are, and which of them runs a container.

Everything else in the kubelet knows only the contract, `container_runtime.runtime`.
"""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import NAMESPACES, NODES, PODS
from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.image_service import ImageService, StoredImage
from mockube.container_runtime.images.table import ImageTable, load_table, table_of
from mockube.container_runtime.kwok.runtime import KwokRuntime
from mockube.container_runtime.load import Stats
from mockube.container_runtime.logs import LogSource
from mockube.container_runtime.port_probe import PortAnswer, PortProbe
from mockube.container_runtime.runs import ContainerRun
from mockube.container_runtime.runtime import (
    Attachment,
    Command,
    ContainerRuntime,
    ExecRequest,
    PortConnection,
    RuntimeEvents,
)
from mockube.container_runtime.simulated.image_service import SimulatedImages
from mockube.container_runtime.simulated.predictions import SimulatedPredictions
from mockube.container_runtime.simulated.runtime import SimulatedRuntime, SimulationContext
from mockube.container_runtime.simulation_values import HOST
from mockube.container_runtime.state import ContainerKill, ContainerState
from mockube.container_runtime.unknown_programs import UnknownPrograms
from mockube.container_runtime.volume_folders import VolumeFolders
from mockube.network.policies import is_allowed
from mockube.network.view import Peer, peer_of

from .api_server_access import ApiServerAccess
from .containers import Containers
from .kept_contents import KeptContents
from .kwok_objects import kwok_objects
from .network_view import InformerView
from .node_connections import NodeConnections
from .node_machine.services import MachineServices
from .node_objects import internal_ip
from .pod_lifecycle.containers import default_program
from .pod_records import pod_records
from .pod_versions import PodWatchers
from .probes.totals import ProbeRecords
from .references import PodReferences, reference_loader
from .settings import KubeletContext

if TYPE_CHECKING:
    from mockube.container_runtime.pod_network.network import PodNetwork
    from mockube.container_runtime.process.runtime import ProcessRuntime


class ChosenRuntime:
    """The run-time of each container: processes where there is a command for the image, or else the simulation."""

    def __init__(self, processes: ContainerRuntime, simulated: ContainerRuntime) -> None:
        self._processes = processes
        self._simulated = simulated
        self._all = (processes, simulated)

    def _of(self, pod: ReadOnlyTree, name: str) -> ContainerRuntime:
        return self._processes if self._processes.runs(pod, name) else self._simulated

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._simulated.running(), self._processes.running():
            yield

    def runs(self, pod: ReadOnlyTree, name: str) -> bool:
        return any(runtime.runs(pod, name) for runtime in self._all)

    def states(self, pod: ReadOnlyTree) -> Mapping[str, ContainerState]:
        return {**self._simulated.states(pod), **self._processes.states(pod)}

    def disk_usage(self, pod: ReadOnlyTree) -> DiskUsage | None:
        return self._simulated.disk_usage(pod)

    def node_disk_use(self, node: str) -> int:
        return self._simulated.node_disk_use(node)

    def node_path_type(self, node: str, path: str) -> str:
        return self._simulated.node_path_type(node, path)

    def node_files(self, node: str, folder: str) -> Mapping[str, bytes] | None:
        return self._simulated.node_files(node, folder)

    def add_node_files(self, node: str, files: Mapping[str, bytes]) -> None:
        self._simulated.add_node_files(node, files)

    def kills(self, pod: ReadOnlyTree) -> Mapping[str, ContainerKill]:
        return {**self._simulated.kills(pod), **self._processes.kills(pod)}

    def container_stats(self, pod: ReadOnlyTree, name: str) -> Stats | None:
        return self._of(pod, name).container_stats(pod, name)

    def may_change(self, pod: ReadOnlyTree) -> bool:
        return any(runtime.may_change(pod) for runtime in self._all)

    def live_handlers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, tuple[str, ...]]:
        return self._of(pod, container["name"]).live_handlers(pod, container)

    def start_container(self, pod: ReadOnlyTree, name: str, restarts: int) -> None:
        self._of(pod, name).start_container(pod, name, restarts)

    def stop_container(self, pod: ReadOnlyTree, name: str, grace: float) -> None:
        self._of(pod, name).stop_container(pod, name, grace)

    def update_pod(self, pod: ReadOnlyTree) -> None:
        for runtime in self._all:
            runtime.update_pod(pod)

    def remove_containers(self, uid: str) -> None:
        for runtime in self._all:
            runtime.remove_containers(uid)

    def remove_pod(self, uid: str) -> None:
        for runtime in self._all:
            runtime.remove_pod(uid)

    async def exec_sync(
        self,
        pod: ReadOnlyTree,
        name: str,
        command: Sequence[str],
        seconds: float,
        *,
        restarts: int | None = None,
        on_unknown: Callable[[str], None] = lambda _: None,
    ) -> CommandResult | None:
        runtime = self._of(pod, name)
        return await runtime.exec_sync(pod, name, command, seconds, restarts=restarts, on_unknown=on_unknown)

    async def probe_port(
        self, pod: ReadOnlyTree, name: str, request: PortProbe, *, restarts: int | None = None
    ) -> PortAnswer:
        return await self._of(pod, name).probe_port(pod, name, request, restarts=restarts)

    async def exec(self, pod: ReadOnlyTree, name: str, request: ExecRequest) -> Command:
        return await self._of(pod, name).exec(pod, name, request)

    def attach(
        self, pod: ReadOnlyTree, name: str, *, has_terminal: bool
    ) -> AbstractAsyncContextManager[Attachment]:
        return self._of(pod, name).attach(pod, name, has_terminal=has_terminal)

    async def logs(self, pod: ReadOnlyTree, name: str, run: ContainerRun) -> LogSource:
        return await self._of(pod, name).logs(pod, name, run)

    async def port_forward(self, pod: ReadOnlyTree, port: int) -> PortConnection:
        has_process = self._processes.listener(pod, port) is not None
        return await (self._processes if has_process else self._simulated).port_forward(pod, port)

    def listener(
        self, pod: ReadOnlyTree, port: int, *, simulated: bool = True, source: str = "127.0.0.1"
    ) -> PortConnection | None:
        connect = self._processes.listener(pod, port, source=source)
        if connect is None and all(
            self._processes.runs(pod, each["name"]) for each in pod["spec"]["containers"]
        ):
            return None
        return connect or self._simulated.listener(pod, port, simulated=simulated, source=source)


class ChosenImages:
    """The images of nodes: those of processes go before those of simulated containers."""

    def __init__(self, processes: ImageService, simulated: ImageService) -> None:
        self._processes = processes
        self._simulated = simulated

    def image_status(self, node: str, image: str) -> StoredImage | None:
        return self._processes.image_status(node, image) or self._simulated.image_status(node, image)

    def list_images(self, node: str) -> Sequence[StoredImage]:
        return [*self._processes.list_images(node), *self._simulated.list_images(node)]

    def pull_image(self, image: str, *, has_credentials: bool) -> StoredImage:
        return self._processes.image_status("", image) or self._simulated.pull_image(
            image, has_credentials=has_credentials
        )

    def add_image(self, node: str, image: StoredImage) -> None:
        self._simulated.add_image(node, image)

    def remove_image(self, node: str, names: Sequence[str]) -> None:
        self._simulated.remove_image(node, names)

    def forget_node(self, node: str) -> None:
        self._simulated.forget_node(node)


def containers_of_nodes(context: KubeletContext) -> Containers:
    """Return the manager's containers; the first call creates their run-times."""
    present: Containers | None = context.shared.get(Containers)
    if present is None:
        present = context.shared[Containers] = _make_containers(context)
    return present


def _make_containers(context: KubeletContext) -> Containers:
    informer = context.informers.of(PODS)
    events, pods, records = RuntimeEvents(), PodWatchers(informer.lister), ProbeRecords(pod_records(context))
    informer.add_handler(pods.on_change)
    events.on_output(pods.wake)
    network = _pod_network(context)
    processes = _process_runtime(context, events, records, network, lambda: machine.files)
    settings = context.settings
    described = [table_of(images) for images in settings.pack_images]
    described += [
        load_table(path, has_processes=path == settings.process_images) for path in settings.image_files
    ]
    namespaces = context.informers.of(NAMESPACES).lister

    def annotations_of_namespace(name: str) -> Mapping[str, str]:
        return meta.annotations(namespaces.get("", name) or {})

    images = ImageTable(described, UnknownPrograms(settings.unknown_programs, annotations_of_namespace))
    contents, services = KeptContents(context), MachineServices(context)
    view = InformerView(context.informers, images)
    kubelets = NodeConnections(context.informers.of(NODES).lister)
    simulation = SimulationContext(
        images=images,
        clock=context.clock,
        events=events,
        objects=reference_loader(context),
        pods=pods,
        view=view,
        api_server=ApiServerAccess(context.client),
        process_port=(lambda *_: None) if processes is None else processes.process_port,
        is_process=None if processes is None else processes.runs,
        runs_without_program=_runs_without_program,
        contents=contents,
        nodes=services,
        kubelets=kubelets,
    )
    machine = SimulatedRuntime(simulation)
    if network is not None:
        network.connections = machine.connections_of_processes(network.has_address, settings.server)
    simulated = KwokRuntime(machine, kwok_objects(context), pods, context.clock)
    simulated_images = SimulatedImages(images, fails_unknown=settings.fails_unknown_images)
    runtime: ContainerRuntime = simulated if processes is None else ChosenRuntime(processes, simulated)
    image_service: ImageService = (
        simulated_images if processes is None else ChosenImages(processes.image_service, simulated_images)
    )
    services.connect(runtime, image_service, machine.machines)
    return Containers(
        runtime=runtime,
        image_table=images,
        predictions=SimulatedPredictions(images),
        images=image_service,
        machines=machine.machines,
        services=services,
        events=events,
        pods=pods,
        probe_records=records,
        contents=contents,
        kubelets=kubelets,
        drops_api_server=partial(_drops_api_server, view),
    )


async def _drops_api_server(view: InformerView, pod: ReadOnlyTree, port: int) -> bool:
    """Return whether NetworkPolicies keep the API server out, whose packets come from a control-plane node.

    Without a control-plane node the API server is outside of the cluster's network.
    """
    await view.wait_synced()
    node = view.control_plane_node()
    if node is None:
        return False
    return not is_allowed(view, Peer(address=internal_ip(node), node=meta.name(node)), peer_of(pod), port)


def _runs_without_program(pod: ReadOnlyTree, name: str) -> bool:
    return default_program(pod, name).seconds is None


def _pod_network(context: KubeletContext) -> "PodNetwork | None":
    """Return what gives pods of processes networks of their own; None if they have that of this machine."""
    settings = context.settings
    if settings.process_images is None or settings.pod_network == HOST or sys.platform != "linux":
        return None
    from mockube.container_runtime.pod_network.network import PodNetwork  # noqa: PLC0415 - for few

    return PodNetwork(context.clock, settings.balancers)


def _process_runtime(
    context: KubeletContext,
    events: RuntimeEvents,
    records: ProbeRecords,
    network: "PodNetwork | None",
    volumes: Callable[[], VolumeFolders],
) -> "ProcessRuntime | None":
    """Return the run-time of processes; None if no container is one. `volumes` returns what has the contents of volumes."""
    path = context.settings.process_images
    if path is None:
        return None
    from mockube.container_runtime.process.images import load_images  # noqa: PLC0415 - for few
    from mockube.container_runtime.process.runtime import (  # noqa: PLC0415 - for few
        ProcessRuntime,
        ProcessServices,
    )

    from .probes.container_checks import ContainerChecks  # noqa: PLC0415 - for few

    loader, recorder = reference_loader(context), context.recorder.of("kubelet")

    def record_event(pod: ReadOnlyTree, part: str, kind: str, reason: str, message: str) -> None:
        recorder.record_on(str(pod["spec"].get("nodeName") or ""), pod, kind, reason, message, part=part)

    async def pod_uids() -> AbstractSet[str]:
        informer = context.informers.of(PODS)
        await informer.wait_synced()
        return {pod.uid for pod in informer.lister.all()}

    services = ProcessServices(
        clock=context.clock,
        events=events,
        server=context.settings.server,
        objects_of=lambda pod: PodReferences(loader, context.clock, pod),
        record_event=record_event,
        checks=lambda run, ready: ContainerChecks(run, context.clock, ready, records.processes),
        volumes=volumes,
        logs=context.settings.pod_logs,
        pod_uids=pod_uids,
        network=network,
        network_mode=context.settings.pod_network,
    )
    return ProcessRuntime(load_images(path), services)
