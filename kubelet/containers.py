"""The containers of all simulated nodes of a manager, as the pod workers and the kubelets' server share them."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.image_service import ImageService
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.node_machine import NodeMachines
from mockube.container_runtime.predictions import Predictions
from mockube.container_runtime.runtime import ContainerRuntime, RuntimeEvents

from .kept_contents import KeptContents
from .node_connections import NodeConnections
from .node_machine.services import MachineServices
from .pod_versions import PodWatchers
from .probes.totals import ProbeRecords


class Containers(Struct, frozen=True, kw_only=True):
    runtime: ContainerRuntime
    images: ImageService
    image_table: ImageTable
    """What is known of images."""
    predictions: Predictions
    events: RuntimeEvents
    pods: PodWatchers
    probe_records: ProbeRecords
    contents: KeptContents
    machines: NodeMachines
    services: MachineServices
    kubelets: NodeConnections
    """How pods reach the kubelets."""
    drops_api_server: Callable[[ReadOnlyTree, int], Awaitable[bool]]
    """Returns whether the network drops the packets of the API server to a port of a pod."""
