"""APIService: a version of a group, and the Service that serves it."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import conditions, errors, gotext, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS_WITHOUT_TABLE, Resource
from mockube.apiserver.kinds.common import cells, checks, objectmeta, validation
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.objectmeta import NameRule, with_any_finalizers
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import OWN_STATUS, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_CA_BUNDLE, _INSECURE = "caBundle", "insecureSkipTLSVerify"


def _check_name(name: str, expected_name: str) -> list[str]:
    problems = names.check_path_segment_name(name)
    if problems or name == expected_name:
        return problems
    return [f'must be `spec.version+"."+spec.group`: {gotext.quote(expected_name)}']


def _priority(limit: int) -> Check:
    return checks.require_that(lambda value: 0 < value <= limit, f"must be positive and less than {limit}")


def _check_group(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if spec.get("group") or spec.get("version") == "v1":
        return ()
    detail = "only v1 may have an empty group and it better be legacy kube"
    return (errors.required(path.child("group"), detail),)


# --- the service


def _check_port(port: int, path: Path) -> Iterable[FieldError]:
    problems = names.check_port_number(port)
    return (errors.invalid(path, port, f"port is not valid: {', '.join(problems)}"),) if problems else ()


_SERVICE: Final = checks.all_of(
    checks.require("namespace"), checks.require("name"), checks.field("port", _check_port, absent=0)
)


def _check_local(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    bundle = spec.get(_CA_BUNDLE)
    if bundle:
        size = len(bundle) // 4 * 3 - bundle.count("=")
        problem = "local APIServices may not have a caBundle"
        yield errors.invalid(path.child(_CA_BUNDLE), f"{size} bytes", problem)
    if spec.get(_INSECURE):
        problem = f"local APIServices may not have {_INSECURE}"
        yield errors.invalid(path.child(_INSECURE), value=True, detail=problem)


def _check_service(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    service = spec.get("service")
    if service is None:
        yield from _check_local(spec, path)
        return
    yield from _SERVICE(service, path.child("service"))
    if spec.get(_INSECURE) and spec.get(_CA_BUNDLE):
        yield errors.invalid(
            path.child(_INSECURE), value=True, detail="may not be true if caBundle is present"
        )


_SPEC: Final = checks.all_of(
    _check_group,
    checks.optional("group", checks.report(names.check_dns1123_subdomain)),
    checks.field("version", checks.report(names.check_dns1035_label), absent=""),
    checks.field("groupPriorityMinimum", _priority(20000), absent=0),
    checks.field("versionPriority", _priority(1000), absent=0),
    _check_service,
)


def _create(tree: ReadOnlyTree) -> Iterator[FieldError]:
    spec = validation.get_struct(tree, "spec")
    check_name = partial(_check_name, expected_name=f"{spec.get('version', '')}.{spec.get('group', '')}")
    yield from objectmeta.check(tree, with_any_finalizers(NameRule(check_name, check_name)), namespaced=False)
    yield from _SPEC(spec, ROOT.child("spec"))


_STATUS: Final = checks.field(
    "conditions",
    checks.each_item(checks.field("status", checks.one_of("True", "False", "Unknown"), absent="")),
)

# --- the status of a new APIService

_LOCAL: Final = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


def _prepare_create(service: Tree, request: StrategyContext) -> None:
    """Mark a version that this server serves itself as available."""
    if not service.get("spec", {}).get("service"):
        service["status"] = {"conditions": conditions.set_condition((), _LOCAL, request.now)}


# --- columns


def _cells(api_service: Tree, now: datetime) -> list[Any]:
    service = cells.part(api_service, "spec", "service")
    return [
        meta.name(api_service),
        "Local" if service is None else f"{text(service, 'namespace')}/{text(service, 'name')}",
        _available(api_service),
        age(api_service, now),
    ]


def _available(api_service: Tree) -> str:
    """Return the status of the condition, with its reason unless it is true."""
    condition = conditions.get(api_service, "Available")
    status, reason = text(condition, "status", default="Unknown"), text(condition, "reason")
    return f"{status} ({reason})" if reason and status != "True" else status


KIND: Final = Kind(
    resource=Resource(
        group="apiregistration.k8s.io",
        version="v1",
        name="apiservices",
        stored_at="apiregistration.k8s.io/apiservices",
        kind="APIService",
        namespaced=False,
        categories=("api-extensions",),
        subresources=(STATUS_WITHOUT_TABLE,),
    ),
    strategy=Strategy(resets=OWN_STATUS, unconditional_update=False, prepare_create=_prepare_create),
    defaults=defaults_table(
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1", {"ServiceReference": {"port": 443}}
    ),
    validation=Validation(
        metadata_first=False,
        create=_create,
        update=validation.in_order(objectmeta.check_update, validation.repeat_create_checks(_create)),
        subresources={
            "status": validation.in_order(objectmeta.check_update, validation.part(_STATUS, "status"))
        },
        declared=None,
    ),
    printer=Printer(
        columns=(NAME, Column(name="Service"), Column(name="Available"), AGE_COLUMN), cells=_cells
    ),
)
