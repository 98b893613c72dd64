"""Webhooks that authenticate and authorize: one client for all, and metrics that are created on demand."""

from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.clock import Clock
from mockube.apiserver.authn.chain import Remote
from mockube.apiserver.authz.remote import RemoteAuthorization
from mockube.apiserver.http.outgoing_client import OutgoingClient
from mockube.apiserver.metrics.authentication import AuthenticationMetrics
from mockube.apiserver.metrics.authorization import AuthorizationMetrics
from mockube.apiserver.outgoing import Outbound


class RemoteServices(Collector):
    """`server` is the identity of this server."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._client = OutgoingClient()
        self._metrics: list[Collector] = []
        self.authorization = RemoteAuthorization(self._client.send, self._observe_authorization, clock)
        self.outbound = Outbound(self._client.send, clock)
        self.authentication = Remote(self._client.send, self._observe_authentication)

    def _observe_authentication(self) -> AuthenticationMetrics:
        metrics = AuthenticationMetrics(self._server, self._clock)
        self._metrics.append(metrics)
        return metrics

    def _observe_authorization(self) -> AuthorizationMetrics:
        metrics = AuthorizationMetrics(self._server, self._clock)
        self._metrics.append(metrics)
        return metrics

    def collect(self) -> Iterable[Metric]:
        for metrics in self._metrics:
            yield from metrics.collect()

    async def close(self) -> None:
        await self._client.close()
