"""ResourceQuota: a write is charged to the quotas of its namespace, and refused if one of them is exceeded.

Writes that wait for the same namespace are charged together, by one transaction over all of its quotas that compares
their versions. So no number of writers, of one server or several, exceeds a limit.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import meta, quantity, status
from mockube.apimachinery.groups import PODS, GroupResource
from mockube.apimachinery.quota import amounts
from mockube.apimachinery.quota.amounts import Amounts
from mockube.apimachinery.quota.evaluator import Evaluator, is_counted, requirements_of
from mockube.apimachinery.quota.evaluators import IGNORED, Evaluators
from mockube.apimachinery.status import ApiError, Unknown
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import (
    AdmissionAttributes,
    Operation,
    RequestContext,
    Target,
    WriteOptions,
)
from mockube.apiserver.registry.stages import MODIFIED
from mockube.apiserver.storage.journal import Author
from mockube.apiserver.storage.stored_object import StoredObject, canonical
from mockube.apiserver.user import SERVER
from mockube.etcd.kv import Compare, Txn
from mockube.etcd.kv import Target as Comparand

from . import plugin
from .configurations import LimitedResource
from .plugin import Plugin

QUOTAS: Final = GroupResource("", "resourcequotas")
ATTEMPTS: Final = 20
"""The number of attempts to update the quotas while others write them."""
MAX_WRITTEN: Final = 100
"""The number of quotas whose own last write is cached. Without it, a charge may be repeated after a conflict."""
_SERVER: Final = "kube-apiserver"
_AUTHOR: Final = Author(
    user=SERVER.name, agent=_SERVER, verb="update", subresource=STATUS.name, field_manager=_SERVER
)
"""The author of usage: one write may have that of several requests."""
_UPDATES: Final[frozenset[Target]] = frozenset(
    {
        plugin.POD,
        ("", "pods", "resize"),
        ("", "services", ""),
        plugin.CLAIM,
        ("", "persistentvolumeclaims", "status"),
        ("resource.k8s.io", "resourceclaims", ""),
    }
)


class _Request(Struct, kw_only=True, eq=False):
    """A write that waits to be charged."""

    attributes: AdmissionAttributes
    evaluator: Evaluator
    limited: Sequence[LimitedResource] = ()
    error: ApiError | None = None
    is_done: bool = False

    @property
    def object(self) -> Tree:
        assert self.attributes.object is not None
        return self.attributes.object


class _Quota(Struct, frozen=True, kw_only=True):
    """A quota as it was read, and its usage."""

    stored: StoredObject
    name: str
    hard: Amounts
    used: Amounts
    requirements: Sequence[ReadOnlyTree]


class _NamespaceQueue(Struct):
    """The writes that wait for one namespace. The holder of the lock charges all of them."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: list[_Request] = field(default_factory=list)
    users: int = 0


_CHARGED: Final = "charged to quotas"
"""The key of the state of a write whose usage was added to the quotas: a creation may be validated several times."""


class ResourceQuota(Plugin):
    operations = plugin.WRITE
    needs: GroupResource | None = QUOTAS

    def __init__(self, limited: Sequence[LimitedResource] = ()) -> None:
        self._limited = limited
        self.needs = None if limited else QUOTAS
        self._waiting: dict[str, _NamespaceQueue] = {}
        self._own_writes: dict[bytes, StoredObject] = {}
        """The last writes, until the watch cache has them."""
        self._evaluators: Evaluators | None = None

    def handles(self, operation: Operation, target: Target) -> bool:
        if operation is Operation.UPDATE:
            return target in _UPDATES
        group, resource, subresource = target
        is_new = operation is Operation.CREATE and not subresource
        return is_new and GroupResource(group, resource) not in IGNORED

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        namespace = attributes.namespace
        if not namespace or not (self._limited or registry.list_cached(QUOTAS, namespace)):
            return
        if _CHARGED in attributes.reinvocation.state:
            return  # the creation is tried again with another name or address
        if self._evaluators is None:
            self._evaluators = Evaluators(_CachedDevices(registry), registry.gates)
        evaluator = self._evaluators[attributes.resource.group_resource]
        request = _Request(attributes=attributes, evaluator=evaluator, limited=self._limited)
        operation, subresource = attributes.operation.value, attributes.subresource
        if evaluator.handles(operation, subresource, request.object, attributes.old):
            await self._charge(registry, request)
            if request.error is not None:
                raise request.error
            attributes.reinvocation.state[_CHARGED] = True

    async def _charge(self, registry: Registry, request: _Request) -> None:
        with self._queue_up(request) as waiting:
            async with waiting.lock:
                if request.is_done:
                    return
                batch, waiting.requests = waiting.requests, []
                try:
                    await self._charge_all(registry, request.attributes.namespace, batch)
                finally:
                    waiting.requests = [*(other for other in batch if not other.is_done), *waiting.requests]

    @contextmanager
    def _queue_up(self, request: _Request) -> Iterator[_NamespaceQueue]:
        """Add a write to those that wait for the namespace; remove it if it is cancelled."""
        namespace = request.attributes.namespace
        waiting = self._waiting.setdefault(namespace, _NamespaceQueue())
        waiting.users += 1
        waiting.requests.append(request)
        try:
            yield waiting
        finally:
            waiting.users -= 1
            if request in waiting.requests:
                waiting.requests.remove(request)
            if not waiting.users:
                del self._waiting[namespace]

    async def _charge_all(self, registry: Registry, namespace: str, requests: Sequence[_Request]) -> None:
        for _ in range(ATTEMPTS):
            if await self._try_to_charge(registry, namespace, requests):
                break
            await registry.watch_cache.fresh()
        else:
            names = [quota.name for quota in self._quotas(registry, namespace)]
            conflict = status.conflict(QUOTAS, names[0] if names else "", MODIFIED)
            for request in requests:
                request.error = request.error or conflict
        for request in requests:
            request.is_done = True

    async def _try_to_charge(self, registry: Registry, namespace: str, requests: Sequence[_Request]) -> bool:
        before = self._quotas(registry, namespace)
        after = _charge_requests(registry, before, requests)
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old.used != new.used]
        return not changed or await self._write(registry, namespace, changed)

    def _quotas(self, registry: Registry, namespace: str) -> list[_Quota]:
        return [_quota_of(self._latest_quota(stored)) for stored in registry.list_cached(QUOTAS, namespace)]

    def _latest_quota(self, seen: StoredObject) -> StoredObject:
        written = self._own_writes.get(seen.key)
        if written is None or written.revision > seen.revision:
            return written or seen
        del self._own_writes[seen.key]
        return seen

    async def _write(
        self, registry: Registry, namespace: str, changed: Sequence[tuple[_Quota, _Quota]]
    ) -> bool:
        """Store the new usage; False if one of the quotas was changed meanwhile."""
        keys = [old.stored.key for old, _ in changed]
        values = [_encode_status(registry, namespace, new) for _, new in changed]
        transaction = Txn(
            compare=tuple(
                Compare(key=old.stored.key, target=Comparand.MOD, operand=old.stored.revision)
                for old, _ in changed
            ),
            then=tuple(registry.put(key, value) for key, value in zip(keys, values, strict=True)),
        )
        result = await registry.commit(transaction, _AUTHOR)
        for key, value in zip(keys, values, strict=True):
            if result.succeeded:
                self._own_writes[key] = StoredObject(key, value, result.revision)
            else:
                self._own_writes.pop(key, None)
        while len(self._own_writes) > MAX_WRITTEN:
            del self._own_writes[next(iter(self._own_writes))]
        return result.succeeded


def _quota_of(stored: StoredObject) -> _Quota:
    tree = stored.tree()
    state = tree.get("status") or {}
    return _Quota(
        stored=stored,
        name=meta.name(tree),
        hard=amounts.read(state.get("hard")),
        used=amounts.read(state.get("used")),
        requirements=requirements_of(tree),
    )


def _encode_status(registry: Registry, namespace: str, quota: _Quota) -> bytes:
    row = registry.rows[QUOTAS]
    context = RequestContext(
        verb="update",
        resource=row,
        subresource=row.subresource(STATUS.name),
        namespace=namespace,
        name=quota.name,
        user=SERVER,
        user_agent=_SERVER,
    )
    old = quota.stored.tree()
    new = {**old, "status": {**(old.get("status") or {}), "used": amounts.to_tree(quota.used)}}
    new = metadata.manage_change(registry, context, new, old, WriteOptions())
    to_store = {name: value for name, value in new["metadata"].items() if name != "resourceVersion"}
    return canonical({**new, "metadata": to_store})


def _charge_requests(
    registry: Registry, quotas: Sequence[_Quota], requests: Iterable[_Request]
) -> Sequence[_Quota]:
    """Return the quotas after all writes that they allow; set the error of the others."""
    for request in requests:
        request.error = None
        try:
            charged = _check(registry, quotas, request)
        except ApiError as error:
            request.error = error
        else:
            quotas = quotas if request.attributes.dry_run else charged
    return quotas


def _check(registry: Registry, quotas: Sequence[_Quota], request: _Request) -> Sequence[_Quota]:
    """Return the quotas after one write, or raise the error that rejects it."""
    attributes, evaluator, now = request.attributes, request.evaluator, registry.clock.now()
    concerned = [quota for quota in quotas if _counts_object(quota, request)]
    if not concerned and not request.limited:
        return quotas
    usage = evaluator.usage(request.object, now)
    if negative := [name for name, amount in usage.items() if amount < quantity.ZERO]:
        problem = f"quota usage is negative for resource(s): {amounts.format_names(negative)}"
        raise plugin.forbidden(attributes, problem)
    added = {quota.name: _added_usage(request, usage, registry, quota.requirements) for quota in concerned}
    uses_more = any(added.values()) if concerned else bool(_added_usage(request, usage, registry, ()))
    if request.limited and uses_more:
        _check_covered(quotas, concerned, request, usage)
    return [
        _charge_quota(attributes, quota, amounts.mask(added[quota.name], quota.hard.keys()))
        if quota.name in added
        else quota
        for quota in quotas
    ]


def _check_covered(
    quotas: Sequence[_Quota], charged_quotas: Sequence[_Quota], request: _Request, usage: Amounts
) -> None:
    """Reject a write that uses a limited resource which no quota counts."""
    evaluator, attributes = request.evaluator, request.attributes
    counted_names = {name for quota in charged_quotas for name in evaluator.matching_resources(quota.hard)}
    missing = {
        name
        for limit in request.limited
        if limit.resource == attributes.resource.group_resource
        for name, amount in usage.items()
        if amount > quantity.ZERO and any(part in name for part in limit.contains)
    } - counted_names
    if missing:
        raise plugin.forbidden(attributes, f"insufficient quota to consume: {','.join(sorted(missing))}")
    in_scope = partial(evaluator.is_in_scope, tree=request.object)
    covered_scopes = {
        requirement["scopeName"] for quota in quotas for requirement in filter(in_scope, quota.requirements)
    }
    scopes = [scope for limit in request.limited for scope in filter(in_scope, limit.scopes)]
    if uncovered := [scope for scope in scopes if scope["scopeName"] not in covered_scopes]:
        raise Unknown(
            f"insufficient quota to match these scopes: [{' '.join(map(_format_scope, uncovered))}]"
        )


def _format_scope(scope: ReadOnlyTree) -> str:
    """Format a scope selector requirement as Go does."""
    return f"{{{scope['scopeName']} {scope['operator']} [{' '.join(scope.get('values') or ())}]}}"


def _counts_object(quota: _Quota, request: _Request) -> bool:
    """Return whether a quota counts the object; raise Forbidden if a counted object lacks a request."""
    evaluator, attributes = request.evaluator, request.attributes
    names = evaluator.matching_resources(quota.hard)
    if not names or not is_counted(evaluator, quota.requirements, request.object):
        return False
    if problem := evaluator.problem(names, request.object):
        raise plugin.forbidden(attributes, f"failed quota: {quota.name}: {problem}")
    if not quota.used.keys() >= {*names}:
        message = f"status unknown for quota: {quota.name}, resources: {amounts.format_names(names)}"
        raise plugin.forbidden(attributes, message)
    return True


def _added_usage(
    request: _Request, usage: Amounts, registry: Registry, requirements: Sequence[ReadOnlyTree]
) -> Amounts:
    """Return the usage that a write adds; that of the old object is subtracted if the quota counts it."""
    old, evaluator = request.attributes.old, request.evaluator
    is_update = request.attributes.operation is Operation.UPDATE
    if is_update and old is not None and is_counted(evaluator, requirements, old):
        usage = amounts.subtract(usage, evaluator.usage(old, registry.clock.now()))
    return amounts.without_zeros(usage)


def _charge_quota(attributes: AdmissionAttributes, quota: _Quota, added: Amounts) -> _Quota:
    if not added:
        return quota
    used = amounts.add(quota.used, added)
    names = amounts.exceeding_names(amounts.mask(used, added.keys()), quota.hard)
    if names and attributes.subresource != "status":
        texts = [
            amounts.pretty_print(amounts.mask(resource_list, names))
            for resource_list in (added, quota.used, quota.hard)
        ]
        problem = "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(quota.name, *texts)
        raise plugin.forbidden(attributes, problem)
    return _Quota(
        stored=quota.stored, name=quota.name, hard=quota.hard, used=used, requirements=quota.requirements
    )


class _CachedDevices:
    """The devices, claims and pods in the watch cache."""

    CLASSES: Final = GroupResource("resource.k8s.io", "deviceclasses")
    CLAIMS: Final = GroupResource("resource.k8s.io", "resourceclaims")

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def extended_resources(self) -> Mapping[str, str]:
        trees = (stored.tree() for stored in self._registry.list_cached(self.CLASSES))
        return {meta.name(tree): tree["spec"].get("extendedResourceName", "") for tree in trees}

    def pod(self, namespace: str, name: str) -> ReadOnlyTree | None:
        stored = self._registry.find_cached(PODS, namespace, name)
        return None if stored is None else stored.tree()

    def claims(self, namespace: str) -> Iterable[ReadOnlyTree]:
        return (stored.tree() for stored in self._registry.list_cached(self.CLAIMS, namespace))
