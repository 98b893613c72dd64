"""A scenario: what is arranged once, what is done in each run, and what holds at its end."""

import shlex
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.schema import minors
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.component_base.release_options import read_minor
from mockube.component_base.suggestions import did_you_mean
from mockube.failure import UsageError
from mockube.lint.renderers import ChartOptions
from mockube.objects.conditions import read_condition
from mockube.objects.errors import InvalidType, InvalidValue
from mockube.objects.manifests import is_text, read_objects
from mockube.operators.end_state import Identity, kind_of

from .charts import ChartRelease, render_release
from .invariants import InvalidInvariant, Invariant, read_invariant
from .plans import TEXTS

KUBECTL: Final = "kubectl"
GONE: Final = "gone"
STEP_SECONDS: Final = 30.0
NAMESPACE: Final = "default"
_RELEASE: Final = ChartOptions().release
_FIELDS: Final = (
    "cluster",
    "operator",
    "arrange",
    "act",
    "expect",
    "subject",
    "invariants",
    "without",
    "only",
    "timeout",
)
CHART: Final = "chart"
_OPERATIONS: Final = ("apply", "delete", "patch", KUBECTL, CHART)
_STEP_FIELDS: Final = (*_OPERATIONS, "with", "values", "release", "until", "namespace", "name")
_ONLY_OF: Final = {"with": "patch", "values": CHART, "release": CHART}
"""The operation that a field belongs to."""
_CLUSTER_FIELDS: Final = ("nodes", "packs", "version", "flags")
_OPERATOR_FIELDS: Final = ("serviceAccount", "podOf", "environment", "ownNetwork")
_WHOLE_OBJECTS: Final = frozenset({"CustomResourceDefinition", "Namespace"})
"""Kinds that are no subject of a scenario, because others need them."""


class InvalidScenario(UsageError):
    """A scenario has a mistake; the message has the place."""


class ObjectRef(Struct, frozen=True, kw_only=True):
    """An object as `KIND/NAME`, with its namespace."""

    target: str
    namespace: str = NAMESPACE

    def is_of(self, identity: Identity) -> bool:
        """Return whether it is a name of an object: its kind may have no group, and one without a namespace may have any."""
        kind, _, name = self.target.partition("/")
        of_kind, namespace, of_name = identity
        is_kind = kind.lower() in (of_kind.lower(), of_kind.partition(".")[0].lower())
        return is_kind and of_name == name and namespace in (self.namespace, "")

    def find(self, identities: Iterable[Identity]) -> Identity | None:
        """Return the object among others, one of exactly the same kind first: a core Service may share its name with one of Knative."""
        kind = self.target.partition("/")[0].lower()
        found = (each for each in identities if self.is_of(each))
        return min(found, key=lambda each: (each[0].lower() != kind, each), default=None)

    def __str__(self) -> str:
        return self.target if self.namespace == NAMESPACE else f"{self.target} -n {self.namespace}"


class Expectation(Struct, frozen=True, kw_only=True):
    """An object and the condition that it meets at the end: that of `wait`, or `gone`."""

    object: ObjectRef
    condition: str

    def __str__(self) -> str:
        return f"{self.object.target} {self.condition}"


class StepOperation(Struct, frozen=True, kw_only=True):
    """One thing that a step does."""

    type: str
    """apply, delete, patch or kubectl."""
    objects: Sequence[Mapping[str, Any]] = ()
    target: ObjectRef | None = None
    patch: Mapping[str, Any] | Sequence[Any] | None = None
    arguments: Sequence[str] = ()
    namespace: str = NAMESPACE
    folder: Path = Path()
    """Where kubectl runs: the folder of the scenario."""
    chart: ChartRelease | None = None
    """The chart whose objects are applied; None when it is rendered."""


class ScenarioStep(Struct, frozen=True, kw_only=True):
    name: str
    operation: StepOperation
    until: Sequence[Expectation] = ()


class Scenario(Struct, frozen=True, kw_only=True):
    cluster: Mapping[str, Any]
    """Options of `Cluster`."""
    service_account: str = ""
    """The namespace and name of the account whose rights the operator has; it has all rights without one."""
    pod_of: ObjectRef | None = None
    """The workload whose pod the operator stands for: it has the account, the variables and the files of the pod."""
    environment: Mapping[str, str]
    own_network: bool = False
    """Whether the operator has a network of its own, in which there is only the API server."""
    arrange: Sequence[ScenarioStep]
    act: Sequence[ScenarioStep]
    expect: Sequence[Expectation]
    subject: ObjectRef | None
    """The object that the operator reconciles, which plans delete and create anew."""
    invariants: Sequence[Invariant]
    without: frozenset[str] = frozenset()
    """The names of disturbances that are left out."""
    timeout: float = STEP_SECONDS


def read_scenario_file(path: Path) -> Scenario:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidScenario(f"{path}: {error.strerror}") from error
    try:
        tree = load(data).tree
    except YamlError as error:
        raise InvalidScenario(f"{path}: {error}") from error
    try:
        return read_scenario(tree, path.parent)
    except InvalidScenario as error:
        raise InvalidScenario(f"{path}: {error}") from None


def read_scenario(tree: Any, folder: Path) -> Scenario:
    """Return the scenario that a decoded file has; its paths are relative to the folder."""
    fields = _mapping(tree, "the scenario", _FIELDS)
    if not fields.get("act"):
        raise InvalidScenario("act: a scenario needs at least one step")
    operator = _mapping(fields.get("operator") or {}, "operator", _OPERATOR_FIELDS)
    cluster = _cluster(fields.get("cluster") or {})
    minor = _minor(cluster.get("version", minors.NEWEST))
    act = _rendered(_steps(fields["act"], "act", folder), "act", minor)
    return Scenario(
        cluster=cluster,
        service_account=_account(operator.get("serviceAccount", "")),
        pod_of=_pod_of(operator),
        environment=_texts(operator.get("environment") or {}, "operator.environment"),
        own_network=_flag(operator.get("ownNetwork", False), "operator.ownNetwork"),
        arrange=_rendered(_steps(fields.get("arrange") or [], "arrange", folder), "arrange", minor),
        act=act,
        expect=_expectations(fields.get("expect") or [], "expect", NAMESPACE),
        subject=_ref(fields["subject"], "subject") if "subject" in fields else subject_of(act),
        invariants=_invariants(fields.get("invariants") or []),
        without=_without(fields),
        timeout=_seconds(fields.get("timeout", STEP_SECONDS)),
    )


def subject_of(act: Sequence[ScenarioStep]) -> ObjectRef | None:
    """Return the first object that the steps apply."""
    for step in act:
        for tree in step.operation.objects:
            if meta.kind(tree) not in _WHOLE_OBJECTS and meta.name(tree):
                namespace = meta.namespace(tree) or step.operation.namespace
                return ObjectRef(target=f"{kind_of(tree)}/{meta.name(tree)}", namespace=namespace)
    return None


def _steps(value: Any, place: str, folder: Path) -> Sequence[ScenarioStep]:
    return [_step(each, f"{place}[{index}]", folder) for index, each in enumerate(_list(value, place))]


def _rendered(steps: Sequence[ScenarioStep], place: str, minor: str) -> Sequence[ScenarioStep]:
    """Return steps whose charts are objects to apply."""
    return [_rendered_step(step, f"{place}[{index}]", minor) for index, step in enumerate(steps)]


def _rendered_step(step: ScenarioStep, place: str, minor: str) -> ScenarioStep:
    release = step.operation.chart
    if release is None:
        return step
    try:
        objects = render_release(release, minor)
    except UsageError as error:
        raise InvalidScenario(f"{place}.chart: {error}") from error
    if not objects:
        raise InvalidScenario(f"{place}.chart: there are no objects")
    return replace(step, operation=StepOperation(type="apply", objects=objects))


def _step(value: Any, place: str, folder: Path) -> ScenarioStep:
    if isinstance(value, str):
        is_command = value.split(maxsplit=1)[:1] == [KUBECTL]
        value = {KUBECTL: value} if is_command else {"apply": value}
    elif isinstance(value, Mapping) and "apiVersion" in value:
        value = {"apply": value}
    fields = _mapping(value, place, _STEP_FIELDS)
    types = [name for name in _OPERATIONS if name in fields]
    if len(types) != 1:
        raise InvalidScenario(f"{place}: a step has one of {', '.join(_OPERATIONS)}")
    (type_,) = types
    for name, only in _ONLY_OF.items():
        if name in fields and type_ != only:
            raise InvalidScenario(f"{place}.{name}: only a step with {only} has it")
    namespace = _text(fields.get("namespace", NAMESPACE), f"{place}.namespace")
    operation = _operation(type_, fields, place, folder)
    return ScenarioStep(
        name=_text(fields.get("name") or _describe(operation), f"{place}.name"),
        operation=operation,
        until=_expectations(fields.get("until") or [], f"{place}.until", namespace),
    )


def _operation(type_: str, fields: Mapping[str, Any], place: str, folder: Path) -> StepOperation:
    namespace = _text(fields.get("namespace", NAMESPACE), f"{place}.namespace")
    value, at = fields[type_], f"{place}.{type_}"
    if type_ == KUBECTL:
        arguments = _arguments(value, at)
        return StepOperation(type=type_, arguments=arguments, namespace=namespace, folder=folder)
    if type_ == CHART:
        release = ChartRelease(
            chart=folder / _text(value, at),
            release=_text(fields.get("release", _RELEASE), f"{place}.release"),
            namespace=namespace,
            values=_values(fields.get("values", []), f"{place}.values", folder),
        )
        return StepOperation(type=type_, chart=release, namespace=namespace)
    if type_ == "apply":
        return StepOperation(type=type_, objects=_objects(value, at, folder), namespace=namespace)
    if type_ == "patch" and not isinstance(fields.get("with"), Mapping | list):
        raise InvalidScenario(f"{place}.with: a patch is a map or a list")
    return StepOperation(
        type=type_, target=_ref(value, at, namespace), patch=fields.get("with"), namespace=namespace
    )


def _arguments(value: Any, place: str) -> Sequence[str]:
    try:
        arguments = shlex.split(_text(value, place))
    except ValueError as error:
        raise InvalidScenario(f"{place}: {error}: {value!r}") from error
    return arguments[arguments[:1] == [KUBECTL] :]


def _values(value: Any, place: str, folder: Path) -> Sequence[Path | Mapping[str, Any]]:
    every = value if isinstance(value, list) else [value]
    return [
        each if isinstance(each, Mapping) else folder / _text(each, f"{place}[{index}]")
        for index, each in enumerate(every)
    ]


def _describe(operation: StepOperation) -> str:
    if operation.target is not None:
        return f"{operation.type} {operation.target}"
    if operation.arguments:
        return shlex.join([KUBECTL, *operation.arguments])
    if operation.chart is not None:
        return f"chart {operation.chart.chart.name}"
    names = [f"{meta.kind(tree)}/{meta.name(tree)}" for tree in operation.objects]
    return f"{operation.type} {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}"


def _objects(value: Any, place: str, folder: Path) -> Sequence[Mapping[str, Any]]:
    try:
        objects = [
            tree for each in (value if isinstance(value, list) else [value]) for tree in _read(each, folder)
        ]
    except (InvalidType, InvalidValue, OSError) as error:
        raise InvalidScenario(f"{place}: {error}") from error
    if not objects:
        raise InvalidScenario(f"{place}: there are no objects")
    return objects


def _read(value: Any, folder: Path) -> Iterator[Mapping[str, Any]]:
    yield from read_objects(folder / value if isinstance(value, str) and not is_text(value) else value)


def _expectations(value: Any, place: str, namespace: str) -> Sequence[Expectation]:
    return [
        _expectation(each, f"{place}[{index}]", namespace) for index, each in enumerate(_list(value, place))
    ]


def _expectation(value: Any, place: str, namespace: str) -> Expectation:
    words = _text(value, place).split()
    if "-n" in words[:-1]:
        at = words.index("-n")
        namespace = words[at + 1]
        del words[at : at + 2]
    if len(words) < 2:
        raise InvalidScenario(
            f"{place}: an expectation is KIND/NAME CONDITION, such as deployment/web Available, not {value!r}"
        )
    condition = " ".join(words[1:])
    if condition != GONE:
        try:
            read_condition(condition)
        except InvalidValue as error:
            raise InvalidScenario(f"{place}: {error}") from error
    return Expectation(object=_ref(words[0], place, namespace), condition=condition)


def _ref(value: Any, place: str, namespace: str = NAMESPACE) -> ObjectRef:
    target, *rest = _text(value, place).split()
    if rest:
        if len(rest) != 2 or rest[0] != "-n":
            raise InvalidScenario(f"{place}: an object is KIND/NAME, with -n NAMESPACE, not {value!r}")
        namespace = rest[1]
    kind, slash, name = target.partition("/")
    if not (kind and slash and name):
        raise InvalidScenario(f"{place}: an object is KIND/NAME, not {target!r}")
    return ObjectRef(target=target, namespace=namespace)


def _invariants(value: Any) -> Sequence[Invariant]:
    found: list[Invariant] = []
    for index, each in enumerate(_list(value, "invariants")):
        try:
            found.append(read_invariant(each))
        except InvalidInvariant as error:
            raise InvalidScenario(f"invariants[{index}]: {error}") from error
    return found


def _cluster(value: Any) -> Mapping[str, Any]:
    options = _mapping(value, "cluster", _CLUSTER_FIELDS)
    flags = _list(options.get("flags") or [], "cluster.flags")
    return {**options, "flags": [_text(each, f"cluster.flags[{index}]") for index, each in enumerate(flags)]}


def _minor(version: Any) -> str:
    try:
        return read_minor(_text(version, "cluster.version"))
    except ArgumentTypeError as error:
        raise InvalidScenario(f"cluster.version: {error}") from error


def _without(fields: Mapping[str, Any]) -> frozenset[str]:
    """Return the disturbances that are left out: those of `without`, or all but those of `only`."""
    without, only = (_disturbances(fields.get(field) or [], field) for field in ("without", "only"))
    if not only and fields.get("only") is not None:
        raise InvalidScenario("only: it names no disturbance")
    if without and only:
        raise InvalidScenario("only: leave out `without`, which names the disturbances that are not tried")
    return frozenset(TEXTS) - only if only else without


def _disturbances(value: Any, field: str) -> frozenset[str]:
    names = [_text(each, f"{field}[{index}]") for index, each in enumerate(_list(value, field))]
    for index, name in enumerate(names):
        if name not in TEXTS:
            hint = did_you_mean(name, [*TEXTS]) or f": must be one of {', '.join(TEXTS)}"
            raise InvalidScenario(f'{field}[{index}]: there is no disturbance "{name}"{hint}')
    return frozenset(names)


def _account(value: Any) -> str:
    text = _text(value, "operator.serviceAccount", may_be_empty=True)
    if text and text.count("/") != 1:
        raise InvalidScenario(f"operator.serviceAccount: must be NAMESPACE/NAME, not {text!r}")
    return text


def _pod_of(operator: Mapping[str, Any]) -> ObjectRef | None:
    if "podOf" not in operator:
        return None
    if operator.get("serviceAccount"):
        raise InvalidScenario("operator.serviceAccount: that of the pod is used, so that podOf is enough")
    return _ref(operator["podOf"], "operator.podOf")


def _texts(value: Any, place: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(
        isinstance(each, str) and "\0" not in each for pair in value.items() for each in pair
    ):
        raise InvalidScenario(f"{place}: must be a map of texts")
    for name in value:
        if not name or "=" in name:
            raise InvalidScenario(f'{place}: "{name}" is no name of a variable')
    return value


def _flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidScenario(f"{place}: must be true or false, not {value!r}")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise InvalidScenario(f"timeout: must be a number of seconds, not {value!r}")
    return float(value)


def _mapping(value: Any, place: str, names: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidScenario(f"{place}: must be a map, not {type(value).__name__}")
    for name in value:
        if name not in names:
            hint = did_you_mean(str(name), names) or f": must be one of {', '.join(names)}"
            raise InvalidScenario(f'{place}: unknown field "{name}"{hint}')
    return value


def _list(value: Any, place: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise InvalidScenario(f"{place}: must be a list, not {type(value).__name__}")
    return value


def _text(value: Any, place: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value.strip() or may_be_empty):
        raise InvalidScenario(f"{place}: must be a text, not {value!r}")
    return value
