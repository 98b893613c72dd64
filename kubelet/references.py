"""Reads the objects that a container refers to: ConfigMaps, Secrets, Services, tokens. Missing ones are left out."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.pods import claim_name
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import cloned_claim
from mockube.client import kinds
from mockube.client.cache.store import Lister
from mockube.client.resources import Key
from mockube.client.verbs import AnyResource, Client
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.config.projections import certificate_sources, has_bundles
from mockube.container_runtime.config.volumes import (
    is_claim,
    mounted_volumes,
    referenced_names,
    token_requests,
)
from mockube.container_runtime.disk_usage import disk_size
from mockube.container_runtime.objects import ObjectsUnavailable
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulation_values import CLUSTER_DNS

from .pod_certificates import PodCertificates, pod_certificates
from .pod_records import pod_records
from .settings import KubeletContext
from .shared_work import SharedWork
from .start_checks import environment_failure, identity_failure, unmounted_volume
from .started_values import StartedValues

LOG: Final = logging.getLogger(__name__)

MAX_SERVICES: Final = 500
"""The maximum number of Services in a container's variables."""
_RENEWAL_FRACTION: Final = 0.8
"""The fraction of a token's lifetime after which it is renewed, as by a kubelet."""
_NO_TOKENS: Final[Mapping[tuple[str, int], str]] = {}


class ReferenceLoader:
    def __init__(
        self,
        records: Records,
        client: Client,
        nodes: Lister[ReadOnlyTree],
        certificates: PodCertificates,
        *,
        cluster_dns: str = CLUSTER_DNS,
    ) -> None:
        self._certificates = certificates
        self._client = client
        self._cluster_dns = cluster_dns
        self._nodes = nodes
        self._loads = SharedWork[References]()
        self.started = StartedValues(records, client)

    async def load_shared(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int | None = None
    ) -> References:
        """Load the references of a container's run; concurrent calls for the same pod share the requests.

        `restarts` is the run, if the pod's status lacks it yet.
        """
        key = (meta.uid(pod), meta.resource_version(pod), container["name"])
        references = await self._loads.run(key, partial(self.load, pod, container))
        if restarts is None:
            restarts = (container_status(pod, container["name"]) or {}).get("restartCount") or 0
        started = self.started.find(meta.uid(pod), container["name"], restarts)
        if started is None:
            return references
        return replace(references, started_config_maps=started.config_maps, started_secrets=started.secrets)

    async def load(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        tokens: Mapping[tuple[str, int], str] = _NO_TOKENS,
    ) -> References:
        """Load the references of a container; `tokens` are valid tokens that need no request."""
        try:
            return await self._load_all(pod, container, tokens)
        except (ApiError, NoResponse) as error:
            raise ObjectsUnavailable(str(error)) from error

    async def _load_all(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, tokens: Mapping[tuple[str, int], str]
    ) -> References:
        namespace = meta.namespace(pod)
        maps, secrets = referenced_names(pod, container)
        node = self._nodes.get("", pod["spec"].get("nodeName") or "") or {}
        volumes = [*mounted_volumes(pod, container)]
        return References(
            config_maps=await load_objects(self._client, kinds.CONFIG_MAPS, namespace, maps),
            secrets=await load_objects(self._client, kinds.SECRETS, namespace, secrets),
            services=await load_services(
                self._client, namespace, has_links=pod["spec"].get("enableServiceLinks") is not False
            ),
            storage=await self._storage(pod, volumes),
            tokens={
                key: token
                for key in token_requests(pod, container)
                if (token := tokens.get(key) or await self._token(pod, *key)) is not None
            },
            bundles=await self._bundles() if has_bundles(volumes) else (),
            credentials={
                (volume["name"], index): await self._certificates.ensure(pod, volume["name"], index)
                for volume in volumes
                for index, _ in certificate_sources(volume)
            },
            allocatable=(node.get("status") or {}).get("allocatable") or {},
            disk_bytes=disk_size(node),
            cluster_dns=self._cluster_dns,
        )

    async def _storage(
        self, pod: ReadOnlyTree, volumes: Sequence[ReadOnlyTree]
    ) -> dict[tuple[str, str], ReadOnlyTree]:
        """Return the claims of the volumes, and the persistent volumes that they are bound to."""
        names = {claim_name(pod, volume) for volume in volumes if is_claim(volume)}
        if not names:
            return {}
        client, claim_kind, namespace = self._client, kinds.PERSISTENT_VOLUME_CLAIMS, meta.namespace(pod)
        claims = await load_objects(client, claim_kind, namespace, names)
        origins = {cloned_claim(claim) for claim in claims.values()} - {"", *names}
        claims |= await load_objects(client, claim_kind, namespace, origins)
        bound = {claim["spec"].get("volumeName") or "" for claim in claims.values()} - {""}
        persistent = await load_objects(client, kinds.PERSISTENT_VOLUMES, "", bound)
        return {
            **{(kinds.PERSISTENT_VOLUME_CLAIMS.plural, name): claim for name, claim in claims.items()},
            **{(kinds.PERSISTENT_VOLUMES.plural, name): volume for name, volume in persistent.items()},
        }

    async def _bundles(self) -> list[ReadOnlyTree]:
        page = await self._client.list(kinds.CLUSTER_TRUST_BUNDLES)
        return [*page.items]

    async def _token(self, pod: ReadOnlyTree, audience: str, seconds: int) -> str | None:
        account = Key(meta.namespace(pod), pod["spec"].get("serviceAccountName") or "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta.name(pod), "uid": meta.uid(pod)}
        spec: dict[str, Any] = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": seconds,
            "boundObjectRef": bound,
        }
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = await self._client.create(
                kinds.SERVICE_ACCOUNTS, request, key=account, subresource="token"
            )
        except ApiError:
            return None
        token = (answer.get("status") or {}).get("token")
        return None if token is None else str(token)


async def load_objects(
    client: Client, resource: AnyResource, namespace: str, names: set[str]
) -> dict[str, ReadOnlyTree]:
    """Return the objects of some names that exist."""
    objects: dict[str, ReadOnlyTree] = {}
    for name in sorted(names):
        with suppress(NotFound):
            objects[name] = await client.get(resource, Key(namespace, name))
    return objects


async def load_services(client: Client, namespace: str, *, has_links: bool) -> list[ReadOnlyTree]:
    """Return the Services in the variables of a pod: that of the API server, and with links those of its namespace."""
    services: list[ReadOnlyTree] = []
    with suppress(NotFound):
        services.append(await client.get(kinds.SERVICES, Key("default", "kubernetes")))
    if has_links:
        service_list = await client.list(kinds.SERVICES, namespace, limit=MAX_SERVICES)
        services += [service for service in service_list.items if meta.name(service) != "kubernetes"]
    return services


class PodReferences:
    """The references of the containers of one pod (`PodObjects`), with cached tokens that are renewed before they expire."""

    def __init__(self, loader: ReferenceLoader, clock: Clock, pod: ReadOnlyTree) -> None:
        self._loader = loader
        self._clock = clock
        self.pod = pod
        """The latest version of the pod."""
        self._tokens: dict[tuple[str, int], tuple[str, float]] = {}

    async def load(self, container: ReadOnlyTree) -> References:
        now = self._clock.monotonic()
        valid = {key: token for key, (token, until) in self._tokens.items() if now < until}
        references = await self._loader.load(self.pod, container, valid)
        for key, token in references.tokens.items():
            if key not in valid:
                self._tokens[key] = token, now + _RENEWAL_FRACTION * key[1]
        return references

    def mount_problem(self, container: ReadOnlyTree, references: References) -> tuple[str, str]:
        return unmounted_volume(self.pod, container, references)

    def identity_problem(self, container: ReadOnlyTree, image_user: int) -> str:
        return identity_failure(self.pod, container, image_user=image_user)

    def environment_problem(self, container: ReadOnlyTree, references: References) -> str:
        return environment_failure(self.pod, container, references)


def reference_loader(context: KubeletContext) -> ReferenceLoader:
    """Return the manager's loader of references; the first call creates it."""
    present: ReferenceLoader | None = context.shared.get(ReferenceLoader)
    if present is None:
        present = context.shared[ReferenceLoader] = ReferenceLoader(
            pod_records(context),
            context.client,
            context.informers.of(kinds.NODES).lister,
            pod_certificates(context),
            cluster_dns=context.settings.cluster_dns,
        )
    return present
