"""Mark: a name for a revision of the store."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import BadRequest
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.registry.moments import is_moment
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.revisions import history_start
from mockube.etcd.kv import Revision

from .kind import AGE, ControlKind
from .schemas import column, integer
from .strategy import ControlStrategy

_REVISION: Final = ROOT.child("spec").child("revision")

MARK: Final = ControlKind(
    name="Mark",
    plural="marks",
    description="Mark is a name for a revision of the cluster's store: the state of all objects at one moment.",
    spec={
        "description": "The revision that has the name. It cannot be changed.",
        "properties": {
            "revision": integer(
                "A revision of the store, as the resourceVersion of a list shows it. The default is the newest one.",
                minimum=1,
            )
        },
    },
    columns=(
        column("Revision", ".spec.revision", "The revision of the store that has the name.", type_="integer"),
        AGE,
    ),
    selectable=(selectable("spec.revision"),),
    verbs=("create", "delete", "get", "list", "watch"),
)


class Marks(ControlStrategy):
    kind = MARK

    def __init__(self, cluster: Registry) -> None:
        """`cluster` is the registry of the cluster, whose revisions have the names."""
        self._cluster = cluster

    async def begin(self, registry: Registry) -> None:
        self._objects = registry.resource_cache(MARK.group_resource)
        self._key = partial(registry.layout.object, registry.rows[MARK.group_resource], "")

    def find(self, name: str) -> Revision | None:
        """Return the revision that a Mark names; None if there is no such Mark."""
        try:
            stored = self._objects.get(self._key(name))
        except BadRequest:  # no object can have such a name
            return None
        return None if stored is None else int(stored.tree()["spec"]["revision"])

    async def prepare(self, new: Tree, _old: ReadOnlyTree | None) -> Tree:
        spec = new.get("spec") or {}
        if not isinstance(spec, dict) or spec.get("revision") is not None:
            return new
        return {**new, "spec": {**spec, "revision": (await self._cluster.kv.status()).revision}}

    async def check(self, new: ReadOnlyTree, _old: ReadOnlyTree | None) -> Iterable[FieldError]:
        return [*_check_name(meta.name(new)), *await self._check_revision(new["spec"]["revision"])]

    async def _check_revision(self, revision: Revision) -> Iterable[FieldError]:
        kv = self._cluster.kv
        newest, oldest = (await kv.status()).revision, await history_start(kv)
        if revision > newest:
            problem = f"must not be later than the newest revision, {newest}"
        elif revision < oldest:
            problem = f"must not be before the history of the store, which begins at {oldest}"
        else:
            return ()
        return [errors.invalid(_REVISION, revision, problem)]


def _check_name(name: str) -> Iterator[FieldError]:
    """Yield the error of a name that stands for another moment where a moment is needed."""
    if is_moment(name):
        problem = "must not be now, a revision, a time or a span: they are moments without a Mark"
        yield errors.invalid(ROOT.child("metadata").child("name"), name, problem)
