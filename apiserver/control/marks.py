"""Mark: a name for a revision of the store."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.registry.moments import Moment, is_moment
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.revisions import history_start
from mockube.etcd.kv import Revision

from .kind import AGE, ControlKind
from .schemas import column, integer, text
from .strategy import ControlStrategy

_REVISION: Final = ROOT.child("spec").child("revision")

MARK: Final = ControlKind(
    name="Mark",
    plural="marks",
    description="Mark is a name for a revision of the cluster's store: the state of all objects at one moment. The history is kept "
    "from the oldest Mark on, as long as --history or the memory of the store allows it.",
    spec={
        "description": "The revision that has the name. It cannot be changed.",
        "properties": {
            "revision": integer(
                "A revision of the store, as the resourceVersion of a list shows it. The default is the newest one.",
                minimum=1,
            ),
            "time": text(
                "When the Mark was made; of an earlier revision, when that was made. The server sets it."
            ),
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
        self._registry = registry

    def oldest(self) -> Revision | None:
        """Return the oldest revision that has a name; None if there is no Mark."""
        marks = self._registry.resource_cache(MARK.group_resource)
        return min((int(stored.tree()["spec"]["revision"]) for stored in marks), default=None)

    def find(self, name: str) -> Moment | None:
        """Return the moment that a Mark names; None if there is no such Mark."""
        stored = self._registry.find_cached(MARK.group_resource, "", name)
        return None if stored is None else Moment.of_spec(stored.tree()["spec"])

    async def prepare(self, new: Tree, _old: ReadOnlyTree | None) -> Tree:
        spec = new.get("spec") or {}
        if not isinstance(spec, dict):
            return new
        spec, time = (
            {name: value for name, value in spec.items() if name != "time"},
            self._cluster.clock.now(),
        )
        revision = spec.get("revision")
        if revision is None:
            spec["revision"] = (await self._cluster.kv.status()).revision
        elif isinstance(revision, int) and (entry := self._cluster.journal.newest_of(revision)) is not None:
            time = datetime.fromtimestamp(entry.time, UTC)
        return {**new, "spec": {**spec, "time": format_micro_time(time)}}

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
