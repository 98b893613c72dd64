"""Follow CustomResourceDefinitions: accept names, serve what they define, and finalize what is deleted.

Every pass works on all definitions in the watch cache, so nothing depends on having seen a change. Several servers may do
so over one store: each serves for itself, and all write the same conditions. A definition gets the names that no earlier
definition of its group has.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.json import Decoder

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema.model import Type
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.compile import compile_definition
from mockube.apiserver.customresources.custom import Custom
from mockube.apiserver.customresources.finalizing import Cleaning
from mockube.apiserver.customresources.registries import OBJECT_META
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.long_work import yield_to_loop
from mockube.apiserver.registry import managed
from mockube.apiserver.registry.backend import OF_WRONG_TYPES, Backend
from mockube.apiserver.registry.call import Call
from mockube.apiserver.registry.options import WriteOptions
from mockube.apiserver.registry.update import change
from mockube.apiserver.storage.resource_cache import Change
from mockube.apiserver.storage.stored import Stored
from mockube.apiserver.user import User
from mockube.etcd.errors import KVError

Names: TypeAlias = Mapping[str, Any]

_OF_RESOURCES: Final = ("plural", "singular", "shortNames")
_OF_KINDS: Final = ("kind", "listKind")
_REASONS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


class NamesDecision(NamedTuple):
    accepted: dict[str, Any]
    """The names as they are given from now on: those that are somebody else's stay as they were."""
    reason: str = ""
    problem: str = ""
    """Why not all are accepted."""


class TakenNames:
    """The names that definitions were given, by group: looked up, since each change judges all definitions anew."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, Sequence[str], str], set[str]] = {}

    def add(self, owner: str, group: str, names: Names) -> None:
        for fields in (_OF_RESOURCES, _OF_KINDS):
            for field in fields:
                value = names.get(field)
                for name in _texts(value) if isinstance(value, str | list) else ():
                    if isinstance(name, str):  # what somebody else stored may be anything
                        self._owners.setdefault((group, fields, name), set()).add(owner)

    def is_of_another(self, owner: str, group: str, fields: Sequence[str], name: str) -> bool:
        return bool(self._owners.get((group, fields, name), set()) - {owner})


def judge(owner: str, group: str, asked: Names, given: Names, taken: TakenNames) -> NamesDecision:
    """`given` is what the definition `owner` was given before, `taken` what all of them were."""
    accepted = {"categories": asked["categories"]} if asked.get("categories") else {}
    found = []
    for fields in (_OF_RESOURCES, _OF_KINDS):
        for field in fields:
            in_use = [
                name for name in _texts(asked.get(field)) if taken.is_of_another(owner, group, fields, name)
            ]
            kept = given.get(field) if in_use else asked.get(field)
            if kept:
                accepted[field] = kept
            found += [(_REASONS[field], f'"{name}" is already in use') for name in in_use]
    accepted |= {field: "" for field in ("plural", "kind") if field not in accepted}
    if not found:
        return NamesDecision(accepted)
    return NamesDecision(accepted, found[0][0], found[0][1])


def _texts(value: Any) -> Sequence[str]:
    if isinstance(value, str):
        return [value] if value else []
    return value or ()


LOG = logging.getLogger(__name__)

SLICE: Final = 100
"""Definitions that are looked at before others have their turn: 20 microseconds each, if they did not change."""
SLICE_BYTES: Final = 256 * 1024
"""Of definitions that did, and are parsed."""
SYSTEM: Final = User(name="system:apiserver", groups=("system:masters",))
DEFINITIONS: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")

_NAMES_ACCEPTED: Final = {"reason": "NoConflicts", "message": "no conflicts found"}
_ESTABLISHED: Final = {
    "reason": "InitialNamesAccepted",
    "message": "the initial names have been accepted",
}
_NOT_ESTABLISHED: Final = {"reason": "NotAccepted", "message": "not all names are accepted"}


class _Spec(Struct):
    group: str
    names: dict[str, Any]


class _Definition(Struct, omit_defaults=True):
    """A definition without its schemas, which are read when they are compiled, and not kept: they may have megabytes."""

    metadata: dict[str, Any]
    spec: _Spec
    status: dict[str, Any] | None = None


_read: Final = Decoder(_Definition).decode


class _Seen(Struct, frozen=True, kw_only=True):
    """A definition at one of its versions, parsed once."""

    stored: Stored
    tree: Tree
    """Without its schemas."""

    @classmethod
    def of(cls, stored: Stored) -> "_Seen":
        """Raises one of `OF_WRONG_TYPES` where fields that others look at are not as they should be."""
        seen = cls(stored=stored, tree=to_builtins(_read(stored.value)))
        if not isinstance((seen.tree.get("status") or {}).get("acceptedNames") or {}, dict):
            raise TypeError("its names are no object")
        hash(seen.resource)
        return seen

    @property
    def resource(self) -> GroupResource:
        spec = self.tree["spec"]
        return GroupResource(spec["group"], spec["names"]["plural"])


class Establishing:
    """Run it as a task of the server, behind `catch_up`."""

    def __init__(self, backend: Backend, catalog: Catalog) -> None:
        self._backend = backend
        self._catalog = catalog
        self._row: Resource = backend.rows[DEFINITIONS]
        self._resource_cache = backend.watch_cache.resource_cache(backend.layout.resource_cache(self._row))
        self.prefix = self._resource_cache.prefix
        self._seen: dict[str, _Seen] = {}
        self._taken = TakenNames()
        self._served: dict[str, tuple[str, int]] = {}
        """By name, the uid and generation of what is served."""
        self._cleaning = Cleaning(backend, catalog, self._row)
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        backend.watch_cache.on_reset.append(self.miss)

    def offer(self, _change: Change) -> None:
        self.miss()

    def miss(self) -> None:
        self._idle.clear()
        self._changed.set()

    async def wait_idle(self) -> None:
        """Wait until all definitions that were seen before this call are served."""
        await self._idle.wait()

    async def run(self) -> None:
        self._resource_cache.follow(self)
        try:
            async with asyncio.TaskGroup() as group:
                self._changed.set()
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    await self.catch_up()
                    if not self._changed.is_set():
                        self._idle.set()
                    self._clean(group)
        finally:
            self._idle.set()
            self._resource_cache.unfollow(self)

    async def catch_up(self) -> None:
        """Do what is to be done about all definitions that are there now."""
        await self._look()
        for name in self._served.keys() - self._seen.keys():
            self._catalog.remove(_resource_of(name))
            del self._served[name]
        for at, (name, seen) in enumerate(self._seen.items()):
            if at and at % SLICE == 0:
                await yield_to_loop()
            if not meta.is_deleting(seen.tree):
                # It is served before it is said to be: who reads that it is may ask at once.
                try:
                    verdict = self._verdict(name, seen.tree)
                    await self._serve(name, seen, verdict)
                except (*OF_WRONG_TYPES, RecursionError) as error:
                    self._backend.watch_cache.report_malformed(seen.stored, error)
                    continue
                await self._tell(name, seen.tree, verdict)

    async def _look(self) -> None:
        present, taken, size = {}, TakenNames(), 0
        for stored in list(self._resource_cache):
            if size >= SLICE_BYTES:
                await yield_to_loop()
                size = 0
            name = stored.key.rpartition(b"/")[2].decode()
            before = self._seen.get(name)
            if before is not None and before.stored.revision == stored.revision:
                present[name] = before
                continue
            size += len(stored.value)
            try:
                present[name] = _Seen.of(stored)
            except OF_WRONG_TYPES as error:
                self._backend.watch_cache.report_malformed(stored, error)
        for at, (name, seen) in enumerate(present.items()):
            if at and at % SLICE == 0:
                await yield_to_loop()
            status = seen.tree.get("status") or {}
            taken.add(name, seen.resource.group, status.get("acceptedNames") or {})
        self._seen, self._taken = present, taken

    def _clean(self, group: asyncio.TaskGroup) -> None:
        for name, seen in self._seen.items():
            if meta.is_deleting(seen.tree) and self._cleaning.begins(name):
                group.create_task(self._cleaning.clean(name, seen.resource), name=f"clean up {name}")

    # --- names

    async def _tell(self, name: str, tree: Tree, verdict: NamesDecision) -> None:
        if not _has_news(tree) or self._status(tree, verdict) == tree.get("status"):
            return
        call = Call(
            verb="update",
            resource=self._row,
            subresource=self._row.subresource("status"),
            name=name,
            user=SYSTEM,
            user_agent="kube-apiserver",
        )
        options = WriteOptions()

        async def transform(old: Tree) -> Tree:
            new = old | {"status": self._status(old, self._verdict(name, old))}
            return managed.on_update(self._backend, call, new, old, options)

        try:
            await change(self._backend, call, options, transform)
        except (ApiError, KVError) as error:
            LOG.warning("what became of the names of %s was not stored: %s", name, error)
        else:
            self._taken.add(name, tree["spec"]["group"], verdict.accepted)

    def _verdict(self, name: str, tree: Tree) -> NamesDecision:
        group, given = tree["spec"]["group"], (tree.get("status") or {}).get("acceptedNames") or {}
        return judge(name, group, tree["spec"]["names"], given, self._taken)

    def _status(self, tree: Tree, verdict: NamesDecision) -> Tree:
        """As upstream: who was established once stays so."""
        accepted = (
            {"status": "False", "reason": verdict.reason, "message": verdict.problem}
            if verdict.problem
            else {"status": "True"} | _NAMES_ACCEPTED
        )
        listed = self._with(conditions.of(tree), {"type": "NamesAccepted"} | accepted)
        if not conditions.is_true(tree, "Established"):
            established = (
                {"status": "False"} | _NOT_ESTABLISHED
                if verdict.problem
                else {"status": "True"} | _ESTABLISHED
            )
            listed = self._with(listed, {"type": "Established"} | established)
        return {**(tree.get("status") or {}), "conditions": listed, "acceptedNames": verdict.accepted}

    def _with(
        self, listed: Sequence[Mapping[str, Any]], condition: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        present = next((one for one in listed if one["type"] == condition["type"]), {})
        if all(present.get(field) == value for field, value in condition.items()):
            return listed
        return conditions.set_condition(listed, condition, self._backend.clock.now())

    # --- what is served

    async def _serve(self, name: str, seen: _Seen, verdict: NamesDecision) -> None:
        tree, worker = seen.tree, self._backend.worker
        version = meta.uid(tree), meta.generation(tree)
        is_refused = bool(verdict.problem) and not conditions.is_true(tree, "Established")
        if is_refused or self._served.get(name) == version:
            return
        schemas = self._backend.schemas
        # Its patterns are read to estimate what they cost: a few bytes may take long.
        size = len(seen.stored.value) * self._row.work
        customs = await worker.run(size, _compile, seen.stored, lambda: schemas.definition(OBJECT_META))
        # Every change of a definition is a new generation of it.
        changed_at = seen.stored.revision if meta.generation(tree) > 1 else 0
        self._catalog.add(customs, changed_at=changed_at)
        await self._backend.watch_cache.reconsider()
        self._served[name] = version


def _compile(stored: Stored, metadata: Callable[[], Type]) -> Sequence[Custom]:
    return compile_definition(stored.tree(), metadata)


def _has_news(tree: Tree) -> bool:
    """Whether names are to be judged: as upstream, not those that a definition has been given already."""
    status = tree.get("status") or {}
    given, names = status.get("acceptedNames") or {}, tree["spec"]["names"]
    if any((given.get(field) or None) != (names.get(field) or None) for field in (*given, *names)):
        return True
    return conditions.is_true(tree, "NamesAccepted") and not conditions.is_true(tree, "Established")


def _resource_of(name: str) -> GroupResource:
    plural, _, group = name.partition(".")
    return GroupResource(group, plural)
