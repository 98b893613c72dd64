"""The clients of other servers: webhooks, kubelets, aggregated API servers, token issuers."""

from contextlib import AsyncExitStack

from msgspec import Struct

from mockube.apiserver.http.backend_connection import Dialer, KubeletClient
from mockube.apiserver.http.kubelet_logs import KubeletLogs
from mockube.apiserver.http.kubelet_usage import KubeletUsage
from mockube.apiserver.http.outgoing_client import RemoteServices
from mockube.apiserver.http.proxy import ReverseProxy
from mockube.apiserver.http.webhook_client import WebhookClient
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.subresources.locations import Locator

from .context import ApiServerContext
from .environment import ServerEnvironment


class Outgoing(Struct, frozen=True, kw_only=True):
    dialer: Dialer
    webhooks: WebhookClient
    remote: RemoteServices
    """For authenticators, authorizers and admission plugins that call other servers."""
    proxy: ReverseProxy
    """The proxy to nodes, pods and Services."""

    def close_with(self, stack: AsyncExitStack) -> None:
        stack.push_async_callback(self.webhooks.close)
        stack.push_async_callback(self.remote.close)


def make_outgoing(context: ApiServerContext) -> Outgoing:
    environment, sockets = context.environment, context.clock.real
    dialer = Dialer(_kubelets(environment), sockets)
    return Outgoing(
        dialer=dialer,
        webhooks=WebhookClient(dialer, sockets),
        remote=RemoteServices(environment.identity, environment.clock, sockets, context.metrics),
        proxy=ReverseProxy(_kubelets(environment), sockets),
    )


def make_kubelet_usage(context: ApiServerContext, registry: Registry) -> KubeletUsage:
    """Return what reads the usage of containers from the kubelets."""
    return KubeletUsage(registry, _kubelets(context.environment), context.clock.real)


def make_kubelet_logs(context: ApiServerContext, registry: Registry) -> KubeletLogs:
    """Return what reads logs of containers from the kubelets."""
    locator = Locator(registry, context.config.kubelets.kubelet_preferred_address_types)
    return KubeletLogs(registry, locator, _kubelets(context.environment), context.clock.real)


def _kubelets(environment: ServerEnvironment) -> KubeletClient:
    credentials = environment.credentials
    return KubeletClient() if credentials is None else credentials.kubelets
