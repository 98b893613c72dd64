"""The runner of the simulated kubelets' API: it listens, and writes its address into a ConfigMap.

kind: ConfigMap
metadata: {name: mockube-kubelets, namespace: kube-system}
data:
  address: 127.0.0.1:41235     the address of the kubelets of all simulated nodes
  certificate: …               the server certificate of the kubelets, the only one that clients accept
"""

import socket
import ssl
from datetime import timedelta
from ipaddress import ip_address
from typing import Final

from mockube.apimachinery.hosts import join_host_port
from mockube.apimachinery.status import AlreadyExists, NotFound
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.client.cache.store import Change
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.kinds import CONFIG_MAPS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.component_base.local_ports import KUBELETS
from mockube.component_base.serving_certificates import self_signed_certificate, tls_context_of_pair

from .kwok_objects import kwok_objects
from .live_images import LiveImagesReader
from .pod_lifecycle.container_context import ContainerContext
from .runtimes import containers_of_nodes
from .server.authentication import TokenAuthenticator
from .server.authorization import KubeletAuthorizer
from .server.endpoints import ClientAccess, KubeletEndpoints, NodePageSettings
from .server.listener import listen, serving
from .server.node_counters import kubelet_counters
from .settings import KubeletContext

ENDPOINT: Final = Key(NAMESPACE_SYSTEM, "mockube-kubelets")
AUTHENTICATION: Final = Key(NAMESPACE_SYSTEM, "extension-apiserver-authentication")
"""The ConfigMap with the CAs of client certificates."""


class SimulatedKubelets:
    def __init__(self, context: KubeletContext) -> None:
        self._context = context
        self._settings = context.settings
        self._config_maps = context.informers.of(CONFIG_MAPS)
        self._nodes = context.informers.of(NODES)
        self._pods = context.informers.of(PODS)
        self._pods.add_index(BY_NODE, node_of_pod)
        self._claims = context.informers.of(PERSISTENT_VOLUME_CLAIMS)
        self._containers = containers_of_nodes(context)
        self._config_maps.add_handler(self._on_config_map_change)
        self._live_images = LiveImagesReader(self._containers.image_table, self._config_maps)
        self._listener: socket.socket | None = None
        self._certificate = ""
        self._loop = ReconcileLoop(
            "simulated-kubelets", self._publish, workers=1, clock=context.clock, metrics=context.metrics
        )

    async def run(self) -> None:
        for informer in (self._config_maps, self._nodes, self._pods):
            await informer.wait_synced()
        context, settings = self._context, self._settings
        pages = NodePageSettings(
            find_claim=self._claims.lister.get,
            counters=kubelet_counters(context),
            kwok=kwok_objects(context),
            random=context.random,
            container_context=ContainerContext(predictions=self._containers.predictions),
        )
        endpoints = KubeletEndpoints(
            self._pods.lister,
            self._nodes.lister,
            containers=self._containers,
            access=ClientAccess(
                TokenAuthenticator(context.client, context.clock),
                KubeletAuthorizer(context.client, context.clock),
            ),
            clock=context.clock,
            pages=pages,
        )
        tls, self._certificate = self._credentials()
        self._listener = listen(self._settings.address, self._settings.port)
        connections = self._containers.kubelets
        connections.listen_at(settings.address, self._port)
        async with serving(endpoints, self._listener, tls, connections.node_of):
            self._loop.add(ENDPOINT)
            with self._live_images.running():
                await self._loop.run()

    def _port(self) -> int:
        """Return the port of the listener, which is another one in a forked process."""
        assert self._listener is not None
        port: int = self._listener.getsockname()[1]
        return port

    def _advertised_address(self) -> str:
        address, port = self._settings.address, self._port()
        host = socket.gethostname() if ip_address(address).is_unspecified else address
        if self._settings.local_ports is None:
            return join_host_port(host, port)
        self._settings.local_ports[KUBELETS] = join_host_port(host, port)
        return KUBELETS

    def _credentials(self) -> tuple[ssl.SSLContext, str]:
        context = self._context
        pair = self_signed_certificate(self._settings.address, now=context.clock.now(), random=context.random)
        tls = tls_context_of_pair(*pair)
        authentication = self._config_maps.lister.get(*AUTHENTICATION) or {}
        client_ca = (authentication.get("data") or {}).get("client-ca-file")
        if client_ca:
            tls.load_verify_locations(cadata=client_ca)
            tls.verify_mode = ssl.CERT_OPTIONAL
        return tls, pair[0].decode()

    def _on_config_map_change(self, change: Change) -> None:
        if self._listener is not None and Key.of(change.last_known) == ENDPOINT:
            self._loop.add(ENDPOINT)

    async def _publish(self, key: Key) -> timedelta | None:
        data = {"address": self._advertised_address(), "certificate": self._certificate}
        config_map = self._config_maps.lister.get(*key)
        if config_map is not None and config_map.get("data") == data:
            return None
        client = self._context.client
        try:
            await client.patch(CONFIG_MAPS, key, {"data": data})
        except NotFound:
            metadata = {"name": key.name, "namespace": key.namespace}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            try:
                await client.create(CONFIG_MAPS, body)
            except AlreadyExists:
                return timedelta(seconds=1)
        return None
