"""The clients of other servers: webhooks, kubelets, aggregated API servers, token issuers."""

from collections.abc import Callable

from msgspec import Struct

from mockube.apiserver.config.command_line import Config
from mockube.apiserver.http.aggregator import Aggregator, ConversionCaller
from mockube.apiserver.http.backend_connection import Dialer, KubeletClient
from mockube.apiserver.http.kubelet_logs import KubeletLogs
from mockube.apiserver.http.kubelet_usage import KubeletUsage
from mockube.apiserver.http.outgoing_client import RemoteServices
from mockube.apiserver.http.proxy import ReverseProxy
from mockube.apiserver.http.webhook_client import WebhookClient
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.subresources.locations import Locator
from mockube.component_base.metrics import MetricsRegistry

from .environment import ServerEnvironment


class Outgoing(Struct, frozen=True, kw_only=True):
    dialer: Dialer
    webhooks: WebhookClient
    remote: RemoteServices
    """For authenticators, authorizers and admission plugins that call other servers."""


def make_outgoing(environment: ServerEnvironment, metrics: MetricsRegistry) -> Outgoing:
    sockets = environment.clock.real
    dialer = Dialer(_kubelets(environment), sockets)
    return Outgoing(
        dialer=dialer,
        webhooks=WebhookClient(dialer, sockets),
        remote=RemoteServices(environment.identity, environment.clock, sockets, metrics),
    )


def make_conversion_caller(
    config: Config, outgoing: Outgoing, registry: Callable[[], Registry]
) -> ConversionCaller:
    return ConversionCaller(outgoing.webhooks, dict(config.admission.webhook_service), registry)


def make_aggregator(
    config: Config,
    environment: ServerEnvironment,
    outgoing: Outgoing,
    registry: Registry,
    api_services: Resource,
) -> Aggregator:
    credentials, services = environment.credentials, dict(config.admission.webhook_service)
    certificate = None if credentials is None else credentials.proxy
    simulates_metrics = config.features.simulate_metrics
    return Aggregator(
        registry, api_services, services, certificate, outgoing.dialer, simulates_metrics=simulates_metrics
    )


def make_proxy(environment: ServerEnvironment) -> ReverseProxy:
    """Return the proxy to nodes, pods and Services."""
    return ReverseProxy(_kubelets(environment), environment.clock.real)


def make_kubelet_usage(environment: ServerEnvironment, registry: Registry) -> KubeletUsage:
    """Return what reads the usage of containers from the kubelets."""
    return KubeletUsage(registry, _kubelets(environment), environment.clock.real)


def make_kubelet_logs(config: Config, environment: ServerEnvironment, registry: Registry) -> KubeletLogs:
    """Return what reads logs of containers from the kubelets."""
    locator = Locator(registry, config.kubelets.kubelet_preferred_address_types)
    return KubeletLogs(registry, locator, _kubelets(environment), environment.clock.real)


def _kubelets(environment: ServerEnvironment) -> KubeletClient:
    credentials = environment.credentials
    return KubeletClient() if credentials is None else credentials.kubelets
