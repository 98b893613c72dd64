"""What a report is made of: the answers of a server about its cluster, without the values of Secrets."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree


class ObjectIdentity(NamedTuple):
    """An object by its resource with the group, such as deployments.apps, its namespace and its name."""

    resource: str
    namespace: str
    name: str

    @classmethod
    def of(cls, resource: str, tree: ReadOnlyTree) -> "ObjectIdentity":
        return cls(resource, meta.namespace(tree), meta.name(tree))

    @classmethod
    def of_change(cls, change: ReadOnlyTree) -> "ObjectIdentity":
        subject = change["object"]
        return cls(subject["resource"], subject.get("namespace", ""), subject["name"])


class ContainerLog(Struct, frozen=True, kw_only=True):
    """The last lines of a container."""

    namespace: str
    pod: str
    container: str
    is_previous: bool = False
    """Whether they are of the container before its last restart."""
    lines: Sequence[str] = ()
    problem: str = ""
    """Why there are none."""


class Subject(Struct, frozen=True, kw_only=True):
    """What the report is about, besides the cluster: a command, or a test, and how it ended."""

    title: str = ""
    result: str = ""
    """Such as `exit code 1`."""
    text: str = ""
    """The message of a failure."""


NO_SUBJECT: Final = Subject()


class Recording(Struct, frozen=True, kw_only=True):
    """The answers of a server."""

    version: str
    """The release of Kubernetes."""
    revision: int
    """The revision of the store up to which the changes reach; 0 if the user may not list them."""
    discovery: Sequence[ReadOnlyTree] = ()
    """The documents of discovery, as the page reads them."""
    objects: Mapping[str, Sequence[ReadOnlyTree]] = field(default_factory=dict)
    """By resource with the group."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why the objects of a resource could not be listed."""
    events: Sequence[ReadOnlyTree] = ()
    changes: Sequence[ReadOnlyTree] = ()
    """The oldest first."""
    requests: Sequence[ReadOnlyTree] = ()
    marks: Sequence[ReadOnlyTree] = ()
    faults: Sequence[ReadOnlyTree] = ()
    logs: Sequence[ContainerLog] = ()
    explanations: Sequence[ReadOnlyTree] = ()
    """The statuses of Explanations of objects."""
    similar: Mapping[ObjectIdentity, Sequence[ObjectIdentity]] = field(default_factory=dict)
    """Objects whose state is that of an explained one."""
    refusals: Mapping[str, ReadOnlyTree] = field(default_factory=dict)
    """The statuses of Explanations of refused requests, by the names of these."""
    subject: Subject = NO_SUBJECT
    notes: Sequence[str] = ()
    """What is not in the report, and why."""


class RecordedRun(Struct, frozen=True, kw_only=True):
    """A recording that is compared with others."""

    recording: Recording
    revisions: Sequence[int]
    """The changes that the comparison shows: not those before the run, and no routine."""
