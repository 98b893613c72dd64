"""What explanations read. A fact that is not there yet is named by an exception: whoever collects facts adds it, and explains again.

So an explanation asks for what its case needs, and remains a pure function: of the same facts it makes the same explanation.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.groups import CONTROL, GroupResource
from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.tree import ReadOnlyTree

_T = TypeVar("_T")

_ACCOUNT: Final = "system:serviceaccount:"
_ANONYMOUS: Final = "system:anonymous"
EVENTS: Final = GroupResource("", "events")
FAULTS: Final = GroupResource(CONTROL, "faults")
"""The only kind of the control group that is explained."""


class ObjectsOf(Struct, frozen=True):
    """All objects of a resource, or those in a namespace."""

    resource: GroupResource
    namespace: str = ""

    def __str__(self) -> str:
        return f"list {self.resource}{_scope(self.namespace)}"


class ObjectNamed(Struct, frozen=True):
    resource: GroupResource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"get {self.resource} {self.name}{_scope(self.namespace)}"


class EventsOf(Struct, frozen=True):
    """The Events about an object."""

    namespace: str
    uid: str

    def __str__(self) -> str:
        return f"list events{_scope(self.namespace)}"


class LogOf(Struct, frozen=True):
    """The last lines of the log of a container, or of the one that ran before it."""

    namespace: str
    pod: str
    container: str
    previous: bool = False

    def __str__(self) -> str:
        return f"get pods/log {self.pod}{_scope(self.namespace)}"


class DependentsOf(Struct, frozen=True):
    """The objects of all kinds that name an object as their owner."""

    namespace: str
    uid: str

    def __str__(self) -> str:
        return f"list all kinds{_scope(self.namespace)}"


class ContentsOf(Struct, frozen=True):
    """The objects of all kinds in a namespace that is being deleted, without Events."""

    namespace: str

    def __str__(self) -> str:
        return f"list all kinds{_scope(self.namespace)}"


class WatchersOf(Struct, frozen=True):
    """The names of the programs that watch a resource and may reconcile it."""

    resource: GroupResource
    namespace: str

    def __str__(self) -> str:
        return f"watches of {self.resource}{_scope(self.namespace)}"


class Member(Struct, frozen=True):
    """A step of a path into a list: the member with a name, or with a type or a key where these are the names."""

    name: str


FieldPath: TypeAlias = tuple[str | Member, ...]
"""The path of a field, such as ("spec", "containers", Member("web"), "image"); empty for the whole object."""


class WritesOf(Struct, frozen=True, kw_only=True):
    """The newest writes that changed a field of an object, or anything but its status, also if the object is deleted."""

    kind: str
    group: str = ""
    namespace: str = ""
    name: str
    path: FieldPath = ()

    def __str__(self) -> str:
        return "list changes.control.mockube.dev"


class DryRun(Struct, frozen=True, kw_only=True):
    """Whether the server would accept a request now: "" if it would, else why not."""

    verb: str
    kind: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    media_type: str = "application/json"
    body: str = ""

    def __str__(self) -> str:
        subresource = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.kind.lower()}{subresource} {self.name}{_scope(self.namespace)}"


class Allowed(Struct, frozen=True, kw_only=True):
    """Whether a user may do something now: what the authorizers say."""

    user: str
    groups: tuple[str, ...]
    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return "create subjectaccessreviews.authorization.k8s.io"


class LossOf(Struct, frozen=True, kw_only=True):
    """The role or binding by whose change or deletion a user lost a right, before a time."""

    right: Allowed
    time: str

    def __str__(self) -> str:
        return "list changes.control.mockube.dev"


Question: TypeAlias = (
    ObjectsOf
    | ObjectNamed
    | EventsOf
    | LogOf
    | DependentsOf
    | ContentsOf
    | WatchersOf
    | WritesOf
    | DryRun
    | Allowed
    | LossOf
)
Answer: TypeAlias = Sequence[ReadOnlyTree] | ReadOnlyTree | Sequence[str] | str | bool | None


class _Refused:
    """The answer to a question whose answer the user may not read."""


REFUSED: Final = _Refused()
NOT_SET: Final = object()
"""The value of a field that an object does not have."""


def _scope(namespace: str) -> str:
    return f" in the namespace {namespace}" if namespace else ""


class NotCollected(Exception):
    """A fact is needed that was not collected yet."""

    def __init__(self, question: Question) -> None:
        super().__init__(str(question))
        self.question = question


class Facts:
    """The answers to questions. What the user may not read is absent, and `unreadable` says so."""

    def __init__(
        self, now: datetime, gates: FeatureGates, answers: Mapping[Question, Answer | _Refused]
    ) -> None:
        self.now, self.gates = now, gates
        self._answers = answers
        self._results: dict[Hashable, Any] = {}

    def memoized(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return what is made of facts, which is made once: an explanation begins again for each fact that it lacks."""
        if key not in self._results:
            self._results[key] = make()
        result: _T = self._results[key]
        return result

    @property
    def unreadable(self) -> Sequence[str]:
        """What the user may not read, of what the explanation needs."""
        return [
            *dict.fromkeys(
                str(question)
                for question, answer in self._answers.items()
                if answer is REFUSED and not isinstance(question, DryRun)
            )
        ]

    def _answer(self, question: Question) -> Answer | _Refused:
        try:
            return self._answers[question]
        except KeyError:
            raise NotCollected(question) from None

    def may_list(self, resource: GroupResource, namespace: str = "") -> bool:
        return self._answer(ObjectsOf(resource, namespace)) is not REFUSED

    def list(self, resource: GroupResource, namespace: str = "") -> Sequence[ReadOnlyTree]:
        """Return all objects; none if the user may not list them."""
        return self._sequence(ObjectsOf(resource, namespace))

    def find(self, resource: GroupResource, namespace: str, name: str) -> ReadOnlyTree | None:
        """Return an object; None if it does not exist, or if the user may not read it."""
        answer = self._answer(ObjectNamed(resource, namespace, name))
        return answer if isinstance(answer, dict) else None

    def is_missing(self, resource: GroupResource, namespace: str, name: str) -> bool:
        """Return whether an object is known not to exist."""
        return self._answer(ObjectNamed(resource, namespace, name)) is None

    def dependents_of(self, obj: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
        """Return the objects that name an object as an owner, of the kinds that the user may list."""
        return self._sequence(DependentsOf(meta.namespace(obj), meta.uid(obj)))

    def contents_of(self, namespace: str) -> Sequence[ReadOnlyTree]:
        """Return the objects in a namespace, of the kinds that the user may list."""
        return self._sequence(ContentsOf(namespace))

    def watchers_of(self, resource: GroupResource, namespace: str) -> Sequence[str]:
        answer = self._answer(WatchersOf(resource, namespace))
        return [str(name) for name in answer] if isinstance(answer, list | tuple) else ()

    def is_allowed(self, question: Allowed) -> bool | None:
        """Return whether a user may do something now; None if whoever asks may not know."""
        answer = self._answer(question)
        return answer if isinstance(answer, bool) else None

    def loss_of(self, right: Allowed, time: str) -> ReadOnlyTree | None:
        """Return the role or binding by which a user lost a right before a time, with the `field` that was changed if it still exists.

        None if no write took the right, or if whoever asks may not know.
        """
        answer = self._answer(LossOf(right=right, time=time))
        return answer if isinstance(answer, dict) else None

    def writes_of(self, question: WritesOf) -> Sequence[ReadOnlyTree]:
        """Return the newest writes that changed a field, the newest first; none if the user may not read them."""
        return self._sequence(question)

    def refusal_of(self, request: DryRun) -> str | None:
        """Return why the server would refuse a request now; "" if it would not, None if the user lacks the right to it."""
        answer = self._answer(request)
        return answer if isinstance(answer, str) else None

    def _sequence(self, question: Question) -> Sequence[ReadOnlyTree]:
        answer = self._answer(question)
        return answer if isinstance(answer, list | tuple) else ()

    def may_read_events(self, obj: ReadOnlyTree) -> bool:
        return self._answer(_events_about(obj)) is not REFUSED

    def events_of(self, obj: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
        """Return the Events about an object, the newest first."""
        events = self._sequence(_events_about(obj))
        return sorted(events, key=event_time, reverse=True)

    def log(self, pod: ReadOnlyTree, container: str, *, previous: bool) -> Sequence[str]:
        """Return the last lines of a log; none if there are none, or if the user may not read it."""
        answer = self._answer(LogOf(meta.namespace(pod), meta.name(pod), container, previous))
        return [str(line) for line in answer] if isinstance(answer, list | tuple) else ()


def _events_about(obj: ReadOnlyTree) -> EventsOf:
    return EventsOf(meta.namespace(obj) or "default", kubelet_uid(obj))


def is_component(user: str) -> bool:
    """Return whether a user is a part of the control plane or a node, and no person, nor a program of the cluster's users.

    Requests of the anonymous user are those of a client without valid credentials.
    """
    is_account_of_users = user.startswith(_ACCOUNT) and not user.startswith(f"{_ACCOUNT}kube-system:")
    return user.startswith("system:") and user != _ANONYMOUS and not is_account_of_users


def value_at(tree: ReadOnlyTree | None, path: FieldPath) -> Any:
    """Return the value of a field; NOT_SET if there is none."""
    value: Any = NOT_SET if tree is None else tree
    for step in path:
        if isinstance(step, Member):
            members = value if isinstance(value, list) else ()
            value = next((each for each in members if is_member_named(each, step.name)), NOT_SET)
        else:
            value = value.get(step, NOT_SET) if isinstance(value, dict) else NOT_SET
    return value


def is_member_named(member: Any, name: str) -> bool:
    return isinstance(member, dict) and name in (member.get("name"), member.get("type"), member.get("key"))


def event_time(event: ReadOnlyTree) -> str:
    """Return when an Event happened last, as text that sorts."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next(filter(None, times), meta.metadata(event).get("creationTimestamp") or ""))
