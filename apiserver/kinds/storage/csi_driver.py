"""CSIDriver."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, cells, checks, validation
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import Table, defaults_table
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_LIFECYCLES: Final[Check] = checks.one_of("Persistent", "Ephemeral")
_MAX_EXPIRATION_SECONDS: Final = 1 << 32


def _check_lifecycles(modes: Iterable[str] | None, path: Path) -> Iterator[FieldError]:
    """Check the lifecycle modes. As upstream, errors have the path of the list, not of the element."""
    for mode in modes or ():
        yield from _LIFECYCLES(mode, path)


_EXPIRATION: Final = checks.pointer(
    "expirationSeconds",
    checks.require_that(lambda seconds: seconds >= 600, "may not specify a duration less than 10 minutes"),
    checks.require_that(
        lambda seconds: seconds <= _MAX_EXPIRATION_SECONDS,
        "may not specify a duration larger than 2^32 seconds",
    ),
)


def _check_token_requests(requests: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, request in enumerate(requests or ()):
        audience = request.get("audience", "")
        if audience in seen:
            yield errors.duplicate(path.index(index).child("audience"), audience)
        else:
            yield from _EXPIRATION(request, path.index(index))
        seen.add(audience)


def _check_tokens_in_secrets(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is None or spec.get("tokenRequests"):
        return ()
    problem = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
    return (errors.invalid(path.child("serviceAccountTokenInSecrets"), in_secrets, problem),)


_CREATE: Final = validation.from_root(
    checks.field(
        "spec",
        checks.pointer("fsGroupPolicy", checks.one_of("File", "None", "ReadWriteOnceWithFSType")),
        checks.field("tokenRequests", _check_token_requests),
        checks.field("volumeLifecycleModes", _check_lifecycles),
        checks.pointer(
            "nodeAllocatableUpdatePeriodSeconds",
            checks.require_that(lambda seconds: seconds >= 10, "must be greater than or equal to 10 seconds"),
        ),
        _check_tokens_in_secrets,
        absent={},
    )
)


def _check_same_attach_required(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that the field is unchanged. Upstream's message calls it `attachedRequired`."""
    value, old_value = (validation.get_struct(tree, "spec").get("attachRequired") for tree in (new, old))
    return (
        ()
        if value == old_value
        else (errors.invalid(ROOT.child("spec", "attachedRequired"), value, checks.IMMUTABLE),)
    )


_TOKENS_LOGGED: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
    "possible logging of tokens in volume attributes"
)


def _warn_create(driver: ReadOnlyTree) -> Iterator[str]:
    spec = driver.get("spec") or {}
    if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
        yield _TOKENS_LOGGED


def _warn_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[str]:
    if (new.get("spec") or {}).get("tokenRequests") != (old.get("spec") or {}).get("tokenRequests"):
        yield from _warn_create(new)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    spec = cells.part(tree, "spec")
    return [
        meta.name(tree),
        cells.flag(spec, "attachRequired", default=True),
        cells.flag(spec, "podInfoOnMount"),
        cells.flag(spec, "storageCapacity"),
        _audiences(spec),
        cells.flag(spec, "requiresRepublish"),
        ",".join(cells.items(spec, "volumeLifecycleModes")) or "<none>",
        ages.age(tree, now),
    ]


def _audiences(spec: Any) -> str:
    requests = cells.part(spec, "tokenRequests")
    return (
        "<unset>" if requests is None else ",".join(cells.text(request, "audience") for request in requests)
    )


_SPEC_DEFAULTS: Final = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "volumeLifecycleModes": ["Persistent"],
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def _defaults(of_spec: Mapping[str, Any]) -> Table:
    return defaults_table("io.k8s.api.storage.v1", {"CSIDriverSpec": of_spec})


OLDER_DEFAULTS: Final = _defaults(_SPEC_DEFAULTS)

KIND: Final = Kind(
    resource=Resource(
        group="storage.k8s.io", version="v1", name="csidrivers", kind="CSIDriver", namespaced=False
    ),
    strategy=Strategy(
        generation=SPEC,
        returns_deleted=True,
        unconditional_update=False,
    ),
    validation=Validation(
        create=_CREATE,
        update=validation.in_order(
            validation.repeat_create_checks(_CREATE),
            _check_same_attach_required,
            validation.immutable_fields("spec", "volumeLifecycleModes"),
        ),
    ),
    warnings=Warnings(create=_warn_create, update=_warn_update),
    printer=Printer(
        columns=(
            NAME,
            Column(name="AttachRequired", type="boolean"),
            Column(name="PodInfoOnMount", type="boolean"),
            Column(name="StorageCapacity", type="boolean"),
            Column(name="TokenRequests"),
            Column(name="RequiresRepublish", type="boolean"),
            Column(name="Modes"),
            AGE_COLUMN,
        ),
        cells=_cells,
    ),
    defaults=_defaults({**_SPEC_DEFAULTS, "preventPodSchedulingIfMissing": False}),
)
