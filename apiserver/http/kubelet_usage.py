"""Reads what simulated containers use from the kubelets of the controller manager, as metrics-server does from each node."""

import logging
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import orjson

from mockube.apimachinery.quantity import QuantityError
from mockube.apimachinery.quota import amounts
from mockube.apimachinery.status import Timeout
from mockube.apimachinery.usage.usage import UsageByContainer
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.subresources.locations import Location, gateway
from mockube.apiserver.request.limits import Deadlines
from mockube.component_base.clock import Clock
from mockube.component_base.http1.heads import ProtocolError

from .backend_connection import BackendLost, Dialer, DialFailed, KubeletClient

LOG: Final = logging.getLogger(__name__)
_PATH: Final = "/mockube/usage"
_MAX_SECONDS: Final = 10.0
_MAX_BYTES: Final = 64 << 20
_OK: Final = 200


class KubeletUsage:
    """The usage of containers, by the uid of their pod; of none if there are no simulated kubelets, or if they do not respond."""

    def __init__(self, backend: Backend, kubelets: KubeletClient, clock: Clock) -> None:
        """Create a reader; `clock` is that of sockets."""
        self._backend = backend
        self._dialer = Dialer(kubelets, clock)
        self._deadlines = Deadlines(clock)

    async def measure(self, namespace: str = "", name: str = "") -> Mapping[str, UsageByContainer]:
        """Return the usage of all pods, of those in a namespace, or of one."""
        listener = gateway(self._backend)
        if listener is None:
            return {}
        query = urlencode({"namespace": namespace, "name": name})
        location = Location(
            scheme="https", host=listener.host, port=str(listener.port), is_kubelet=True, gateway=listener
        )
        try:
            body = await self._deadlines.within(_MAX_SECONDS, self._read(location, f"{_PATH}?{query}"))
            return {
                uid: {container: amounts.read(usage) for container, usage in containers.items()}
                for uid, containers in orjson.loads(body).items()
            }
        except (DialFailed, BackendLost, ProtocolError, OSError, Timeout, ValueError, QuantityError) as error:
            LOG.warning("The usage of simulated containers cannot be read: %s", error)
            return {}

    async def _read(self, location: Location, target: str) -> bytes:
        async with self._dialer.dial(location) as backend:
            await backend.send_head("GET", target, [("Host", "localhost"), ("Connection", "close")])
            head = await backend.read_head()
            if head.status != _OK:
                raise ValueError(f"the kubelets returned {head.status}")
            body = bytearray()
            async for part in backend.body():
                body += part
                if len(body) > _MAX_BYTES:
                    raise ValueError("the response is too long")
            return bytes(body)
