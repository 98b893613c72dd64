"""ResourceClaims, templates of them, and DeviceClasses."""

from collections.abc import Iterable, Mapping
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation.internal import internal
from apiserver.validation.kind import Create, Update, Validation
from apiserver.validation.objectmeta import named_by
from apiserver.validation.objects import again, created, together, within
from apiserver.validation.resource.requests import (
    MOST,
    check_configuration,
    check_devices,
    check_selectors,
)
from apiserver.validation.resource.status import update_status
from apiserver.validation.resource.values import items
from apiserver.validation.rules import IMMUTABLE, Tree, field
from apiserver.validation.volumes.claims import check_template_metadata

_GROUP: Final = "resource.k8s.io"

_CLAIM_SPEC: Final = field("devices", check_devices, absent={})
_CLAIM: Final = created(field("spec", _CLAIM_SPEC, absent={}))
_TEMPLATE: Final = created(
    field(
        "spec",
        field("metadata", check_template_metadata, absent={}),
        field("spec", _CLAIM_SPEC, absent={}),
        absent={},
    )
)


def _fixed_spec(struct: str) -> Update:
    def update(new: Tree, old: Tree) -> Iterable[FieldError]:
        spec = within(new, "spec")
        if spec == within(old, "spec"):
            return ()
        return (errors.invalid(ROOT.child("spec"), internal(struct, spec), IMMUTABLE),)

    return update


def _fixed(create: Create, struct: str, subresources: Mapping[str, Update] | None = None) -> Validation:
    update = together(_fixed_spec(struct), again(create))
    return Validation(create=create, update=update, subresources=subresources or {})


# --- classes

_CLASS: Final = created(
    field("spec", check_selectors, field("config", items(MOST, check_configuration)), absent={})
)


def _check_class_name(name: str) -> list[str]:
    return names.check_dns1123_subdomain(name, names.BYTES)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind(_GROUP, "ResourceClaim"): _fixed(
        _CLAIM, "resource.ResourceClaimSpec", {"status": update_status}
    ),
    GroupKind(_GROUP, "ResourceClaimTemplate"): _fixed(_TEMPLATE, "resource.ResourceClaimTemplateSpec"),
    GroupKind(_GROUP, "DeviceClass"): Validation(
        name=named_by(_check_class_name), create=_CLASS, update=again(_CLASS)
    ),
}
