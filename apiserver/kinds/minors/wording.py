"""Errors whose messages differ in older minors.

A function takes an error of the newest minor, and returns the errors of an older minor in its place.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.common.checks import IMMUTABLE, NOT_NEGATIVE
from mockube.apiserver.kinds.resource.devices import NOT_A_STEP, TOO_LARGE

_HISTORY_LIMIT: Final = "'updateStrategy', 'revisionHistoryLimit', "


def without_history_limit(error: FieldError) -> Sequence[FieldError]:
    return (replace(error, detail=error.detail.replace(_HISTORY_LIMIT, "'updateStrategy', ", 1)),)


def without_canonical_form(error: FieldError) -> Sequence[FieldError]:
    """Drop the error of an address in another form, which is none before 1.33."""
    return () if error.detail.startswith("must be in canonical form") else (error,)


def with_doubled_tolerations(error: FieldError) -> Sequence[FieldError]:
    """Return the error with upstream's doubled path. Errors of duplicates do not have it."""
    prefix, is_duplicate = "scheduling.tolerations[", error.type is ErrorType.DUPLICATE
    if is_duplicate or not error.field.startswith(prefix):
        return (error,)
    return (replace(error, field=f"scheduling.tolerations.tolerations[{error.field.removeprefix(prefix)}"),)


def of_missing_handler(error: FieldError) -> Sequence[FieldError]:
    if error.field != "handler" or error.type is not ErrorType.REQUIRED:
        return (error,)
    return [errors.invalid(ROOT.child("handler"), "", text) for text in names.check_dns1123_label("")]


def of_missing_replicas(error: FieldError) -> Sequence[FieldError]:
    path = ROOT.child("spec", "maxReplicas")
    if error.field != str(path) or error.detail.endswith("`minReplicas`"):
        return (error,)
    value = 0 if error.type is ErrorType.REQUIRED else error.value
    return (errors.invalid(path, value, "must be greater than 0"),)


def of_capacity_ranges(error: FieldError) -> Sequence[FieldError]:
    """Return the error of a capacity's range before 1.37, which names other fields and allows more numbers."""
    parent, _, name = error.field.rpartition(".")
    if not parent.endswith(".validRange"):
        return (error,)
    if error.detail in (NOT_NEGATIVE, TOO_LARGE):
        return ()
    if error.detail == NOT_A_STEP:  # upstream divides by the step: if it is 0, its request fails
        return () if str(error.value).startswith("-") else (error,)
    if name != "default":
        return (error,)
    return (replace(error, field=f"{parent}.{'min' if 'less' in error.detail else 'max'}"),)


_ALLOCATED_TOLERATION: Final = re.compile(r"status\.allocation\.devices\.results\[\d+\]\.tolerations").match


def without_allocated_tolerations(error: FieldError) -> Sequence[FieldError]:
    return () if _ALLOCATED_TOLERATION(error.field) else (error,)


_ENABLEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "spec.type": ("Exempt", "Limited"),
    "spec.limited.limitResponse.type": ("Queue", "Reject"),
}


def of_missing_type(error: FieldError) -> Sequence[FieldError]:
    supported = _ENABLEMENTS.get(error.field)
    if supported is None or error.type is not ErrorType.REQUIRED:
        return (error,)
    return (errors.not_supported(ROOT.child(*error.field.split(".")), "", supported),)


def of_missing_driver(error: FieldError) -> Sequence[FieldError]:
    """Return the error of a missing driver name, and those of an invalid one."""
    if error.type is not ErrorType.REQUIRED or not error.field.endswith((".attacher", "].name")):
        return (error,)
    problems = names.check_dns1123_subdomain("")
    name_errors = [replace(error, type=ErrorType.INVALID, value="", detail=text) for text in problems]
    return [*([error, error] if error.field.endswith("attacher") else [error]), *name_errors]


def of_forbidden_update(error: FieldError) -> Sequence[FieldError]:
    if error.field not in ("parameters", "provisioner", "reclaimPolicy") or error.detail != IMMUTABLE:
        return (error,)
    return (errors.forbidden(ROOT.child(error.field), f"updates to {error.field} are forbidden."),)
