"""Kernel parameters of a pod, in the namespaces that it does not share with the host."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.rules import Tree

_LONGEST: Final = 253
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"({_SEGMENT}[\./])*{_SEGMENT}")

_IPC_NAMES: Final = frozenset(
    {
        "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
        "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
    }
)  # fmt: skip
_HOST_FIELDS: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("hostNetwork", lambda name: name.startswith("net.")),
    ("hostIPC", lambda name: name in _IPC_NAMES or name.startswith("fs.mqueue.")),
)
"""By field that shares a namespace with the host, which parameters are of that namespace."""


def check_sysctls(spec: Tree, sysctls: Iterable[Tree], path: Path, *, of_host: bool) -> Iterator[FieldError]:
    """`of_host`: those of a namespace shared with the host are let through."""
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name, at = sysctl.get("name", ""), path.index(index).child("name")
        yield from _check_name(name, at, seen)
        if not of_host:
            yield from check_host_sysctl(spec, name, at)
        seen.add(name)


def _check_name(name: str, path: Path, seen: set[str]) -> Iterable[FieldError]:
    if not name:
        return (errors.required(path),)
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        problem = f"must have at most {_LONGEST} characters and match regex ^{_NAME.pattern}$"
        return (errors.invalid(path, name, problem),)
    return (errors.duplicate(path, name),) if name in seen else ()


def check_host_sysctl(spec: Tree, name: str, path: Path) -> Iterable[FieldError]:
    """Refuse a parameter that would be the host's."""
    dotted = _normal(name).partition("*")[0]
    for field, is_of_namespace in _HOST_FIELDS:
        if spec.get(field) and is_of_namespace(dotted):
            return (errors.invalid(path, name, f"may not be specified when '{field}' is true"),)
    return ()


def _normal(name: str) -> str:
    """With dots between its parts. Where slashes stand between them, a dot is part of a name."""
    separator = re.search(r"[./]", name)
    if separator is None or separator[0] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))
