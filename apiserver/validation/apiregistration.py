"""APIServices."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from apimachinery import errors, gotext, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation import objectmeta
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import NameRule, with_any_finalizers
from apiserver.validation.objects import again, part, together, within
from apiserver.validation.rules import (
    Check,
    Tree,
    each,
    every,
    field,
    must,
    one_of,
    optional,
    required,
    valid,
)

_CA_BUNDLE, _INSECURE = "caBundle", "insecureSkipTLSVerify"


def _check_name(name: str, wanted: str) -> list[str]:
    problems = names.check_path_segment_name(name)
    if problems or name == wanted:
        return problems
    return [f'must be `spec.version+"."+spec.group`: {gotext.quote(wanted)}']


def _priority(limit: int) -> Check:
    return must(lambda value: 0 < value <= limit, f"must be positive and less than {limit}")


def _check_group(spec: Tree, path: Path) -> Iterable[FieldError]:
    if spec.get("group") or spec.get("version") == "v1":
        return ()
    detail = "only v1 may have an empty group and it better be legacy kube"
    return (errors.required(path.child("group"), detail),)


# --- where it is served


def _check_port(port: int, path: Path) -> Iterable[FieldError]:
    problems = names.check_port_number(port)
    return (errors.invalid(path, port, f"port is not valid: {', '.join(problems)}"),) if problems else ()


_SERVICE: Final = every(required("namespace"), required("name"), field("port", _check_port, absent=0))


def _check_local(spec: Tree, path: Path) -> Iterator[FieldError]:
    bundle = spec.get(_CA_BUNDLE)
    if bundle:
        size = len(bundle) // 4 * 3 - bundle.count("=")
        problem = "local APIServices may not have a caBundle"
        yield errors.invalid(path.child(_CA_BUNDLE), f"{size} bytes", problem)
    if spec.get(_INSECURE):
        problem = f"local APIServices may not have {_INSECURE}"
        yield errors.invalid(path.child(_INSECURE), value=True, detail=problem)


def _check_service(spec: Tree, path: Path) -> Iterator[FieldError]:
    service = spec.get("service")
    if service is None:
        yield from _check_local(spec, path)
        return
    yield from _SERVICE(service, path.child("service"))
    if spec.get(_INSECURE) and spec.get(_CA_BUNDLE):
        yield errors.invalid(
            path.child(_INSECURE), value=True, detail="may not be true if caBundle is present"
        )


_SPEC: Final = every(
    _check_group,
    optional("group", valid(names.check_dns1123_subdomain)),
    field("version", valid(names.check_dns1035_label), absent=""),
    field("groupPriorityMinimum", _priority(20000), absent=0),
    field("versionPriority", _priority(1000), absent=0),
    _check_service,
)


def _create(tree: Tree) -> Iterator[FieldError]:
    spec = within(tree, "spec")
    check_name = partial(_check_name, wanted=f"{spec.get('version', '')}.{spec.get('group', '')}")
    yield from objectmeta.check(tree, with_any_finalizers(NameRule(check_name, check_name)), namespaced=False)
    yield from _SPEC(spec, ROOT.child("spec"))


_STATUS: Final = field("conditions", each(field("status", one_of("True", "False", "Unknown"), absent="")))

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("apiregistration.k8s.io", "APIService"): Validation(
        metadata_first=False,
        create=_create,
        update=together(objectmeta.check_update, again(_create)),
        subresources={"status": together(objectmeta.check_update, part(_STATUS, "status"))},
    ),
}
