"""The authenticators, with the webhook and the issuers that the flags name."""

from functools import partial

from mockube.apimachinery.groups import SECRETS, GroupResource
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.authenticators import CredentialCounts
from mockube.apiserver.authn.chain import Authenticators, CertificateAuthorities, authenticators
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.metrics.access import CredentialMetrics
from mockube.apiserver.registry.patch import patch_as_server
from mockube.apiserver.registry.registry import Registry
from mockube.component_base.metrics import MetricsRegistry

from .environment import ServerEnvironment
from .outgoing import Outgoing


def make_authentication(
    config: Config,
    environment: ServerEnvironment,
    registry: Registry,
    outgoing: Outgoing,
    metrics: MetricsRegistry,
    sessions: PageSessions | None = None,
) -> Authenticators:
    async def find(resource: str, namespace: str, name: str) -> Tree | None:
        stored = await registry.find(registry.rows[GroupResource("", resource)], namespace, name)
        return None if stored is None else stored.tree()

    observer = CredentialMetrics(metrics)
    counts = CredentialCounts(observer.observe_fetch, observer.observe_certificate)
    observer.report(counts)
    return authenticators(
        environment.trust,
        find,
        clock=registry.clock,
        random=registry.random,
        label=partial(patch_as_server, registry, registry.rows[SECRETS]),
        certificates=_authorities(environment, config.features.kubernetes_version),
        is_anonymous_limited="AlwaysAllow" in config.authorization.types,
        remote=outgoing.remote.authentication,
        counts=counts,
        sessions=sessions,
    )


def _authorities(environment: ServerEnvironment, minor: str) -> CertificateAuthorities | None:
    if environment.credentials is None:
        return None
    certificates = environment.credentials.tls
    return CertificateAuthorities(
        clients=lambda: certificates.client_ca,
        proxies=lambda: certificates.request_headers_ca,
        reads_uid=not minors.is_before(minor, "1.33"),
    )
