"""What happens in a run: its Changes and its Requests, in the order in which they arrive, and the objects that they make."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import orjson
from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.patch.json_difference import patched
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.control.matching import is_controller
from mockube.apiserver.user import SERVER
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import start
from mockube.control_objects import CHANGES, FAULTS, REQUESTS, selector, watch_after
from mockube.history.versions import ExactReader
from mockube.kubelet.kubelets import ENDPOINT
from mockube.objects.errors import KindNotServed
from mockube.objects.resource_names import ResourceNames
from mockube.operators.end_state import NOISE, Identity, kind_of
from mockube.operators.writes import is_write

_ADDRESS: Final[Identity] = ("ConfigMap", ENDPOINT.namespace, ENDPOINT.name)
"""The address of the simulated kubelets, which is another one in each fork."""
_ERRORS_FROM: Final = 400
_MAPS: Final = ("labels", "annotations")
_LISTS: Final = ("finalizers", "ownerReferences")
Add = Callable[[ReadOnlyTree], Awaitable[None]]


class Change(Struct, frozen=True, kw_only=True):
    """A write to the store."""

    seconds: float
    revision: int
    type: str
    identity: Identity
    user: str
    author: str
    """The user, or what it is in a report."""
    verb: str
    before: ReadOnlyTree | None
    after: ReadOnlyTree | None
    paths: Sequence[str] = ()

    def line(self) -> str:
        kind, namespace, name = self.identity
        place = f" in {namespace}" if namespace else ""
        fields = f" ({', '.join(self.paths[:3])})" if self.type == "MODIFIED" and self.paths else ""
        return f"{self.type} {kind} {name}{place}{fields} by {self.author}"


class OperatorRequest(Struct, frozen=True, kw_only=True):
    """A request of the operator that has ended, or a watch that has begun."""

    seconds: float
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    fault: str
    is_answered_by_fault: bool
    message: str
    uri: str = ""
    began: str = ""
    """When it arrived, by the clock of the cluster."""

    @property
    def is_write(self) -> bool:
        return is_write(self.verb, self.resource)

    @property
    def is_error(self) -> bool:
        return self.code >= _ERRORS_FROM

    def line(self) -> str:
        name = f" {self.name}" if self.name else ""
        result = (
            self.code or "the connection is cut"
            if not self.is_error
            else f"{self.code} {self.message}".strip()
        )
        return f"the operator: {self.verb} {self.resource}{name} -> {result}"


class Note(Struct, frozen=True, kw_only=True):
    """What the plan or the scenario did."""

    seconds: float
    text: str

    def line(self) -> str:
        return self.text


class Trace(Struct, kw_only=True):
    """A run as it is seen. `objects` are those that exist now."""

    clock: Clock
    operator: str
    """The user that the operator is."""
    objects: dict[Identity, ReadOnlyTree]
    changes: list[Change] = field(default_factory=list)
    requests: list[OperatorRequest] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    hits: dict[str, int] = field(default_factory=dict)
    began: float = 0.0
    last_activity: float = 0.0
    gaps: list[float] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str = ""
    """Why the run cannot be followed any more."""

    def note(self, text: str) -> None:
        self.notes.append(Note(seconds=self._seconds(), text=text))
        self.touch()

    def touch(self) -> None:
        """Note that something happens: the run is not quiet."""
        now = self.clock.monotonic()
        self.gaps.append(now - self.last_activity)
        self.last_activity = now
        self.arrived.set()

    @property
    def touched(self) -> frozenset[Identity]:
        return frozenset(change.identity for change in self.changes)

    @property
    def counted(self) -> frozenset[Identity]:
        """The objects that built-in controllers have made."""
        return frozenset(
            change.identity
            for change in self.changes
            if change.type == "ADDED"
            and (
                change.user == SERVER.name
                or is_controller(change.user)
                or change.user.startswith("system:node")
            )
        )

    def objects_made_by(self, user: str) -> Sequence[ReadOnlyTree]:
        """Return the objects that a user has made in the run and that exist."""
        identities = {each.identity for each in self.changes if each.type == "ADDED" and each.user == user}
        return [self.objects[identity] for identity in sorted(identities) if identity in self.objects]

    def has_seen(self, tree: ReadOnlyTree) -> bool:
        """Return whether all Changes until the version of an object have arrived."""
        return bool(self.changes) and self.changes[-1].revision >= int(meta.resource_version(tree))

    def metadata_of_others(self, identity: Identity) -> ReadOnlyTree:
        """Return the labels and the like of an object as others have set them, without what the operator has noted in it."""
        changes = [each for each in self.changes if each.identity == identity]
        first = changes[0].before if changes else self.objects.get(identity)
        members = dict(_members(first))
        for change in changes:
            if change.type == "ADDED":
                members = {}
            if change.user != self.operator:
                before, after = _members(change.before), _members(change.after)
                members = {key: value for key, value in members.items() if key in after or key not in before}
                members |= {key: value for key, value in after.items() if before.get(key) != value}
        return _metadata_with(members)

    def quiet_seconds(self) -> float:
        return self.clock.monotonic() - self.last_activity

    def request_count(self) -> int:
        return len(self.requests)

    def fail(self, problem: str) -> None:
        """Note why the run cannot be followed any more; the first reason counts."""
        self.problem = self.problem or problem
        self.arrived.set()

    def add_change(self, tree: ReadOnlyTree, whole: ReadOnlyTree | None = None) -> None:
        """Add a Change; `whole` is the object after one whose patch is left out, if it could be read."""
        spec = tree["spec"]
        about, author = spec["object"], spec.get("author") or {}
        kind = kind_of({"apiVersion": about["apiVersion"], "kind": about["kind"]})
        identity = (kind, about.get("namespace", ""), about["name"])
        if kind in NOISE or identity == _ADDRESS:
            return
        user = author.get("user", "")
        before = self.objects.get(identity)
        after = whole or _after(spec, before, about)
        if after is None:
            self.objects.pop(identity, None)
        else:
            self.objects[identity] = after
        self.changes.append(
            Change(
                seconds=self._seconds(),
                revision=spec["revision"],
                type=spec["type"],
                identity=identity,
                user=user,
                author="the operator" if user == self.operator else user or "another server",
                verb=author.get("verb", ""),
                before=before,
                after=after,
                paths=[each["path"] for each in spec.get("patch") or ()],
            )
        )
        self.touch()

    def add_request(self, tree: ReadOnlyTree) -> None:
        spec, status = tree["spec"], tree.get("status") or {}
        group = spec.get("group", "")
        plural = f"{spec.get('resource', '')}.{group}" if group else spec.get("resource", "")
        subresource = spec.get("subresource", "")
        request = OperatorRequest(
            seconds=self._seconds(),
            verb=spec.get("verb", ""),
            resource=f"{plural}/{subresource}" if subresource else plural,
            namespace=spec.get("namespace", ""),
            name=spec.get("name", ""),
            code=status.get("code") or 0,
            fault=status.get("fault", ""),
            is_answered_by_fault=bool(status.get("answeredByFault")),
            message=status.get("message", ""),
            uri=spec.get("uri", ""),
            began=spec.get("time", ""),
        )
        self.requests.append(request)
        if request.is_write:
            self.touch()
        self.arrived.set()

    def add_fault(self, tree: ReadOnlyTree) -> None:
        self.hits[meta.name(tree)] = (tree.get("status") or {}).get("hits", 0)
        self.arrived.set()

    def lines(self) -> Sequence[tuple[float, str]]:
        """Return what was done, the writes of the operator, and the Changes but the routine of built-in controllers, in their order."""
        requests = [each for each in self.requests if each.is_write or each.is_error]
        counted = self.counted
        changes = [
            each
            for each in self.changes
            if each.identity not in counted and not (each.type == "MODIFIED" and is_controller(each.user))
        ]
        every: Sequence[Note | OperatorRequest | Change] = [*self.notes, *requests, *changes]
        return [(each.seconds, each.line()) for each in sorted(every, key=lambda each: each.seconds)]

    def _seconds(self) -> float:
        return self.clock.monotonic() - self.began


def _members(tree: ReadOnlyTree | None) -> Mapping[tuple[str, str], Any]:
    """Return the labels and annotations, the finalizers and owners of an object, each by its field and its own key."""
    metadata = {} if tree is None else meta.metadata(tree)
    maps = {(field, key): value for field in _MAPS for key, value in metadata.get(field, {}).items()}
    lists = {
        (field, orjson.dumps(member).decode()): member
        for field in _LISTS
        for member in metadata.get(field, ())
    }
    return maps | lists


def _metadata_with(members: Mapping[tuple[str, str], Any]) -> ReadOnlyTree:
    maps = {field: {key: value for (of, key), value in members.items() if of == field} for field in _MAPS}
    lists = {field: [value for (of, _), value in members.items() if of == field] for field in _LISTS}
    return {field: values for field, values in {**maps, **lists}.items() if values}


def _after(
    spec: Mapping[str, Any], before: ReadOnlyTree | None, about: Mapping[str, Any]
) -> ReadOnlyTree | None:
    """Return the object after a Change; of one whose patch is left out, only its names."""
    if spec["type"] == "DELETED":
        return None
    patch = spec.get("patch")
    if patch is not None and (before is not None or spec["type"] == "ADDED"):
        return patched(None if spec["type"] == "ADDED" else before, patch)
    metadata = {name: about[name] for name in ("name", "namespace", "uid") if about.get(name)}
    return {"apiVersion": about["apiVersion"], "kind": about["kind"], "metadata": metadata}


async def _read_omitted(client: Client, names: ResourceNames, spec: Mapping[str, Any]) -> ReadOnlyTree | None:
    """Return the object after a Change whose patch is left out; None for another one, or if it cannot be read."""
    about = spec["object"]
    if not spec.get("patchOmitted") or spec["type"] == "DELETED" or kind_of(about) in NOISE:
        return None
    try:
        found = await names.find_kind(about["apiVersion"], about["kind"])
    except KindNotServed:
        return None
    reader = ExactReader(client, found, Key(about.get("namespace", ""), about["name"]))
    tree, _ = await reader.read(spec["revision"])
    return tree


@asynccontextmanager
async def following(
    client: Client, clock: Clock, arranged: Mapping[Identity, ReadOnlyTree], revision: int, user: str
) -> AsyncIterator[Trace]:
    """Follow a fork from a revision on; `user` is the operator."""
    now = clock.monotonic()
    trace = Trace(clock=clock, operator=user, objects=dict(arranged), began=now, last_activity=now)
    requests = await client.list(REQUESTS, field_selector="code=0")
    faults = await client.list(FAULTS)

    names = ResourceNames(client)

    async def add_change(tree: ReadOnlyTree) -> None:
        trace.add_change(tree, await _read_omitted(client, names, tree["spec"]))

    async def add_request(tree: ReadOnlyTree) -> None:
        trace.add_request(tree)

    async def add_fault(tree: ReadOnlyTree) -> None:
        trace.add_fault(tree)

    async def follow(kind: Resource[Any], version: str, field_selector: str, add: Add) -> None:
        try:
            async with aclosing(watch_after(client, kind, version, field_selector)) as trees:
                async for tree in trees:
                    await add(tree)
            trace.fail(f"{kind.plural} cannot be followed: the watch ended")
        except Exception as error:  # noqa: BLE001 - whatever it is, the run is not judged
            trace.fail(f"{kind.plural} cannot be followed: {str(error) or type(error).__name__}")

    tasks = [
        start("trace of a run", coroutine)
        for coroutine in (
            follow(CHANGES, str(revision), "", add_change),
            follow(REQUESTS, requests.resource_version, selector({"user": user}), add_request),
            follow(FAULTS, faults.resource_version, "", add_fault),
        )
    ]
    try:
        yield trace
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
