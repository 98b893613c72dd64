"""What happens in a run: its Changes and its Requests, in the order in which they arrive, and the objects that they make."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing, asynccontextmanager
from math import inf
from operator import attrgetter
from typing import Any, Final

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

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
from mockube.history.field_values import changes_of
from mockube.history.versions import ExactReader
from mockube.kubelet.kubelets import ENDPOINT
from mockube.objects.errors import KindNotServed
from mockube.objects.resource_names import ResourceNames
from mockube.operators.end_state import NOISE, Identity, is_noise, kind_of
from mockube.operators.writes import is_write

from .change import Change
from .secret_values import SECRET, digested
from .unseen import HiddenChanges, unseen_lines

_ADDRESS: Final[Identity] = ("ConfigMap", ENDPOINT.namespace, ENDPOINT.name)
"""The address of the simulated kubelets, which is another one in each fork."""
_ERRORS_FROM: Final = 400
_LOCK: Final = "control-plane.alpha.kubernetes.io/leader"
"""The annotation of a ConfigMap or Endpoints with which older operators elect a leader, instead of a Lease."""
_VERSION_PATH: Final = "/metadata/resourceVersion"
_LOCK_RESOURCES: Final = {"ConfigMap": "configmaps", "Endpoints": "endpoints"}
_MAPS: Final = ("labels", "annotations")
_LISTS: Final = ("finalizers", "ownerReferences")
Add = Callable[[ReadOnlyTree], Awaitable[None]]


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
    is_cut: bool = False
    """Whether a Fault cut its connection."""
    uri: str = ""
    began: str = ""
    """When it arrived, by the clock of the cluster."""
    audit_id: str = ""
    is_conditional: bool = False
    """Whether it is only executed if the object has a certain version."""
    is_of_lock: bool = False
    """Whether it is about an object by which a leader is elected, as a Lease is."""

    @property
    def is_write(self) -> bool:
        return is_write(self.verb, self.resource) and not self.is_of_lock

    @property
    def is_error(self) -> bool:
        return self.code >= _ERRORS_FROM or self.is_cut

    def line(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"the operator: {self.verb} {self.resource}{name} -> {self._result()}"

    def _result(self) -> str:
        if self.is_cut:
            return "the connection is cut"
        return f"{self.code} {self.message}".strip() if self.code else "no response"


class Note(Struct, frozen=True, kw_only=True):
    """What the plan or the scenario did, or what an operator had not seen."""

    seconds: float
    text: str
    revision: int = 0
    """The newest revision that was known then; 0 if there was none."""

    def line(self) -> str:
        return self.text


Event = Note | OperatorRequest | Change
"""What happened in a run."""


class ArrangedObjects(Struct, frozen=True, kw_only=True):
    """The objects that there were before a run, at a revision that may be before the fork."""

    objects: Mapping[Identity, ReadOnlyTree]
    revision: int
    request_version: str
    """The version of the Requests then."""
    seconds: float
    """When they were read, by the clock of this process."""


class Trace(Struct, kw_only=True):
    """A run as it is seen. `objects` are those that exist now."""

    clock: Clock
    operator: str
    """The user that the operator is."""
    objects: dict[Identity, ReadOnlyTree]
    first_revision: int = 0
    """That of the fork: Changes until then were before the run."""
    changes: list[Change] = field(default_factory=list)
    requests: list[OperatorRequest] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    hits: dict[str, int] = field(default_factory=dict)
    """How often each Fault has taken place."""
    event_revisions: dict[str, int] = field(default_factory=dict)
    """The revision of the event at which a Fault has begun."""
    deletions: int = 0
    """How often the operator has deleted an object."""
    step_revisions: list[int] = field(default_factory=list)
    """The newest revision before each step."""
    locks: set[Identity] = field(default_factory=set)
    """The ConfigMaps and Endpoints by which a leader is elected."""
    hidden: dict[str, HiddenChanges] = field(default_factory=dict)
    """What the operator does not see, or did not see, by the name of the Fault that hides it."""
    began: float = 0.0
    last_activity: float = 0.0
    gaps: list[float] = field(default_factory=list)
    """The pauses before writes."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str = ""
    """Why the run cannot be followed any more."""

    def note(self, text: str) -> None:
        revision = self.changes[-1].revision if self.changes else 0
        self.notes.append(Note(seconds=self._seconds(), text=text, revision=revision))
        self.touch()

    def hide(self, fault: str, resource: str, revision: int, lag: float = inf) -> None:
        """Note that the operator sees no changes of a resource after a revision."""
        self.hidden[fault] = HiddenChanges(
            resource=resource, revision=revision, began=self._seconds(), lag=lag
        )

    def end_hiding(self, fault: str) -> None:
        if fault in self.hidden:
            self.hidden[fault].ended = self._seconds()

    def is_while_hidden(self, request: OperatorRequest) -> bool:
        """Return whether a request is sent while something is hidden from the operator, which may be why it sends it again and again."""
        return any(each.began <= request.seconds <= each.ended for each in self.hidden.values())

    def touch(self) -> None:
        """Note that something happens: the run is not quiet."""
        self.last_activity = self.clock.monotonic()
        self.arrived.set()

    def _touch_after_gap(self) -> None:
        """Note a write. What the plan or the scenario does ends no gap: it waits itself until a run is quiet."""
        self.gaps.append(self.quiet_seconds())
        self.touch()

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

    def fields_written_by_operator(self) -> Mapping[Identity, AbstractSet[str]]:
        """Return the fields that the operator changed of objects that built-in controllers have made."""
        counted = self.counted
        found: dict[Identity, set[str]] = defaultdict(set)
        for change in self.changes:
            if change.type == "MODIFIED" and change.user == self.operator and change.identity in counted:
                changed = changes_of(change.before, change.after)
                found[change.identity] |= {each.path for each in changed}
        return found

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

    @property
    def has_secrets(self) -> bool:
        """Return whether Secrets were written in the run."""
        return any(change.identity[0] == SECRET for change in self.changes)

    def add_secrets(self, trees: Iterable[ReadOnlyTree]) -> None:
        """Take the digests of the values that Secrets have now in place of the masks of their Changes."""
        for tree in trees:
            identity = (SECRET, meta.namespace(tree), meta.name(tree))
            known = self.objects.get(identity)
            if known is not None and "data" in tree:
                self.objects[identity] = {**known, "data": digested({**tree, "kind": SECRET})["data"]}

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
        if is_noise(identity) or identity == _ADDRESS:
            return
        user = author.get("user", "")
        before = self.objects.get(identity)
        after = whole or _after(spec, before, about)
        if identity in self.locks or _is_lock(after):
            self._add_lock(identity)
            return
        if after is None:
            self.objects.pop(identity, None)
        else:
            self.objects[identity] = after
        if spec["revision"] <= self.first_revision:
            return
        change = Change(
            seconds=self._seconds(),
            revision=spec["revision"],
            type=spec["type"],
            identity=identity,
            resource=about.get("resource", ""),
            user=user,
            author="the operator" if user == self.operator else user or "another server",
            verb=author.get("verb", ""),
            before=before,
            after=after,
            paths=[each["path"] for each in spec.get("patch") or ()],
            audit_id=author.get("auditID", ""),
        )
        self.changes.append(change)
        self.deletions += change.user == self.operator and change.begins_deletion
        self._touch_after_gap()

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
            is_cut=bool(status.get("isCut")),
            uri=spec.get("uri", ""),
            began=spec.get("time", ""),
            audit_id=spec.get("auditID", ""),
            is_conditional=_is_conditional(spec),
        )
        request = self._with_lock(request)
        self.requests.append(request)
        if request.is_write:
            self._touch_after_gap()
        self.arrived.set()

    def _add_lock(self, identity: Identity) -> None:
        if identity not in self.locks:
            self.locks.add(identity)
            self.requests = [
                *map(self._with_lock, self.requests)
            ]  # the first one may arrive before its Change

    def _with_lock(self, request: OperatorRequest) -> OperatorRequest:
        """Return a request with whether it is about a lock; one that creates a lock has no name, and counts as a write."""
        is_of_lock = any(
            (request.resource, request.namespace, request.name) == (_LOCK_RESOURCES[kind], namespace, name)
            for kind, namespace, name in self.locks
        )
        return replace(request, is_of_lock=True) if is_of_lock else request

    def add_fault(self, tree: ReadOnlyTree) -> None:
        name, status = meta.name(tree), tree.get("status") or {}
        if any("fromEvent" in (tree["spec"].get(effect) or {}) for effect in ("hold", "drop")):
            self.hits[name] = int("event" in status)  # a watch is hit before the event comes
            self.event_revisions[name] = (status.get("event") or {}).get("revision", 0)
        else:
            self.hits[name] = status.get("hits", 0)
        self.arrived.set()

    def events(self) -> Sequence[Event]:
        """Return what was done, the Changes but the routine of built-in controllers, and requests of the operator, in their order.

        A request that has succeeded is left out if its Change is there.
        """
        counted = self.counted
        changes = [
            each
            for each in self.changes
            if each.identity not in counted and not (each.type == "MODIFIED" and is_controller(each.user))
        ]
        written = {each.audit_id for each in changes}
        requests = [
            each
            for each in self.requests
            if each.is_error or (each.is_write and (not each.audit_id or each.audit_id not in written))
        ]
        unseen = unseen_lines(self.changes, self.operator, [*self.hidden.values()])
        notes = [Note(seconds=seconds, text=text) for seconds, text in unseen]
        # What was not seen is after its write, as a sort keeps the order of the same time.
        every: Sequence[Event] = [*self.notes, *requests, *changes, *notes]
        return sorted(every, key=attrgetter("seconds"))

    def _seconds(self) -> float:
        return self.clock.monotonic() - self.began


def _is_conditional(request: Mapping[str, Any]) -> bool:
    """Return whether a write names the version that it changes: the server merges any other patch with what there is."""
    verb, body = request.get("verb"), request.get("body")
    if verb != "patch":
        return verb == "update"  # clients send back what they have read
    if isinstance(body, list):  # a test that fails is no conflict, but makes the patch invalid
        return any(each.get("op") != "test" and each.get("path") == _VERSION_PATH for each in body)
    return isinstance(body, Mapping) and "resourceVersion" in (body.get("metadata") or {})


def _is_lock(tree: ReadOnlyTree | None) -> bool:
    return tree is not None and kind_of(tree) in _LOCK_RESOURCES and _LOCK in meta.annotations(tree)


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
    client: Client,
    clock: Clock,
    arranged: ArrangedObjects,
    revision: int,
    user: str,
    names: ResourceNames | None = None,
) -> AsyncIterator[Trace]:
    """Follow a fork from its revision on; `user` is the operator, and `names` are its resources, if they are known."""
    now = clock.monotonic()
    trace = Trace(
        clock=clock,
        operator=user,
        objects=dict(arranged.objects),
        first_revision=revision,
        began=now,
        last_activity=now,
    )
    names = names or ResourceNames(client)

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
            follow(CHANGES, str(arranged.revision), "", add_change),
            follow(REQUESTS, arranged.request_version, selector({"user": user}), add_request),
            follow(FAULTS, "", "", add_fault),  # from those that there are
        )
    ]
    try:
        yield trace
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
