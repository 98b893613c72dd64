"""`--tracing-config-file`: a TracingConfiguration, which names a collector and the share of requests that are traced."""

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct

from mockube.apimachinery import errors, uri
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.patch.gofmt import json_kind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.yaml_decode import load

from . import files
from .files import FileProblem

_KIND: Final = "TracingConfiguration"
_NEWEST: Final = "apiserver.config.k8s.io/v1"
_FILES: Final = frozenset(
    (version, _KIND)
    for version in (
        _NEWEST,
        "apiserver.config.k8s.io/v1beta1",
        "apiserver.config.k8s.io/v1alpha1",
        "apiserver.k8s.io/v1beta1",
        "apiserver.k8s.io/v1alpha1",
    )
)
_MILLION: Final = 1_000_000
_SCHEMES: Final = frozenset({"dns", "unix", "unix-abstract"})
_RATE: Final = "samplingRatePerMillion"
_ENDPOINT: Final = "endpoint"
_FIELDS: Final = frozenset({"apiVersion", "kind", _RATE, _ENDPOINT})
_UNDECODABLE: Final = "unable to decode tracing configuration data"
_T = TypeVar("_T", int, str)


class TracingConfiguration(Struct, frozen=True, kw_only=True):
    endpoint: str = ""
    """The address of the collector; "" for the default of the protocol."""
    samples_per_million: int = 0


def tracing_configuration(text: str) -> TracingConfiguration:
    """Read the file that a flag names; refuse it if the package is missing that only traces need."""
    configuration = files.from_flag(read, text)
    if find_spec("grpc") is None:
        raise ArgumentTypeError(
            "traces need the package grpcio: type `pip install grpcio`, or install mockube's extra `tracing`"
        )
    return configuration


def read(path: Path) -> TracingConfiguration:
    document = load(path.read_bytes())
    tree = document.tree
    if tree is None:  # as upstream, an empty file has the defaults
        return TracingConfiguration()
    if not isinstance(tree, dict):
        raise FileProblem(f"{_UNDECODABLE}: it is not an object")
    _check_kind(tree)
    rate, endpoint = _typed(tree, _RATE, int) or 0, _typed(tree, _ENDPOINT, str)
    unknown = [f"unknown field {quote(str(name))}" for name in sorted(tree.keys() - _FIELDS)]
    if strict_errors := [*document.strict_errors, *unknown]:
        raise FileProblem(f"{_UNDECODABLE}: strict decoding error: {', '.join(strict_errors)}")
    field_errors = [*_check_rate(rate), *(() if endpoint is None else _check_endpoint(endpoint))]
    if field_errors:
        raise FileProblem(f"failed to validate tracing configuration: {errors.aggregate(field_errors)}")
    return TracingConfiguration(endpoint=endpoint or "", samples_per_million=rate)


def _check_kind(tree: Mapping[str, Any]) -> None:
    """Refuse another kind; as upstream, neither the kind nor its version has to be named."""
    version, kind = tree.get("apiVersion") or _NEWEST, tree.get("kind") or _KIND
    if (version, kind) not in _FILES:
        raise FileProblem(
            f"{_UNDECODABLE}: no kind {quote(str(kind))} is registered for version {quote(str(version))}"
        )


def _typed(tree: Mapping[str, Any], name: str, type_: type[_T]) -> _T | None:
    """Return a field of the file; as upstream, null is the same as no field."""
    value = tree.get(name)
    if value is None or (type(value) is type_ and not _is_too_large(value)):
        return value
    json_type = json_kind(value)
    if type_ is int and json_type == "number":
        json_type = f"number {value}"
    go_type = "int32" if type_ is int else "string"
    raise FileProblem(
        f"{_UNDECODABLE}: json: cannot unmarshal {json_type} into Go struct field {_KIND}.{_KIND}.{name} of type {go_type}"
    )


def _is_too_large(value: object) -> bool:
    return isinstance(value, int) and not -(1 << 31) <= value < 1 << 31


def _check_rate(rate: int) -> Iterable[FieldError]:
    path = ROOT.child(_RATE)
    if rate < 0:
        yield errors.invalid(path, rate, "sampling rate must be positive")
    if rate > _MILLION:
        problem = "sampling rate per million must be less than or equal to one million"
        yield errors.invalid(path, rate, problem)


def _check_endpoint(endpoint: str) -> Iterable[FieldError]:
    path, url = ROOT.child(_ENDPOINT), endpoint if "//" in endpoint else f"dns://{endpoint}"
    if problem := uri.parse_problem(url):
        yield errors.invalid(path, url, problem)
        return
    scheme = url.partition(":")[0].lower()
    if scheme not in _SCHEMES:
        options = "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"
        yield errors.invalid(path, url, f"unsupported scheme: {scheme}.  {options}")
