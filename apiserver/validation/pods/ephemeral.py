"""Updates through pods/ephemeralcontainers: what was once added stays as it is."""

from collections.abc import Iterable, Iterator
from typing import Final

from apimachinery import errors, gotext, meta
from apimachinery.errors import FieldError
from apiserver.validation.differences import difference
from apiserver.validation.pods.annotations import MIRROR
from apiserver.validation.pods.pods import (
    NOWHERE,
    SPEC,
    check_changed_annotations,
    check_changed_pod,
    spec_of,
)
from apiserver.validation.rules import Tree

_PATH: Final = SPEC.child("ephemeralContainers")


def check_ephemeral_update(new: Tree, old: Tree) -> Iterable[FieldError]:
    if MIRROR in meta.annotations(old):
        return (errors.forbidden(NOWHERE, "static pods do not support ephemeral containers"),)
    return [
        *check_changed_pod(new, old),
        *check_changed_annotations(new, old),
        *_check_kept(spec_of(new), spec_of(old)),
    ]


def _check_kept(spec: Tree, before: Tree) -> Iterator[FieldError]:
    now = {container.get("name", ""): container for container in spec.get("ephemeralContainers", ())}
    for container in before.get("ephemeralContainers", ()):
        name = container.get("name", "")
        which = f"existing ephemeral containers {gotext.quote(name)}"
        if name not in now:
            yield errors.forbidden(_PATH, f"{which} may not be removed\n")
        elif now[name] != container:
            told = difference("core.EphemeralContainer", container, now[name])
            yield errors.forbidden(_PATH, f"{which} may not be changed\n{told}")
