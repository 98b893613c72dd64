"""The rules of Pod and PodTemplate."""

from collections.abc import Iterable, Mapping
from typing import Final

from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation.kind import Validation
from apiserver.validation.pods.changes import check_pod_update
from apiserver.validation.pods.ephemeral import check_ephemeral_update
from apiserver.validation.pods.pods import check_new_pod
from apiserver.validation.pods.resizes import check_resize
from apiserver.validation.pods.status import check_status_update
from apiserver.validation.pods.template import check_pod_template, leniency_towards_template
from apiserver.validation.rules import Tree

_TEMPLATE: Final = ROOT.child("template")


def _check_new_template(tree: Tree) -> Iterable[FieldError]:
    return check_pod_template(tree.get("template") or {}, _TEMPLATE)


def _check_changed_template(new: Tree, old: Tree) -> Iterable[FieldError]:
    leniency = leniency_towards_template(old.get("template") or {})
    return check_pod_template(new.get("template") or {}, _TEMPLATE, leniency)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", "Pod"): Validation(
        create=check_new_pod,
        update=check_pod_update,
        subresources={
            "status": check_status_update,
            "ephemeralcontainers": check_ephemeral_update,
            "resize": check_resize,
        },
    ),
    GroupKind("", "PodTemplate"): Validation(create=_check_new_template, update=_check_changed_template),
}
