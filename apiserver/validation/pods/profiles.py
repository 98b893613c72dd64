"""Seccomp and AppArmor profiles: in fields and, as before there were fields, in annotations, and that both agree."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, gotext
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.file_paths import check_descending
from apiserver.validation.internal import internal
from apiserver.validation.pods.surroundings import WINDOWS, containers_of, os_of
from apiserver.validation.rules import Tree, no_longer_than

SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_OF_CONTAINER: Final = "container.apparmor.security.beta.kubernetes.io/"

_LOCALHOST, _RUNTIME_DEFAULT, _UNCONFINED = "Localhost", "RuntimeDefault", "Unconfined"
_TYPES: Final = (_LOCALHOST, _RUNTIME_DEFAULT, _UNCONFINED)
_LOCALHOST_PREFIX: Final = "localhost/"
_LONGEST_PATH: Final = 4095

_ANNOTATED: Final[Mapping[str, tuple[str, ...]]] = {
    _UNCONFINED: ("unconfined",),
    _RUNTIME_DEFAULT: ("runtime/default", "docker/default"),
}
"""What annotations say for a type of profile. AppArmor knows the first of each only."""


# --- fields


def check_seccomp(profile: Tree, path: Path) -> Iterator[FieldError]:
    of_type, localhost = profile.get("type", ""), profile.get("localhostProfile")
    if not of_type:
        yield errors.required(path.child("type"), "type is required when seccompProfile is set")
    elif of_type not in _TYPES:
        yield errors.not_supported(path.child("type"), of_type, _TYPES)
    path = path.child("localhostProfile")
    if of_type != _LOCALHOST:
        if localhost is not None:
            shown = internal("core.SeccompProfile", profile)
            yield errors.invalid(path, shown, "can only be set when seccomp type is Localhost")
    elif localhost is None:
        yield errors.required(path, "must be set when seccomp type is Localhost")
    else:
        yield from check_descending(localhost, path)


def check_apparmor(profile: Tree, path: Path) -> Iterator[FieldError]:
    of_type, localhost = profile.get("type", ""), profile.get("localhostProfile")
    if not of_type:
        yield errors.required(path.child("type"), "type is required when appArmorProfile is set")
    elif of_type not in _TYPES:
        yield errors.not_supported(path.child("type"), of_type, _TYPES)
    elif of_type == _LOCALHOST:
        yield from _check_localhost_profile(localhost, path.child("localhostProfile"))
    elif localhost is not None:
        problem = "can only be set when AppArmor type is Localhost"
        yield errors.invalid(path.child("localhostProfile"), localhost, problem)


def _check_localhost_profile(name: str | None, path: Path) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path, "must be set when AppArmor type is Localhost")
        return
    if name.strip() != name:
        yield errors.invalid(path, name, "must not be padded with whitespace")
    yield from no_longer_than(_LONGEST_PATH)(name, path)


# --- annotations


def check_seccomp_annotations(annotations: Mapping[str, str], path: Path) -> Iterator[FieldError]:
    for key, profile in annotations.items():
        if key == SECCOMP_OF_POD or key.startswith(SECCOMP_OF_CONTAINER):
            yield from _check_seccomp_annotation(profile, path.child(key))


def _check_seccomp_annotation(profile: str, path: Path) -> Iterable[FieldError]:
    if profile.startswith(_LOCALHOST_PREFIX):
        return check_descending(profile.removeprefix(_LOCALHOST_PREFIX), path)
    if any(profile in named for named in _ANNOTATED.values()):
        return ()
    return (errors.invalid(path, profile, "must be a valid seccomp profile"),)


def check_apparmor_annotations(
    annotations: Mapping[str, str], spec: Tree, path: Path
) -> Iterator[FieldError]:
    for key, profile in annotations.items():
        if not key.startswith(APPARMOR_OF_CONTAINER):
            continue
        container = key.removeprefix(APPARMOR_OF_CONTAINER)
        if all(one.get("name", "") != container for one, _ in containers_of(spec, path)):
            yield errors.invalid(path.key(key), container, "container not found")
        known = ("", *(named[0] for named in _ANNOTATED.values()))
        if profile not in known and not profile.startswith(_LOCALHOST_PREFIX):
            problem = f"invalid AppArmor profile name: {gotext.quote(profile)}"
            yield errors.invalid(path.key(key), profile, problem)


# --- both


def check_seccomp_agrees(annotations: Mapping[str, str], spec: Tree, path: Path) -> Iterator[FieldError]:
    if not annotations:
        return
    of_pod = _profile(spec, "seccompProfile")
    if of_pod is not None and SECCOMP_OF_POD in annotations:
        yield from _check_agrees(
            annotations[SECCOMP_OF_POD], of_pod, path.child("securityContext"), "seccomp"
        )
    for container, at in containers_of(spec, path):
        profile, key = (
            _profile(container, "seccompProfile"),
            f"{SECCOMP_OF_CONTAINER}{container.get('name', '')}",
        )
        if profile is not None and key in annotations:
            yield from _check_agrees(annotations[key], profile, at.child("securityContext"), "seccomp")


def check_apparmor_agrees(annotations: Mapping[str, str], spec: Tree, path: Path) -> Iterator[FieldError]:
    if not annotations or os_of(spec) == WINDOWS:
        return
    of_pod = _profile(spec, "appArmorProfile")
    for container, at in containers_of(spec, path):
        profile = _profile(container, "appArmorProfile")
        profile = of_pod if profile is None else profile
        key = f"{APPARMOR_OF_CONTAINER}{container.get('name', '')}"
        if profile is not None and key in annotations:
            yield from _check_agrees(annotations[key], profile, at.child("securityContext"), "apparmor")


def _profile(of: Tree, field: str) -> Tree | None:
    profile: Tree | None = (of.get("securityContext") or {}).get(field)
    return profile


def _check_agrees(annotation: str, profile: Tree, path: Path, what: str) -> Iterable[FieldError]:
    path = path.child("seccompProfile" if what == "seccomp" else "appArmorProfile")
    of_type, localhost = profile.get("type", ""), profile.get("localhostProfile")
    wrong_type = errors.forbidden(path.child("type"), f"{what} type in annotation and field must match")
    if of_type != _LOCALHOST:
        named = _ANNOTATED.get(of_type, (annotation,))
        return () if annotation in (named if what == "seccomp" else named[:1]) else (wrong_type,)
    if not annotation.startswith(_LOCALHOST_PREFIX):
        return (wrong_type,)
    if annotation.removeprefix(_LOCALHOST_PREFIX) == localhost:
        return ()
    detail = f"{what} profile in annotation and field must match"
    return (errors.forbidden(path.child("localhostProfile"), detail),)
