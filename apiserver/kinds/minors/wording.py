"""Errors and warnings whose messages differ in older minors.

A function takes an error or a warning of the newest minor, and returns those of an older minor in its place.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.admissionregistration.matching import RESERVED
from mockube.apiserver.kinds.common.checks import IMMUTABLE, NOT_NEGATIVE
from mockube.apiserver.kinds.common.objectmeta import NO_VERSION, NOT_EMPTY
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


def of_changed_role(error: FieldError) -> Sequence[FieldError]:
    is_change = error.field == "roleRef" and error.detail == IMMUTABLE
    return (replace(error, detail="cannot change roleRef"),) if is_change else (error,)


_MESSAGES: Final = ("status.attachError.message", "status.detachError.message")


def of_long_message(error: FieldError) -> Sequence[FieldError]:
    """Return the error with another limit than that of the message."""
    if error.field not in _MESSAGES or error.type is not ErrorType.TOO_LONG:
        return (error,)
    return (errors.too_long(ROOT.child(*error.field.split(".")), 256 * 1024),)


def without_reserved_name(error: FieldError) -> Sequence[FieldError]:
    """Drop the error of a name that is reserved since 1.37."""
    return () if error.detail == RESERVED else (error,)


# --- metadata

_IN_OWNER: Final = re.compile(
    r"(?P<owners>(.*\.)?metadata\.ownerReferences)\[[0-9]+\](?P<field>(\.[a-zA-Z]+)?)"
)
_OPERATION: Final = re.compile(r"(.*\.)?metadata\.managedFields\[[0-9]+\]\.operation")


def of_metadata(error: FieldError) -> FieldError:
    """Return an error of owner references and managed fields as minors before 1.37 report it."""
    if "metadata." not in error.field:
        return error
    if _OPERATION.fullmatch(error.field):
        value = "" if error.type is ErrorType.REQUIRED else error.value
        return replace(error, type=ErrorType.INVALID, value=value, detail="must be `Apply` or `Update`")
    match = _IN_OWNER.fullmatch(error.field)
    if match is None:
        return error
    field = match["owners"] + match["field"]
    if error.type is not ErrorType.REQUIRED and error.detail != NO_VERSION:
        return replace(error, field=field)
    detail = "version must not be empty" if field.endswith(".apiVersion") else NOT_EMPTY
    value = "" if error.type is ErrorType.REQUIRED else error.value
    return replace(error, field=field, type=ErrorType.INVALID, value=value, detail=detail)


# --- conditions

_IN_CONDITION: Final = re.compile(
    r"(?P<condition>status\.(.*\.)?conditions\[[0-9]+\])(?P<field>(\.[a-zA-Z]+)?)"
)


_WITH_CONDITIONS: Final = frozenset(
    {
        GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        GroupKind("policy", "PodDisruptionBudget"),
        GroupKind("resource.k8s.io", "ResourceClaim"),
    }
)


def in_words_of_36(kind: GroupKind, field_errors: Iterable[FieldError]) -> list[FieldError]:
    """Return errors that every kind can have, and those of shared conditions, as minors before 1.37 report them."""
    worded = [*map(of_metadata, field_errors)]
    if kind not in _WITH_CONDITIONS:
        return worded
    return [each for error in worded for each in of_condition(error)]


def of_condition(error: FieldError) -> Sequence[FieldError]:
    """Return an error of a condition as minors before 1.37 report it."""
    match = _IN_CONDITION.fullmatch(error.field)
    if match is None:
        return (error,)
    if error.type is ErrorType.DUPLICATE and not match["field"]:
        return (replace(error, field=f"{error.field}.type"),)
    if error.type is not ErrorType.REQUIRED:
        return (error,)
    if match["field"] == ".type":
        problems = names.check_label_key("")
        return [replace(error, type=ErrorType.INVALID, value="", detail=text) for text in problems]
    if match["field"] == ".status":
        supported = errors.not_supported(ROOT, "", ("False", "True", "Unknown"))
        return (replace(supported, field=error.field),)
    return (error,)


# --- warnings

_ADDRESS_WARNING: Final = re.compile(
    r"(?P<path>\S+): (?P<kind>non-standard IP address|non-standard CIDR value|IPv6 address|IPv6 CIDR value|CIDR value)"
    r' "(?P<value>[^"]*)" [^("]*(?P<rest>.*)',
    re.DOTALL,
)
_SERVICE: Final = GroupKind("", "Service")
_IS_INVALID: Final = " is invalid: use "
_WILL_BE_INVALID: Final = " will be considered invalid in a future Kubernetes release: use "
_GIT_REPO: Final = "deprecated in v1.11, and disabled by default in v1.33+"


def warning_of(kind: GroupKind, minor: str) -> Callable[[str], Sequence[str]]:
    """Return a function that returns the warnings of a kind in a minor for a warning of the newest one."""
    if not minors.is_before(minor, "1.36"):
        return lambda text: (text,)
    if not minors.is_before(minor, "1.33"):
        return lambda text: (text.replace(_IS_INVALID, _WILL_BE_INVALID) if "non-standard" in text else text,)
    of_address = _of_service_address if kind == _SERVICE else _no_warnings

    def reword(text: str) -> Sequence[str]:
        match = _ADDRESS_WARNING.match(text)
        return (text.replace(_GIT_REPO, "deprecated in v1.11"),) if match is None else of_address(match)

    return reword


def _no_warnings(_match: re.Match[str]) -> Sequence[str]:
    return ()


def _of_service_address(match: re.Match[str]) -> Sequence[str]:
    """Return the warning of minors before 1.33 about an address of a Service."""
    path, value = match["path"], match["value"]
    if match["kind"].startswith("IPv6"):
        word = "prefix" if "CIDR" in match["kind"] else "address"
        reason = (
            f"is not in RFC 5952 canonical format {match['rest']}, which may cause controller apply-loops"
        )
        return (f'{path}: IPv6 {word} "{value}" {reason}',)
    address = value.partition("/")[0]
    if not match["kind"].startswith("non-standard") or ":" in address:
        return ()
    problem = f'ParseAddr("{address}"): IPv4 field has octet with leading zero'
    if "CIDR" in match["kind"]:
        noun, problem = "prefix", f'netip.ParsePrefix("{value}"): {problem}'
    else:
        noun = "address"
    return (f"{path}: IP {noun} was accepted, but will be invalid in a future Kubernetes release: {problem}",)
