"""Reads the last lines of the logs of containers from kubelets, for explanations."""

import logging
from typing import Final

from mockube.apimachinery.groups import PODS
from mockube.apimachinery.status import ApiError, Timeout
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import RequestContext
from mockube.apiserver.registry.subresources.locations import Location, Locator
from mockube.apiserver.request.limits import Deadlines
from mockube.apiserver.user import User
from mockube.component_base.clock import Clock
from mockube.component_base.http1.heads import ProtocolError

from .backend_connection import BackendLost, Dialer, DialFailed, KubeletClient

LOG: Final = logging.getLogger(__name__)
_MAX_SECONDS: Final = 5.0
_MAX_BYTES: Final = 16 << 10
_OK: Final = 200


class KubeletLogs:
    def __init__(self, backend: Backend, locator: Locator, kubelets: KubeletClient, clock: Clock) -> None:
        """Create a reader; `clock` is that of sockets."""
        self._backend, self._locator = backend, locator
        self._dialer = Dialer(kubelets, clock)
        self._deadlines = Deadlines(clock)

    async def read(
        self, user: User, namespace: str, pod: str, container: str, *, previous: bool, lines: int
    ) -> str:
        """Return the last lines of a log; "" if the kubelet has none, or does not respond."""
        context = RequestContext(
            verb="get",
            resource=self._backend.rows[PODS],
            namespace=namespace,
            name=pod,
            query={"container": [container]},
            user=user,
        )
        query = [("limitBytes", str(_MAX_BYTES)), ("tailLines", str(lines))]
        if previous:
            query.append(("previous", "true"))
        try:
            location = await self._locator.kubelet(context, "containerLogs", sorted(query))
            if location is None:
                return ""
            body = await self._deadlines.within(_MAX_SECONDS, self._read(location, user.name))
        except (ApiError, DialFailed, BackendLost, ProtocolError, OSError, Timeout) as error:
            LOG.info("The log of %s/%s cannot be read: %s", namespace, pod, error)
            return ""
        return body.decode(errors="replace")

    async def _read(self, location: Location, user: str) -> bytes:
        headers = [("Host", location.authority), ("Connection", "close")]
        if location.gateway is not None:
            headers.append(("Mockube-Node", location.gateway.node))
        async with self._dialer.dial(location, user) as backend:
            await backend.send_head("GET", f"{location.path}?{location.query}", headers)
            head = await backend.read_head()
            if head.status != _OK:
                return b""
            body = bytearray()
            async for part in backend.body():
                body += part
                if len(body) >= _MAX_BYTES:
                    break
            return bytes(body[:_MAX_BYTES])
