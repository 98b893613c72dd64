"""The context functions of stage templates: the time, and the addresses of nodes and pods."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock

from . import node_objects
from .node_registry import NodeRegistry
from .template.expression import Environment

_VERSION: Final = "v0.7.0"
"""The version of kwok whose stages are supported."""


class TemplateContext(Struct, frozen=True, kw_only=True):
    registry: NodeRegistry
    clock: Clock
    started: datetime
    kubelet_version: Callable[[], str] = str

    @classmethod
    def of(
        cls, registry: NodeRegistry, clock: Clock, kubelet_version: Callable[[], str] = str
    ) -> "TemplateContext":
        return cls(registry=registry, clock=clock, started=clock.now(), kubelet_version=kubelet_version)

    def node_functions(self, node: ReadOnlyTree) -> Environment:
        name = meta.name(node)
        return {
            **self._common_functions(),
            "NodeName": lambda: name,
            "NodeIP": lambda: self.registry.ip_of(name),
            "NodePort": lambda: node_objects.KUBELET_PORT,
            "MachineID": lambda: node_objects.machine_ids(name)["machineID"],
            "SystemUUID": lambda: node_objects.machine_ids(name)["systemUUID"],
            "BootID": lambda: node_objects.machine_ids(name)["bootID"],
            "NodeInfo": lambda: node_objects.node_info(node, self.kubelet_version()),
        }

    def pod_functions(self, pod: ReadOnlyTree) -> Environment:
        uid = meta.uid(pod)

        def pod_ip(node: str, in_host_network: object = False, *_: object) -> str:  # noqa: FBT002 - a template passes it by position
            return self.registry.ip_of(node) if in_host_network else self.registry.pod_ip(uid, node)

        def pod_ips(node: str, in_host_network: object = False, *_: object) -> list[str]:  # noqa: FBT002 - as above
            return [self.registry.ip_of(node)] if in_host_network else [*self.registry.pod_ips(uid, node)]

        return {
            **self._common_functions(),
            "NodeIPWith": self.registry.ip_of,
            "NodeIPsWith": lambda node: [self.registry.ip_of(node)],
            "PodIPWith": pod_ip,
            "PodIPsWith": pod_ips,
        }

    def _common_functions(self) -> dict[str, Callable[..., object]]:
        return {
            "Now": lambda: format_time(self.clock.now()),
            "StartTime": lambda: format_time(self.started),
            "Version": lambda: _VERSION,
            "NodeConditions": lambda: node_objects.NODE_CONDITIONS,
        }
