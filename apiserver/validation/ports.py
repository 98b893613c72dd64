"""Ports: their numbers, names and protocols."""

from collections.abc import Iterable
from typing import Final

from apimachinery import names
from apimachinery.errors import FieldError
from apimachinery.intstr import IntOrString
from apimachinery.paths import Path
from apiserver.validation.rules import one_of, port_number, valid

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")

check_protocol: Final = one_of(*PROTOCOLS)

_check_name: Final = valid(names.check_port_name)


def check_port(port: IntOrString, path: Path) -> Iterable[FieldError]:
    """A port's number, or the name that a container gives it."""
    return port_number(port, path) if isinstance(port, int) else _check_name(port, path)
