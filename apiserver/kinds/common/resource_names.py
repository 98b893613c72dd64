"""The names and amounts of resources that pods request and quotas limit."""

from collections.abc import Iterable, Iterator
from typing import Final

from mockube.apimachinery import errors, names, quantity, resource_names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.quantity import Quantity, QuantityError

from .checks import NOT_NEGATIVE, NOT_POSITIVE, report

CPU, MEMORY, EPHEMERAL_STORAGE, STORAGE = "cpu", "memory", "ephemeral-storage", "storage"

_OF_CONTAINERS: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_COUNTED: Final = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_OF_QUOTAS: Final = (
    _OF_CONTAINERS
    | _COUNTED
    | {f"requests.{name}" for name in (*_OF_CONTAINERS, STORAGE)}
    | {f"limits.{name}" for name in _OF_CONTAINERS}
)
_STANDARD: Final = _OF_QUOTAS | {STORAGE}


def is_huge_page(name: str) -> bool:
    return name.startswith(resource_names.HUGE_PAGES)


def _is_huge_page_of_quota(name: str) -> bool:
    return name.startswith(
        (resource_names.HUGE_PAGES, f"{resource_names.REQUESTS}{resource_names.HUGE_PAGES}")
    )


def is_overcommit_allowed(name: str) -> bool:
    return resource_names.is_native(name) and not is_huge_page(name)


def is_integer(name: str) -> bool:
    """Return whether amounts of a resource are integers."""
    return name in _COUNTED or resource_names.is_extended(name)


def is_standard_quota_resource_name(name: str) -> bool:
    return name in _OF_QUOTAS or _is_huge_page_of_quota(name)


_check_format: Final = report(names.check_label_key)


def check_name(name: str, path: Path) -> list[FieldError]:
    if name in _STANDARD:
        return []
    field_errors = [*_check_format(name, path)]
    if not field_errors and "/" not in name and not _is_huge_page_of_quota(name):
        return [errors.invalid(path, name, "must be a standard resource type or fully qualified")]
    return field_errors


def check_container_name(name: str, path: Path) -> list[FieldError]:
    """Check the name of a container resource."""
    field_errors = check_name(name, path)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not is_huge_page(name):
            field_errors.append(errors.invalid(path, name, "must be a standard resource for containers"))
    elif not resource_names.is_native(name) and not resource_names.is_extended(name):
        field_errors.append(errors.invalid(path, name, "doesn't follow extended resource name standard"))
    return field_errors


def check_pod_name(name: str, path: Path) -> list[FieldError]:
    """Check the name of a pod-level resource."""
    field_errors = check_name(name, path)
    if not field_errors and name not in (CPU, MEMORY) and not is_huge_page(name):
        return [errors.not_supported(path, name, (CPU, resource_names.HUGE_PAGES, MEMORY))]
    return field_errors


def check_quota_name(name: str, path: Path) -> list[FieldError]:
    """Check the name of a resource in a quota."""
    field_errors = check_name(name, path)
    if "/" not in name and not is_standard_quota_resource_name(name):
        field_errors.append(errors.invalid(path, name, "must be a standard resource for quota"))
    return field_errors


# --- amounts


def check_not_negative(amount: str, path: Path) -> Iterable[FieldError]:
    return (errors.invalid(path, amount, NOT_NEGATIVE),) if quantity.parse(amount) < quantity.ZERO else ()


def check_positive(amount: str, path: Path) -> Iterable[FieldError]:
    return (errors.invalid(path, amount, NOT_POSITIVE),) if quantity.parse(amount) <= quantity.ZERO else ()


def check_amount(name: str, amount: str, path: Path) -> Iterator[FieldError]:
    """Check an amount of a resource."""
    yield from check_not_negative(amount, path)
    if is_integer(name) and quantity.int64_value(amount, quantity.MILLI) % 1000:
        yield errors.invalid(path, amount, "must be an integer")


def is_divisible(name: str, amount: Quantity) -> bool:
    """Return whether an amount of huge pages is a multiple of the page size in the resource's name."""
    try:
        page = quantity.parse(name.removeprefix(resource_names.HUGE_PAGES))
    except QuantityError:
        return False
    if page <= quantity.ZERO or page.scaled_value(quantity.MILLI) % 1000:
        return False
    return amount.scaled_value() % page.scaled_value() == 0
