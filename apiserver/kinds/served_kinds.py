"""The kinds that a server serves: those of its minor release, as `--runtime-config` switches them."""

from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.registry import NEWEST, Kinds
from mockube.apiserver.kinds.resource_config import NO_OVERRIDES, Overrides


def kinds_of(minor: str, overrides: Overrides = NO_OVERRIDES) -> Kinds:
    """Return the kinds that a server of a minor release has, by default or as its APIs are switched."""
    if overrides:
        from mockube.apiserver.kinds.betas import switched_kinds  # noqa: PLC0415 - few servers have others than by default

        return switched_kinds(kinds_of(minor), overrides, lambda kind: _kind_of_minor(kind, minor))
    if minor == minors.NEWEST:
        return NEWEST
    from mockube.apiserver.kinds.minors.older_kinds import older_kinds  # noqa: PLC0415 - most servers are of the newest

    return older_kinds(minor)


def _kind_of_minor(kind: Kind, minor: str) -> Kind:
    if minor == minors.NEWEST:
        return kind
    from mockube.apiserver.kinds.minors.older_kinds import older_kind  # noqa: PLC0415 - most servers are of the newest

    return older_kind(kind, minor)
