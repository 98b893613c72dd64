"""The objects at the end of a run, without what is another value each time, and how two such ends differ.

Uids, times, versions and addresses are left out. A name with a random part is known by its `generateName`, or because it is another
one in a second run; objects with such names are matched by their kind, their owners and what is in them.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import takewhile, zip_longest
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.secrets import MASK
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
    LABEL_CONTROLLER_REVISION_HASH,
    LABEL_POD_TEMPLATE_HASH,
    NAMESPACE_SYSTEM,
    PREFIXES_OF_CONTENTS,
)
from mockube.apiserver.admission.service_account import VOLUME_PREFIX
from mockube.history.field_values import ABSENT, FieldChange, changes_of, is_below, only_fields

Identity = tuple[str, str, str]
"""The kind with its group, the namespace and the name of an object."""
Role = tuple[str, str, str]
"""An Identity whose name has a star in place of what is random."""

NOISE: Final = frozenset(
    {
        *("Event", "Event.events.k8s.io", "Lease.coordination.k8s.io", "Node", "CSINode.storage.k8s.io"),
        *("IPAddress.networking.k8s.io", "VolumeAttachment.storage.k8s.io"),
    }
)
"""Kinds whose objects change without an operator, or with a Service or the node of a pod. They are not compared."""
_PLACE_OF_CONTENTS: Final = ("Secret", NAMESPACE_SYSTEM)
_CONTENTS_OF_VOLUMES: Final = tuple(f"{prefix}-" for prefix in PREFIXES_OF_CONTENTS.values())
_METADATA: Final = frozenset(
    {
        *("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"),
        # How often a Deployment was changed and changed back:
        *(ANNOTATION_REVISION, ANNOTATION_REVISION_HISTORY),
    }
)
_PLACES: Final = frozenset(
    {
        *("nodeName", "podIP", "podIPs", "hostIP", "hostIPs", "clusterIP", "clusterIPs", "nodePort"),
        *("containerID", "imageID", "restartCount"),
    }
)
_OMITTED_OF_STATUS: Final = _METADATA | _PLACES
_OMITTED_OF_KINDS: Final[Mapping[str, AbstractSet[str]]] = {
    "Pod": frozenset({"nodeName"}),
    "Service": frozenset({"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"}),
    "Endpoints": frozenset({"nodeName"}),
    "EndpointSlice.discovery.k8s.io": frozenset({"nodeName"}),
}
"""Fields whose values depend on the moment, on chance or on the number of writes: of metadata and status, and of some kinds."""
_ONLY_SHOWN: Final[Mapping[str, Sequence[str]]] = {"Secret": ("metadata", "type", "immutable")}
"""The only fields of a kind whose values are printed, but for the annotation of `kubectl apply`, which has the whole object."""
_NO_NAMES: Final[AbstractSet[str]] = frozenset()
_OBSERVED: Final = "observedGeneration"
_CONDITIONS: Final = "conditions"
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.]{0,10}(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_MANY_FIELDS: Final = 3
_HASH: Final = re.compile("[bcdfghjklmnpqrstvwxz2456789]{5,10}")
_SEPARATORS: Final = "-."
_NOTHING: Final[Mapping[str, Any]] = {}
CleanText = Callable[[str], str]
"""Returns a text with labels in place of what is another value each time."""
Counted = Mapping[Identity, AbstractSet[str]]
"""Objects that built-in controllers made: of these, the number, the owners and some fields are compared."""
_NONE_COUNTED: Final[Counted] = {}


class NamePattern(Struct, frozen=True):
    """A name with a random part of objects of a kind."""

    kind: str
    prefix: str
    suffix: str

    @property
    def label(self) -> str:
        return f"{self.prefix}*{self.suffix}"

    def matches(self, kind: str, name: str) -> bool:
        least = len(self.prefix) + len(self.suffix)
        return (
            kind == self.kind
            and len(name) > least
            and name.startswith(self.prefix)
            and name.endswith(self.suffix)
        )


class Varying(Struct, frozen=True, kw_only=True):
    """What is not the same each time, although nothing was disturbed."""

    patterns: Sequence[NamePattern] = ()
    fixed: AbstractSet[Identity] = frozenset()
    """Objects whose names are no random ones, although a pattern matches them."""
    fields: AbstractSet[tuple[Role, str]] = frozenset()
    counts: AbstractSet[Role] = frozenset()
    """Objects that exist in one run and not in another, or not as often."""

    def lines(self) -> Sequence[str]:
        """Return what varies, for a report."""
        fields = (f"{label_of(role)}: {path}" for role, path in sorted(self.fields))
        counts = (f"{label_of(role)}: how many there are" for role in sorted(self.counts))
        return [*fields, *counts]


NOTHING_VARIES: Final = Varying()


class EndState(Struct, frozen=True, kw_only=True):
    """The objects at the end, by their roles."""

    objects: Mapping[Role, Sequence[ReadOnlyTree]]
    labels: Mapping[Identity, Role]


class Difference(Struct, frozen=True, kw_only=True):
    """One way in which an end is not the expected one."""

    type: str
    """missing, left over or different."""
    role: Role
    changes: Sequence[FieldChange] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """What is the same in each run that ends in this way."""
        return (self.type, *self.role, *(change.path for change in self.changes))

    def __str__(self) -> str:
        label = label_of(self.role)
        if not self.changes:
            return f"{label} is {self.type}"
        changes = "; ".join(field_lines(self.role[0], self.changes[:_MANY_FIELDS]))
        more = len(self.changes) - _MANY_FIELDS
        return f"{label} differs: {changes}{f'; and {more} more fields' if more > 0 else ''}"


def field_lines(kind: str, changes: Iterable[FieldChange]) -> Iterator[str]:
    """Yield the changes of fields of an object of a kind for a report, without the values of a Secret."""
    for change in changes:
        yield str(_masked(change, _ONLY_SHOWN[kind]) if kind in _ONLY_SHOWN else change)


def _masked(change: FieldChange, fields: Iterable[str]) -> FieldChange:
    """Return the change of a field for a report, which others may read: values outside of some fields are compared, and not shown."""
    if any(is_below(change.path, field) for field in fields) and "last-applied" not in change.path:
        return change
    before, after = (value if value is ABSENT else MASK for value in (change.before, change.after))
    return FieldChange(change.path, before, after)


def label_of(role: Role) -> str:
    kind, namespace, name = role
    return f"{kind} {name}{f' in {namespace}' if namespace else ''}"


def kind_of(tree: ReadOnlyTree) -> str:
    """Return the kind of an object with its group, as `Deployment.apps`."""
    group = meta.api_version(tree).rpartition("/")[0]
    return f"{meta.kind(tree)}.{group}" if group else meta.kind(tree)


def identity_of(tree: ReadOnlyTree) -> Identity:
    return kind_of(tree), meta.namespace(tree), meta.name(tree)


def is_noise(identity: Identity) -> bool:
    """Return whether an object changes without an operator, as the Secrets in which the contents of volumes are kept."""
    is_contents = identity[:2] == _PLACE_OF_CONTENTS and identity[2].startswith(_CONTENTS_OF_VOLUMES)
    return identity[0] in NOISE or is_contents


def end_state(
    objects: Iterable[ReadOnlyTree],
    varying: Varying = NOTHING_VARIES,
    counted: Counted = _NONE_COUNTED,
) -> EndState:
    """Return the end that objects are, without most of what `counted` ones have."""
    every = [*objects]
    compared = [tree for tree in every if not is_noise(identity_of(tree)) and not _is_old_version(tree)]
    hashes = {each: "*" for tree in every for each in _template_hashes(tree)}
    names = {identity_of(tree): _random_name(tree, varying) for tree in compared}
    renamed = {name: label for (_, _, name), label in names.items() if label != name}
    texts = {name: renamed[name] for name in sorted(renamed, key=len, reverse=True)} | hashes
    roles = {
        (kind, ns, name): (kind, ns, _replaced(names[kind, ns, name], texts)) for kind, ns, name in names
    }
    texts |= {meta.uid(tree): label_of(roles[identity_of(tree)]) for tree in compared if meta.uid(tree)}
    texts |= {volume: f"{VOLUME_PREFIX}*" for tree in compared for volume in _token_volumes(tree)}

    @cache  # names of fields, labels and the like are in most objects
    def clean_text(text: str) -> str:
        return _replaced(_TIME.sub("(time)", text), texts)

    found: dict[Role, list[ReadOnlyTree]] = defaultdict(list)
    for tree in compared:
        identity = identity_of(tree)
        content = _counted(tree, counted[identity]) if identity in counted else tree
        found[roles[identity]].append(_cleaned(content, clean_text))
    return EndState(
        objects={role: sorted(trees, key=_encoded) for role, trees in found.items()}, labels=roles
    )


def differences(
    expected: EndState, actual: EndState, varying: Varying = NOTHING_VARIES
) -> Sequence[Difference]:
    """Return how an end differs from the expected one, but for what varies by itself."""
    found: list[Difference] = []
    for role in sorted({*expected.objects, *actual.objects}):
        missing, extra = _without_common(expected.objects.get(role, ()), actual.objects.get(role, ()))
        for before, after in zip_longest(missing, extra):
            if before is None or after is None:
                if role not in varying.counts:
                    found.append(Difference(type="left over" if before is None else "missing", role=role))
                continue
            changed = [
                change for change in changes_of(before, after) if (role, change.path) not in varying.fields
            ]
            if changes := _without_texts(changed):
                found.append(Difference(type="different", role=role, changes=changes))
    return found


def _without_texts(changes: Sequence[FieldChange]) -> Sequence[FieldChange]:
    """Return changes without those of the text of a condition that is the same otherwise: it is for people, and has chance errors."""
    paths = {change.path for change in changes}

    def counts(change: FieldChange) -> bool:
        place, _, field = change.path.rpartition(".")
        is_text = field == "message" and place.rpartition("[")[0].endswith(_CONDITIONS)
        return not is_text or f"{place}.status" in paths or f"{place}.reason" in paths

    return [*filter(counts, changes)]


def learn_varying(
    first: Sequence[ReadOnlyTree],
    second: Sequence[ReadOnlyTree],
    counted: Counted = _NONE_COUNTED,
) -> Varying:
    """Return what is not the same at the end of two runs in which nothing was disturbed."""
    names, others = ({identity_of(tree) for tree in trees} for trees in (first, second))
    groups: dict[tuple[str, str], list[list[str]]] = defaultdict(lambda: [[], []])
    for index, identities in enumerate((names - others, others - names)):
        for kind, namespace, name in identities:
            groups[kind, namespace][index].append(name)
    patterns = {
        pattern for (kind, _), both in groups.items() if all(both) for pattern in _patterns(kind, *both)
    }
    ordered = sorted(patterns, key=lambda each: (-len(each.label), each.kind, each.label))
    named = Varying(patterns=ordered, fixed=names & others)
    found = differences(end_state(first, named, counted), end_state(second, named, counted))
    return Varying(
        patterns=named.patterns,
        fixed=named.fixed,
        fields={(each.role, change.path) for each in found for change in each.changes},
        counts={each.role for each in found if not each.changes},
    )


def _patterns(kind: str, first: Sequence[str], second: Sequence[str]) -> Iterator[NamePattern]:
    """Yield a pattern for each family of names: those that begin and end with the same parts in both runs."""
    families: dict[tuple[str, str], list[str]] = defaultdict(list)
    for names, others in ((first, second), (second, first)):
        for name in names:
            prefix, suffix = max((_common_parts(name, other) for other in others), key=_length_of_parts)
            families[prefix, suffix].append(name)
    for parts, names in families.items():
        prefix, suffix = parts if any(parts) else _common_ends(names)
        if prefix or suffix:
            yield NamePattern(kind, prefix, suffix)


def _common_ends(names: Sequence[str]) -> tuple[str, str]:
    prefix = _common_beginning(names)
    return prefix, _common_beginning([name[len(prefix) :][::-1] for name in names])[::-1]


def _length_of_parts(parts: tuple[str, str]) -> tuple[int, int, tuple[str, str]]:
    prefix, suffix = parts
    return len(prefix) + len(suffix), len(prefix), parts


def _common_parts(name: str, other: str) -> tuple[str, str]:
    """Return the beginning and the end that two names share, up to a separator."""
    beginning, end = _common_ends([name, other])
    return _up_to_separator(beginning), _up_to_separator(end[::-1])[::-1]


def _up_to_separator(text: str) -> str:
    return text[: max(text.rfind(separator) for separator in _SEPARATORS) + 1]


def _common_beginning(texts: Sequence[str]) -> str:
    same = takewhile(lambda characters: len({*characters}) == 1, zip(*texts, strict=False))
    return "".join(characters[0] for characters in same)


def _random_name(tree: ReadOnlyTree, varying: Varying) -> str:
    """Return the name of an object, with a star for what is random."""
    name, kind = meta.name(tree), kind_of(tree)
    prefix = meta.generate_name(tree) or _prefix_of_controllers(tree)
    if prefix is not None and name.startswith(prefix):
        return f"{prefix}*"
    if identity_of(tree) in varying.fixed:
        return name
    return next((each.label for each in varying.patterns if each.matches(kind, name)), name)


def _prefix_of_controllers(tree: ReadOnlyTree) -> str | None:
    """Return what is before the chance, the uid or the time in a name that the server or a controller gives; None for others."""
    find = _PREFIXES_OF_KINDS.get(kind_of(tree))
    return None if find is None else find(tree)


def _prefix_of_job(tree: ReadOnlyTree) -> str | None:
    """Return the name of the CronJob of a Job; the Jobs of others have names of their own."""
    owner = meta.controller_of(tree)
    return f"{owner['name']}-" if owner is not None and kind_of(owner) == "CronJob.batch" else None


def _prefix_of_volume(tree: ReadOnlyTree) -> str | None:
    """Return the prefix of a provisioned volume; others are made by users."""
    uid = tree.get("spec", _NOTHING).get("claimRef", _NOTHING).get("uid")
    return "pvc-" if meta.name(tree) == f"pvc-{uid}" else None


_PREFIXES_OF_KINDS: Final[Mapping[str, Callable[[ReadOnlyTree], str | None]]] = {
    "Job.batch": _prefix_of_job,
    "PersistentVolume": _prefix_of_volume,
}


def _token_volumes(tree: ReadOnlyTree) -> Iterator[str]:
    """Yield the names of the volumes that admission has added to a pod, which have a random part."""
    if kind_of(tree) == "Pod":
        volumes = tree.get("spec", _NOTHING).get("volumes") or ()
        yield from (each["name"] for each in volumes if each["name"].startswith(VOLUME_PREFIX))


def _template_hashes(tree: ReadOnlyTree) -> Iterator[str]:
    """Yield the hash of a pod's template, which is another one if only the order of its lists is."""
    labels = meta.labels(tree)
    for label in (LABEL_POD_TEMPLATE_HASH, LABEL_CONTROLLER_REVISION_HASH):
        template_hash = labels.get(label, "").rpartition("-")[2]
        if _HASH.fullmatch(template_hash):  # labels of users may be any text
            yield template_hash


def _is_old_version(tree: ReadOnlyTree) -> bool:
    """Return whether an object is what a workload was, which it keeps to go back to it."""
    kind = kind_of(tree)
    is_empty_set = kind == "ReplicaSet.apps" and not tree.get("spec", _NOTHING).get("replicas")
    return is_empty_set or kind == "ControllerRevision.apps"


def _counted(tree: ReadOnlyTree, fields: AbstractSet[str]) -> ReadOnlyTree:
    return {"metadata": {}, **only_fields(tree, fields | {"metadata.ownerReferences"})}


def _cleaned(tree: ReadOnlyTree, clean_text: CleanText) -> ReadOnlyTree:
    """Return an object without what is another value each time; a name is left out only where Kubernetes has it."""
    generation = meta.metadata(tree).get("generation")
    of_kind = _OMITTED_OF_KINDS.get(kind_of(tree), _NO_NAMES)
    return {name: _cleaned_part(name, part, clean_text, generation, of_kind) for name, part in tree.items()}


def _cleaned_part(
    name: str, part: Any, clean_text: CleanText, generation: Any, of_kind: AbstractSet[str]
) -> Any:
    if name == "metadata":
        fields = {field: value for field, value in part.items() if field not in _METADATA}
        if annotations := fields.get("annotations"):
            fields["annotations"] = {key: text for key, text in annotations.items() if key not in _METADATA}
        return _clean(fields, clean_text, _NO_NAMES)
    if name == "status":
        return _clean(_with_newest_conditions(_with_ages(part, generation)), clean_text, _OMITTED_OF_STATUS)
    return _clean(part, clean_text, of_kind)


def _clean(value: Any, clean_text: CleanText, omitted: AbstractSet[str]) -> Any:
    if isinstance(value, Mapping):
        is_reference = "kind" in value and "name" in value
        members = [
            (clean_text(name), _clean(member, clean_text, omitted))
            for name, member in value.items()
            if not (name == "resourceVersion" if is_reference else name in omitted)
        ]
        cleaned = dict(members)
        return cleaned if len(cleaned) == len(members) else _with_all(members)
    if isinstance(value, list):
        return [_clean(member, clean_text, omitted) for member in value]
    if isinstance(value, str):
        return clean_text(value)
    return value


def _with_all(members: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    """Return a map in which members that have the same label, as names with uids, are a list."""
    found: dict[str, list[Any]] = defaultdict(list)
    for label, member in members:
        found[label].append(member)
    return {label: each[0] if len(each) == 1 else sorted(each, key=_encoded) for label, each in found.items()}


def _with_newest_conditions(status: Any) -> Any:
    """Return a status with the newest condition of each type: how often an operator that adds one each time has done so is chance."""
    if not isinstance(status, Mapping) or not isinstance(status.get(_CONDITIONS), list):
        return status
    conditions = status[_CONDITIONS]
    if not all(isinstance(each, Mapping) and isinstance(each.get("type"), str) for each in conditions):
        return status
    return {**status, _CONDITIONS: [*{each["type"]: each for each in conditions}.values()]}


def _with_ages(value: Any, generation: Any) -> Any:
    """Return a status that says of each generation only whether it is the current one: how many there were is chance."""
    if isinstance(value, Mapping):
        return {
            name: _age(member, generation) if name == _OBSERVED else _with_ages(member, generation)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_with_ages(member, generation) for member in value]
    return value


def _age(observed: Any, generation: Any) -> str:
    return "the current generation" if observed == generation else "another generation"


def _replaced(text: str, texts: Mapping[str, str]) -> str:
    for name, label in texts.items():
        if name in text:
            text = text.replace(name, label)
    return text


def _without_common(
    expected: Sequence[ReadOnlyTree], actual: Sequence[ReadOnlyTree]
) -> tuple[list[ReadOnlyTree], list[ReadOnlyTree]]:
    rest = [*actual]
    missing: list[ReadOnlyTree] = []
    for tree in expected:
        if tree in rest:
            rest.remove(tree)
        else:
            missing.append(tree)
    return missing, rest


def _encoded(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
