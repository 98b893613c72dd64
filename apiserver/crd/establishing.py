"""Follows CustomResourceDefinitions: says whose names are accepted, serves what they define, and clears up behind them.

Works on what the mirror shows, all of it at once, so that nothing depends on having seen a change. Several servers may
do so over one store: each serves for itself, and what is to be written is the same whoever writes it.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from apimachinery import conditions, meta
from apimachinery.groups import GroupResource
from apimachinery.status import ApiError
from apiserver.crd.catalog import Catalog
from apiserver.crd.cleaning import Cleaning
from apiserver.crd.compile import compile_definition
from apiserver.crd.faces import OBJECT_META
from apiserver.crd.names import Verdict, judge
from apiserver.resources.spec import Resource
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, User
from apiserver.rest.options import WriteOptions
from apiserver.rest.update import change
from apiserver.storage.change import Change
from apiserver.storage.stored import Tree
from etcd.errors import KVError

LOG = logging.getLogger(__name__)

SYSTEM: Final = User(name="system:apiserver", groups=("system:masters",))
DEFINITIONS: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")

_NAMES_ACCEPTED: Final = {"reason": "NoConflicts", "message": "no conflicts found"}
_ESTABLISHED: Final = {
    "reason": "InitialNamesAccepted",
    "message": "the initial names have been accepted",
}
_NOT_ESTABLISHED: Final = {"reason": "NotAccepted", "message": "not all names are accepted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A definition at one of its versions, parsed once."""

    revision: int
    tree: Tree

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
        self._shelf = backend.mirror.shelf(backend.layout.shelf(self._row))
        self.prefix = self._shelf.prefix
        self._seen: dict[str, _Seen] = {}
        self._served: dict[str, tuple[str, int]] = {}
        """By name, the uid and generation of what is served."""
        self._cleaning = Cleaning(backend, catalog, self._row)
        self._changed = asyncio.Event()
        backend.mirror.on_reset.append(self._changed.set)

    def offer(self, _change: Change) -> None:
        self._changed.set()

    async def run(self) -> None:
        self._shelf.follow(self)
        try:
            async with asyncio.TaskGroup() as group:
                self._changed.set()
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    await self.catch_up()
                    self._clean(group)
        finally:
            self._shelf.unfollow(self)

    async def catch_up(self) -> None:
        """Do what is to be done about all definitions that are there now."""
        self._look()
        for name in self._served.keys() - self._seen.keys():
            self._catalog.remove(_resource_of(name))
            del self._served[name]
        for name, seen in self._seen.items():
            if not meta.is_deleting(seen.tree):
                # It is served before it is said to be: who reads that it is may ask at once.
                verdict = self._verdict(name, seen.tree)
                self._serve(name, seen.tree, verdict)
                await self._tell(name, seen.tree, verdict)

    def _look(self) -> None:
        present = {}
        for stored in self._shelf:
            name = stored.key.rpartition(b"/")[2].decode()
            before = self._seen.get(name)
            is_same = before is not None and before.revision == stored.revision
            present[name] = (
                before if before and is_same else _Seen(revision=stored.revision, tree=stored.tree())
            )
        self._seen = present

    def _clean(self, group: asyncio.TaskGroup) -> None:
        for name, seen in self._seen.items():
            if meta.is_deleting(seen.tree) and self._cleaning.begins(name):
                group.create_task(self._cleaning.clean(name, seen.resource), name=f"clean up {name}")

    # --- names

    async def _tell(self, name: str, tree: Tree, verdict: Verdict) -> None:
        if self._status(tree, verdict) == tree.get("status"):
            return
        call = Call(
            verb="update",
            resource=self._row,
            subresource=self._row.subresource("status"),
            name=name,
            user=SYSTEM,
        )

        async def transform(old: Tree) -> Tree:
            return old | {"status": self._status(old, self._verdict(name, old))}

        try:
            await change(self._backend, call, WriteOptions(), transform)
        except (ApiError, KVError) as error:
            LOG.warning("what became of the names of %s was not stored: %s", name, error)

    def _verdict(self, name: str, tree: Tree) -> Verdict:
        group, given = tree["spec"]["group"], (tree.get("status") or {}).get("acceptedNames") or {}
        return judge(tree["spec"]["names"], given, self._taken(name, group))

    def _taken(self, name: str, group: str) -> Sequence[Mapping[str, Any]]:
        others = (seen.tree for other, seen in self._seen.items() if other != name)
        return [
            (tree.get("status") or {}).get("acceptedNames") or {}
            for tree in others
            if tree["spec"]["group"] == group
        ]

    def _status(self, tree: Tree, verdict: Verdict) -> Tree:
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
        return conditions.updated(listed, condition, self._backend.clock.now())

    # --- what is served

    def _serve(self, name: str, tree: Tree, verdict: Verdict) -> None:
        version = meta.uid(tree), meta.generation(tree)
        is_refused = bool(verdict.problem) and not conditions.is_true(tree, "Established")
        if is_refused or self._served.get(name) == version:
            return
        schemas = self._backend.schemas
        self._catalog.add(compile_definition(tree, lambda: schemas.definition(OBJECT_META)))
        self._served[name] = version


def _resource_of(name: str) -> GroupResource:
    plural, _, group = name.partition(".")
    return GroupResource(group, plural)
