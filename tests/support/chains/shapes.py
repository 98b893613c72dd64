"""A case of a chain, and the certificates that most cases begin with."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tests.support.chains import builder as b
from tests.support.chains.builder import Certificate, key

HOST = "webhook.default.svc"


class Case(NamedTuple):
    name: str
    chain: Sequence[bytes]
    roots: Sequence[bytes]
    host: str = HOST
    usage: str = "server"
    time: datetime = b.NOW


def root(**fields: Any) -> Certificate:
    return Certificate(**{"ca": True, **fields})


def middle(**fields: Any) -> Certificate:
    """An intermediate authority, signed by `root()`."""
    defaults = {
        "subject": "CN=middle", "issuer": "CN=root", "key": key("p256-middle"), "signer": key("p256-root"), "ca": True,
    }  # fmt: skip
    return Certificate(**{**defaults, **fields})


def leaf(**fields: Any) -> Certificate:
    """A server's certificate, signed by `root()`."""
    defaults = {
        "subject": "CN=leaf", "issuer": "CN=root", "key": key("p256-leaf"), "signer": key("p256-root"), "dns": [HOST],
        "usages": [b.SERVER],
    }  # fmt: skip
    return Certificate(**{**defaults, **fields})


def below_middle(**fields: Any) -> Certificate:
    return leaf(**{"issuer": "CN=middle", "signer": key("p256-middle"), **fields})


def single(name: str, *, root_fields: dict[str, Any] | None = None, **fields: Any) -> Case:
    """A leaf with these fields below one root."""
    options = {one: fields.pop(one) for one in ("host", "usage", "time") if one in fields}
    return Case(name, [leaf(**fields).der()], [root(**(root_fields or {})).der()], **options)


def through_middle(
    name: str,
    *,
    root_fields: dict[str, Any] | None = None,
    leaf_fields: dict[str, Any] | None = None,
    **fields: Any,
) -> Case:
    """A leaf below an intermediate authority with these fields."""
    chain = [below_middle(**(leaf_fields or {})).der(), middle(**fields).der()]
    return Case(name, chain, [root(**(root_fields or {})).der()])
