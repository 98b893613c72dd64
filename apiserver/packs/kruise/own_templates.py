"""The template of pods that a workload of OpenKruise has itself, and its selector."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT
from apiserver.validation.pods.leniency import STRICT
from apiserver.validation.pods.template import check_pod_template, leniency_towards_template
from apiserver.validation.workloads.selected import (
    CheckTemplate,
    check_required_selector,
    check_restarts,
    check_selected_template,
    selector_of,
)

_SPEC: Final = ROOT.child("spec")


def check_own_template(
    spec: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    made: Mapping[str, Any],
    names: tuple[str, str],
    check: CheckTemplate = check_pod_template,
) -> Iterator[FieldError]:
    """`made` is the template as pods are made of it; `names` are the kind's, in messages of the selector and the pods."""
    for_selector, for_pods = names
    yield from check_required_selector(spec, _SPEC, for_selector)
    selector, path = selector_of(spec), _SPEC.child("template")
    if selector is None:
        yield errors.invalid(_SPEC.child("selector"), spec["selector"], "")
        yield from check_restarts(made, path, for_pods)
        return
    leniency = STRICT if before is None else leniency_towards_template(before["template"])
    yield from check_selected_template(made, selector, path, kind=for_pods, leniency=leniency, check=check)
