"""The authenticators, with the webhook and the issuers that the flags name."""

from functools import partial

from mockube.apimachinery.groups import SECRETS, GroupResource
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.authenticators import CredentialCounts
from mockube.apiserver.authn.chain import Authenticators, CertificateAuthorities, authenticators
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.metrics.access import CredentialMetrics
from mockube.apiserver.registry.patch import patch_as_server
from mockube.apiserver.registry.registry import Registry

from .context import ApiServerContext
from .outgoing import Outgoing


def make_authentication(
    context: ApiServerContext, registry: Registry, outgoing: Outgoing, sessions: PageSessions | None
) -> Authenticators:
    async def find(resource: str, namespace: str, name: str) -> Tree | None:
        stored = await registry.find(registry.rows[GroupResource("", resource)], namespace, name)
        return None if stored is None else stored.tree()

    observer = CredentialMetrics(context.metrics)
    counts = CredentialCounts(observer.observe_fetch, observer.observe_certificate)
    observer.report(counts)
    return authenticators(
        context.environment.trust,
        find,
        clock=registry.clock,
        random=registry.random,
        label=partial(patch_as_server, registry, registry.rows[SECRETS]),
        certificates=_authorities(context),
        is_anonymous_limited="AlwaysAllow" in context.config.authorization.types,
        remote=outgoing.remote.authentication,
        counts=counts,
        sessions=sessions,
    )


def _authorities(context: ApiServerContext) -> CertificateAuthorities | None:
    if context.environment.credentials is None:
        return None
    certificates = context.environment.credentials.tls
    return CertificateAuthorities(
        clients=lambda: certificates.client_ca,
        proxies=lambda: certificates.request_headers_ca,
        reads_uid=not minors.is_before(context.minor, "1.33"),
    )
