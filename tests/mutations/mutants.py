"""The mutants: each stage, filter and plugin left out, two stages in the other order, and other dangerous mistakes.

A test is marked with the mutants that it kills: `@pytest.mark.kills("update without validate")`. A mutant changes the process
in which it is applied, and nothing restores it: each gets a process of its own.
"""

import contextlib
import importlib
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apiserver.admission import chain
from mockube.apiserver.admission.plugin import Plugin
from mockube.apiserver.authz.chain import Decision
from mockube.apiserver.parts import admission
from mockube.apiserver.registry import (
    apply,
    create,
    delete,
    delete_options,
    deletion,
    metadata,
    registry,
    stages,
    update,
)
from mockube.apiserver.request import handler
from mockube.etcd.kv import Txn


class Mutant(NamedTuple):
    name: str
    apply: Callable[[], None]
    is_dangerous: bool = False
    """Whether `make check` runs it."""


Lists = Sequence[tuple[ModuleType, str]]
"""The module and the name of each tuple of one verb, in the order in which it runs them."""

VERBS: dict[str, Lists] = {
    "create": ((create, "ADMISSION"), (create, "STORAGE")),
    "update": ((update, "READING"), (update, "ADMISSION"), (update, "STORAGE")),
    "delete": ((delete, "DELETION"),),
    "requests": ((handler, "FILTERS"),),
    "admission": ((chain, "PLUGINS"),),
}
"""An update is also a patch, an apply and a write of a subresource, and its creation of a missing object is one of `create`."""
PERMANENT_PLUGINS = (
    "RoleEscalation",
    "PolicyParamAccess",
    "PodCertificateSigning",
    "ResourceClaimAccess",
    "WarnOfSimulatedOperator",
    "WarnOfAssumedPods",
)
"""The plugins that no flag disables."""


def _removals() -> list[Mutant]:
    return [
        Mutant(f"{verb} without {each.__name__}", _remover(module, name, each))
        for verb, lists in VERBS.items()
        for module, name in lists
        for each in getattr(module, name)
    ]


def _remover(module: ModuleType, name: str, removed: object) -> Callable[[], None]:
    def apply() -> None:
        setattr(module, name, tuple(each for each in getattr(module, name) if each is not removed))

    return apply


def _swaps() -> list[Mutant]:
    """Return each pair of neighbours in the other order. That of plugins is upstream's, which `test_chain` compares."""
    return [
        Mutant(f"{verb}: {second.__name__} before {first.__name__}", _swapper(module, name, first, second))
        for verb in ("create", "update", "delete", "requests")
        for module, name in VERBS[verb]
        for first, second in zip(getattr(module, name), getattr(module, name)[1:], strict=False)
    ]


def _swapper(module: ModuleType, name: str, first: Any, second: Any) -> Callable[[], None]:
    other = {first: second, second: first}

    def apply() -> None:
        setattr(module, name, tuple(other.get(each, each) for each in getattr(module, name)))

    return apply


MOVES = (
    ("create", "admit_validated", "validate"),
    ("update", "admit_validated", "validate"),
    ("delete", "admit", "convert"),
    ("delete", "admit", "check"),
    ("requests", "with_authorization", "with_impersonation"),
)
"""Stages and filters that are not neighbours: the second must not come before the third."""


def _moves() -> list[Mutant]:
    return [
        Mutant(f"{verb}: {moved} before {later}", _mover(*VERBS[verb][-1], moved, later))
        for verb, moved, later in MOVES
    ]


def _mover(module: ModuleType, name: str, moved: str, later: str) -> Callable[[], None]:
    def apply() -> None:
        members = list(getattr(module, name))
        names = [each.__name__ for each in members]
        members.insert(names.index(later), members.pop(names.index(moved)))
        setattr(module, name, tuple(members))

    return apply


def _permanent_plugins() -> list[Mutant]:
    return [
        Mutant(f"admission without {name}", _setter(admission, name, lambda *_, **__: Plugin()))
        for name in PERMANENT_PLUGINS
    ]


def _setter(owner: Any, name: str, value: object) -> Callable[[], None]:
    return lambda: setattr(owner, name, value)


def _mistake(name: str, place: str, value: object) -> Mutant:
    """Return a mutant in which `MODULE:ATTRIBUTE`, below `mockube.apiserver`, has another value."""
    module_name, _, path = place.partition(":")
    owner: Any = importlib.import_module(f"mockube.apiserver.{module_name}")
    *outer, attribute = path.split(".")
    for each in outer:
        owner = getattr(owner, each)
    getattr(owner, attribute)  # a mutant of what is not there any more would be an error of its tests
    return Mutant(name, _setter(owner, attribute, value))


def nothing(*_: object, **__: object) -> None:
    """Do nothing, in place of what checks or changes something."""


def same(value: Any, *_: object, **__: object) -> Any:
    """Return the first argument, in place of what changes it."""
    return value


async def nothing_async(*_: object, **__: object) -> None:
    """Do the same in place of a coroutine function."""


def _without_compare(*, then: Sequence[Any] = (), otherwise: Sequence[Any] = (), **_: object) -> Txn:
    return Txn(compare=(), then=then, otherwise=otherwise)


async def _mutate_copy(self: chain.Admission, registry: Any, attributes: Any) -> None:
    copy = orjson.loads(orjson.dumps(attributes.object))
    await _MUTATE(self, registry, replace(attributes, object=copy))


async def _run_ignoring_errors(*arguments: Any) -> None:
    with contextlib.suppress(ApiError):
        await _RUN(*arguments)


async def _allow(*_: object) -> tuple[Decision, str]:
    return Decision.ALLOW, ""


async def _await_work(_self: object, _seconds: float, work: Any, _request: object = None) -> Any:
    return await work


def _set_namespace(tree: Any, context: Any) -> None:
    if context.resource.namespaced:
        metadata.ensure_metadata(tree)["namespace"] = context.namespace


async def _list_everything(registry: Any, context: Any) -> Any:
    return await _LIST(registry, replace(context, query={}))


def _module_with(module: ModuleType, **others: object) -> SimpleNamespace:
    """Return a module with other functions, for one of the modules that import it."""
    return SimpleNamespace(**vars(module) | others)


def _maker_with(make: Callable[..., Any], **fields: object) -> Callable[..., Any]:
    return lambda **given: make(**given | fields)


def _is_marked_without_finalizers(write: Any) -> bool:
    return "deletionTimestamp" in write.new["metadata"] and not write.strategy.pending(write.new)


def _mark_later(tree: Any, grace_period: int | None) -> Any:
    if grace_period is None:
        return None
    tree["metadata"]["deletionGracePeriodSeconds"] = grace_period
    return tree


async def _allocate_only(self: Any, backend: Any, resource: Any, new: Any, old: Any, **options: Any) -> Any:
    if new is None:
        return registry.NO_ALLOCATIONS
    return await _ALLOCATE(self, backend, resource, new, old, **options)


async def _remove_without_compare(*arguments: Any) -> bool:
    *others, allocations = arguments
    return await _REMOVE(*others, replace(allocations, compare=()))


async def _no_lease(*_: object) -> int:
    return 0


_ALLOCATE, _REMOVE = registry.Allocators.allocate, deletion.remove
_MUTATE, _RUN, _LIST = chain.Admission.mutate, chain._run, delete.list_objects
_DELETE_OPTIONS, _PATCH_OPTIONS = delete_options.unchecked_options, apply.patch_options
_MISTAKES = [
    _mistake("mutating admission does nothing", "admission.chain:Admission.mutate", nothing_async),
    _mistake("validating admission does nothing", "admission.chain:Admission.validate", nothing_async),
    _mistake("second authorizations are left out", "admission.chain:Admission.authorize", nothing_async),
    _mistake("result of a mutating plugin is ignored", "admission.chain:Admission.mutate", _mutate_copy),
    _mistake("error of a plugin is ignored", "admission.chain:_run", _run_ignoring_errors),
    _mistake("authorization allows every second check", "authz.chain:Authorization.require", nothing_async),
    _mistake("authorization allows every request", "authz.chain:Authorization.authorize", _allow),
    _mistake("every user may be impersonated", "request.impersonation:_TimedAuthorizer.require", nothing),
    _mistake("every host is allowed", "request.hosts:Hosts.check", nothing),
    _mistake("any number of requests is in flight", "request.limits:InFlight.enter", lambda *_: True),
    _mistake("requests have no deadline", "request.limits:Deadlines.within", _await_work),
    _mistake("system fields of a client are created", "registry.metadata:clear_system_fields", nothing),
    _mistake("fields of metadata may change", "registry.metadata:keep_immutable", nothing),
    _mistake("object of another name is updated", "registry.metadata:match_name", nothing),
    _mistake("object of another namespace is written", "registry.metadata:match_namespace", _set_namespace),
    _mistake("object with a UID is created by update or apply", "registry.metadata:check_no_uid", nothing),
    _mistake("UID of an update is ignored", "registry.stages:check_uid", nothing),
    _mistake("resourceVersion of an update is ignored", "registry.stages:_check_version", nothing),
    _mistake("write does not compare revisions", "registry.stages:Txn", _without_compare),
    _mistake("dry run is stored", "registry.stages:_dry_run", stages._store),
    _mistake("object of a kind that was deleted is stored", "registry.stages:_check_kind_remains", nothing),
    _mistake("large object keeps its managers", "registry.metadata:without_managers", nothing),
    _mistake("pod that has a node is bound again", "registry.subresources.binding:_problem", lambda _: ""),
    _mistake("binding does not compare the revision", "registry.subresources.binding:Txn", _without_compare),
    _mistake("eviction ignores budgets", "registry.subresources.eviction:_budget_of", nothing_async),
    _mistake("generated name is tried once", "registry.create:MAX_NAMES", 1),
    _mistake("patch may change the kind", "registry.patch:_check_type", nothing),
    _mistake(
        "apply forces always",
        "registry.apply:patch_options",
        lambda context: replace(_PATCH_OPTIONS(context), force=True),
    ),
    _mistake("object of another kind is stored", "registry.body:_check_kind", nothing),
    _mistake("unknown fields are ignored", "registry.body:apply_field_validation", nothing),
    _mistake("preconditions of a deletion are ignored", "registry.deletion:check_preconditions", nothing),
    _mistake("finalizers are ignored", "kinds.strategy:Strategy.pending", lambda *_: False),
    _mistake("propagation policy is ignored", "registry.deletion:_set_policy", nothing),
    _mistake("deletion does not compare the revision", "registry.deletion:Txn", _without_compare),
    _mistake(
        "dry run of a deletion is stored",
        "registry.delete_options:unchecked_options",
        lambda tree: replace(_DELETE_OPTIONS(tree), dry_run=False),
    ),
    _mistake("collection is deleted without its selector", "registry.delete:list_objects", _list_everything),
    _mistake("unsafe deletion needs no right", "registry.delete:_authorize_unsafe_deletion", nothing_async),
    _mistake(
        "namespace that admission changes is stored",
        "registry.stages:metadata",
        _module_with(metadata, match_namespace=nothing),
    ),
    _mistake(
        "owner that admission repeats is stored twice",
        "registry.stages:metadata",
        _module_with(metadata, without_duplicate_owners=same),
    ),
    _mistake("field of a disabled gate is stored", "kinds.strategy:DisabledFields.drop", nothing),
    _mistake("object is stored without its lease", "registry.registry:Allocators.lease", _no_lease),
    _mistake(
        "creation by update or apply is authorized in all namespaces",
        "registry.stages:Attributes",
        _maker_with(stages.Attributes, namespace=""),
    ),
    _mistake("UID of an update that creates is ignored", "registry.update:check_uid", nothing),
    _mistake("object of a finished deletion stays", "registry.stages:_is_ended", lambda _: False),
    _mistake(
        "write ends the grace period of a deletion",
        "registry.stages:_is_ended",
        _is_marked_without_finalizers,
    ),
    _mistake("deletion releases no allocations", "registry.registry:Allocators.allocate", _allocate_only),
    _mistake(
        "release of node ports does not compare their record",
        "registry.deletion:remove",
        _remove_without_compare,
    ),
    _mistake("deletion lengthens a grace period", "registry.deletion:_mark_sooner", _mark_later),
    _mistake(
        "admission of a deletion is not told of a dry run",
        "registry.deletion:AdmissionAttributes",
        _maker_with(deletion.AdmissionAttributes, dry_run=False),
    ),
    _mistake(
        "mark is not delivered before the deletion", "storage.watch_cache:WatchCache.deliver", nothing_async
    ),
    _mistake(
        "collection is deleted with every unreadable object",
        "registry.delete:_has_selector",
        lambda _: False,
    ),
    _mistake(
        "deletion of an unreadable object is not admitted", "registry.delete:admit_deletion", nothing_async
    ),
    _mistake(
        "deletion of a collection has another author",
        "registry.delete:RequestContext",
        _maker_with(delete.RequestContext, part_of=None),
    ),
    _mistake(
        "eviction does not compare the version that it checked",
        "registry.subresources.eviction:_at_checked_version",
        same,
    ),
    _mistake(
        "eviction uses a budget that its controller has not seen",
        "registry.subresources.eviction:meta",
        _module_with(meta, generation=lambda _: 0),
    ),
    _mistake("headers of front proxies are passed on", "request.access:_without_users", same),
    _mistake("journal notes no author", "storage.journal:Journal.note", nothing),
]

_NOT_NEW = "a changed object is not created"
_NOT_OLD = "a new object has no old times of managers"
_ONE_CONVERSION = "an object is converted by one of the two"
_NO_ALLOCATOR = "no kind has both an allocator and second authorizations"
EQUIVALENT: dict[str, str] = {
    "create without keep_old_times": _NOT_OLD,
    "create: keep_old_times before admit_validated": _NOT_OLD,
    "create: convert_to_store before keep_old_times": _NOT_OLD,
    "update without authorize_creation": _NOT_NEW,
    "update: authorize_creation before validate": _NOT_NEW,
    "update: admit_validated before authorize_creation": _NOT_NEW,
    "create: authorize before allocate": _NO_ALLOCATOR,
    "update: authorize before allocate": _NO_ALLOCATOR,
    "create: convert_by_webhook before convert_to_store": _ONE_CONVERSION,
    "update: convert_by_webhook before convert_to_store": _ONE_CONVERSION,
    "delete: convert_mark before admit": "a deletion is admitted with the old object only",
    "requests: with_panic_recovery before with_audit_id": "neither raises an error",
    "requests: with_impersonation before with_written_response": "neither reads what the other sets",
    "admission without AlwaysAdmit": "the plugin does nothing, as upstream's",
}
"""The mutants that no client can notice, with the reason."""
DANGEROUS = frozenset(
    {
        *(
            f"create without {stage}"
            for stage in ("authorize", "validate", "authorize_creation", "admit_validated")
        ),
        *(f"update without {stage}" for stage in ("read_old", "admit", "prepare", "authorize", "validate")),
        "update without admit_validated",
        *(f"delete without {stage}" for stage in ("check", "mark", "admit")),
        *(f"requests without with_{name}" for name in ("allowed_hosts", "authentication", "audit")),
        *(f"requests without with_{name}" for name in ("impersonation", "authorization")),
        *(f"admission without {name}" for name in ("NamespaceLifecycle", "NodeRestriction", "PodSecurity")),
        *(f"admission without {name}" for name in ("ResourceQuota", "RoleEscalation")),
        "admission without ValidatingAdmissionWebhook",
        "authorization allows every request",
        "authorization allows every second check",
        "error of a plugin is ignored",
        "write does not compare revisions",
        "deletion does not compare the revision",
        "dry run is stored",
        "write ends the grace period of a deletion",
        "collection is deleted with every unreadable object",
        "creation by update or apply is authorized in all namespaces",
        "headers of front proxies are passed on",
    }
)
"""Those that `make check` runs: a user would get rights, or lose data."""

MUTANTS: Sequence[Mutant] = [
    mutant._replace(is_dangerous=mutant.name in DANGEROUS)
    for mutant in (*_removals(), *_permanent_plugins(), *_swaps(), *_moves(), *_MISTAKES)
]
