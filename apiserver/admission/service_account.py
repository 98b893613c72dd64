"""ServiceAccount: sets the service account of a pod, and mounts its token."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from mockube.apimachinery import meta, randomness, status
from mockube.apimachinery.gotext import BOOLEANS
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.pods import secret_names
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD
from mockube.apiserver.authn.serviceaccount.tokens import POD_TOKEN_SECONDS
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target
from mockube.apiserver.registry.resource_watchers import wait_for_object
from mockube.apiserver.storage.stored_object import StoredObject

from . import plugin
from .plugin import Plugin

EPHEMERAL: Target = "", "pods", "ephemeralcontainers"
SERVICE_ACCOUNTS = GroupResource("", "serviceaccounts")
DEFAULT = "default"
VOLUME_PREFIX = "kube-api-access-"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
MODE = 0o644
ENFORCE = "kubernetes.io/enforce-mountable-secrets"

LOOKUPS: Final = 10
"""How often upstream looks up the account `default`, which a controller creates in each new namespace."""
MIN_LOOKUP_INTERVAL: Final = 0.1
"""The minimum seconds between two of these lookups; each request draws an interval of at most twice as long."""
MAX_WAITING_REQUESTS: Final = 200
"""The maximum number of requests that wait for accounts. Further ones are refused, and their clients send them again."""


class ServiceAccount(Plugin):
    operations = plugin.WRITE
    targets = frozenset({plugin.POD, EPHEMERAL})

    def __init__(self) -> None:
        self._waiting = 0
        """The number of requests that wait for an account."""

    def handles(self, operation: Operation, target: Target) -> bool:
        return (operation, target) in ((Operation.CREATE, plugin.POD), (Operation.UPDATE, EPHEMERAL))

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        """Set the account of a new pod, mount its token, and check its secrets before other plugins change it."""
        pod = attributes.object
        assert pod is not None
        if attributes.operation is not Operation.CREATE:
            return
        if ANNOTATION_MIRROR_POD in meta.annotations(pod):
            _check_mirror_pod(attributes, pod)
        else:
            spec: Tree = dict(pod["spec"])
            pod["spec"] = spec
            name = spec.get("serviceAccountName") or DEFAULT
            spec["serviceAccountName"] = spec["serviceAccount"] = name
            account = await self._find_account(backend, attributes, name)
            if _wants_token(spec, account):
                await backend.run(attributes.context, _mount_token, spec, backend.random)
            if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
                spec["imagePullSecrets"] = account["imagePullSecrets"]
            await _check_secrets(backend, attributes, spec, account)

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        """Check the pod after all mutating plugins."""
        pod = attributes.object
        assert pod is not None
        if attributes.target == plugin.POD and ANNOTATION_MIRROR_POD in meta.annotations(pod):
            _check_mirror_pod(attributes, pod)
            return
        spec = pod["spec"]
        name = spec.get("serviceAccountName")
        if not name:
            pod_key = f"{attributes.namespace}/{meta.name(pod)}"
            raise plugin.forbidden(attributes, f"no service account specified for pod {pod_key}")
        await _check_secrets(backend, attributes, spec, await self._find_account(backend, attributes, name))

    async def _find_account(
        self, backend: Backend, attributes: AdmissionAttributes, name: str
    ) -> ReadOnlyTree:
        stored = backend.find_cached(SERVICE_ACCOUNTS, attributes.namespace, name)
        if stored is None and attributes.operation is not Operation.CREATE:  # the cache may be outdated
            stored = await backend.find(backend.rows[SERVICE_ACCOUNTS], attributes.namespace, name)
        if stored is None and name == DEFAULT:
            stored = await self._wait_for_default(backend, attributes)
        if stored is None:
            account_key = f"{attributes.namespace}/{name}"
            problem = plugin.unreachable(name) or f'serviceaccount "{name}" not found'
            raise plugin.forbidden(attributes, f"error looking up service account {account_key}: {problem}")
        return stored.shared_tree()

    async def _wait_for_default(
        self, backend: Backend, attributes: AdmissionAttributes
    ) -> StoredObject | None:
        """Wait for the account of a new namespace as long as upstream looks it up; the request's deadline may end this."""
        if self._waiting >= MAX_WAITING_REQUESTS:
            raise status.too_many_requests(
                f'too many pods are waiting for the service account "{DEFAULT}", please try again later', 1
            )
        interval = MIN_LOOKUP_INTERVAL * (1 + randomness.fraction(backend.random))
        self._waiting += 1
        try:
            async with attributes.context.work.without_memory():
                return await wait_for_object(
                    backend,
                    SERVICE_ACCOUNTS,
                    attributes.namespace,
                    DEFAULT,
                    seconds=(LOOKUPS - 1) * interval,
                )
        finally:
            self._waiting -= 1


async def _check_secrets(
    backend: Backend, attributes: AdmissionAttributes, spec: Tree, account: ReadOnlyTree
) -> None:
    """Refuse secrets that are not the account's, if it enforces mountable secrets."""
    if BOOLEANS.get(meta.annotations(account).get(ENFORCE, "")):
        find = _secret_problems if attributes.target == plugin.POD else _ephemeral_secret_problems
        problem = await backend.run(attributes.context, lambda: next(find(spec, account), ""))
        if problem:
            raise plugin.forbidden(attributes, problem)


def _check_mirror_pod(attributes: AdmissionAttributes, pod: Tree) -> None:
    """Refuse a mirror pod with a service account or a secret."""
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        raise plugin.forbidden(attributes, "a mirror pod may not reference service accounts")
    if any(secret_names(spec)):
        raise plugin.forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes", ()):
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "serviceAccountToken" in source:
                raise plugin.forbidden(
                    attributes, "a mirror pod may not use ServiceAccountToken volume projections"
                )


def _wants_token(spec: Tree, account: ReadOnlyTree) -> bool:
    """Return automountServiceAccountToken of the pod, or else of its account, or else True."""
    for source in (spec, account):
        if "automountServiceAccountToken" in source:
            return bool(source["automountServiceAccountToken"])
    return True


def _mount_token(spec: Tree, source: Random) -> None:
    """Add a volume with a token, and mount it in every container that mounts nothing at its path."""
    volumes = spec.get("volumes", [])
    present = next((volume["name"] for volume in volumes if volume["name"].startswith(VOLUME_PREFIX)), None)
    name = present or VOLUME_PREFIX + randomness.suffix(source)
    mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
    needed = False
    for field in ("initContainers", "containers"):
        if not spec.get(field):
            continue
        needs_mounts = [not _mounts_at_path(container) for container in spec[field]]
        needed = needed or any(needs_mounts)
        spec[field] = [
            container | {"volumeMounts": [*container.get("volumeMounts", ()), dict(mount)]}
            if needs_mount
            else container
            for container, needs_mount in zip(spec[field], needs_mounts, strict=True)
        ]
    if needed and present is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": _projection()}]


def _mounts_at_path(container: Tree) -> bool:
    return any(mount.get("mountPath") == MOUNT_PATH for mount in container.get("volumeMounts", ()))


def _projection() -> Tree:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources: list[Any] = [
        {"serviceAccountToken": {"expirationSeconds": POD_TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"sources": sources, "defaultMode": MODE}


def _secret_problems(spec: Tree, account: ReadOnlyTree) -> Iterator[str]:
    """Yield errors for secrets that an account that enforces mountable secrets does not reference."""
    allowed, ending = _mountable_secrets(account), _error_suffix(account, "secret")
    for volume in spec.get("volumes", ()):
        secret = (volume.get("secret") or {}).get("secretName")
        if secret is not None and secret not in allowed:
            yield f'volume with secret.secretName="{secret}" {ending}'
    for field, kind in (("initContainers", "init container"), ("containers", "container")):
        yield from _container_secret_problems(spec.get(field) or (), kind, account)
    image_pull_secrets = {secret.get("name") for secret in account.get("imagePullSecrets", ())}
    for index, reference in enumerate(spec.get("imagePullSecrets", ())):
        name = reference.get("name", "")
        if name not in image_pull_secrets:
            yield f'imagePullSecrets[{index}].name="{name}" {_error_suffix(account, "imagePullSecret")}'


def _ephemeral_secret_problems(spec: Tree, account: ReadOnlyTree) -> Iterator[str]:
    return _container_secret_problems(spec.get("ephemeralContainers") or (), "ephemeral container", account)


def _container_secret_problems(containers: Iterable[Tree], kind: str, account: ReadOnlyTree) -> Iterator[str]:
    allowed, ending = _mountable_secrets(account), _error_suffix(account, "secret")
    for container in containers:
        for variable in container.get("env", ()):
            reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if reference is not None and reference.get("name", "") not in allowed:
                location = f"{kind} {container['name']} with envVar {variable['name']}"
                yield f'{location} referencing secret.secretName="{reference.get("name", "")}" {ending}'
        for source in container.get("envFrom", ()):
            reference = source.get("secretRef")
            if reference is not None and reference.get("name", "") not in allowed:
                location = f"{kind} {container['name']} with envFrom"
                yield f'{location} referencing secret.secretName="{reference.get("name", "")}" {ending}'


def _mountable_secrets(account: ReadOnlyTree) -> Collection[str]:
    return {secret.get("name", "") for secret in account.get("secrets", ())}


def _error_suffix(account: ReadOnlyTree, object_kind: str) -> str:
    return (
        f"is not allowed because service account {meta.name(account)} does not reference that {object_kind}"
    )
