"""The volumes of a pod, which its containers may mount."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from apimachinery import errors, gotext, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.pods.leniency import Leniency
from apiserver.validation.rules import Check, Tree, every, required, valid
from apiserver.validation.volumes.projected import check_projected_leniently
from apiserver.validation.volumes.sources import SOURCES, check_source

_LONGEST_ISCSI: Final = 64


@cache
def _sources(*, in_pod: bool, any_token_path: bool) -> Mapping[str, Check]:
    """An image may be left out in templates, and a token's file lie anywhere in what is old."""
    sources = dict(SOURCES)
    if in_pod:
        sources["image"] = every(required("reference"), SOURCES["image"])
    if any_token_path:
        sources["projected"] = check_projected_leniently
    return sources


def _check_iscsi_name(volume: Tree, path: Path) -> Iterator[FieldError]:
    source, name = volume.get("iscsi") or {}, volume.get("name", "")
    length = len(f"{name}:{source.get('targetPortal', '')}".encode())
    if source.get("initiatorName") is not None and length > _LONGEST_ISCSI:
        problem = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
            "if iscsi.initiatorName is specified."
        )
        yield errors.invalid(path.child("name"), name, problem)


def _claim_of(pod: str, volume: str) -> str:
    """The claim that is made for an ephemeral volume."""
    return f"{pod}-{volume}"


def _check_claim_name(
    volume: Tree, pod: str, path: Path, sources: Mapping[str, Check]
) -> Iterator[FieldError]:
    name = volume.get("name", "")
    kind = next((kind for kind in sources if volume.get(kind) is not None), "")
    if kind != "ephemeral" or not pod or not name:
        return
    claim = _claim_of(pod, name)
    for problem in names.check_dns1123_subdomain(claim):
        yield errors.invalid(path.child("name"), name, f"PVC name {gotext.quote(claim)}: {problem}")


_NAME: Final = required("name", valid(names.check_dns1123_label))


def check_volumes(
    spec: Tree, metadata: Tree | None, path: Path, leniency: Leniency
) -> tuple[dict[str, Tree], list[FieldError]]:
    """The volumes that nothing is wrong with, by name, and what is wrong with the others."""
    pod = (metadata or {}).get("name", "")
    sources = _sources(in_pod=metadata is not None, any_token_path=leniency.token_paths)
    volumes, path = spec.get("volumes") or (), path.child("volumes")
    made = {
        _claim_of(pod, each.get("name", "")) for each in volumes if pod and each.get("ephemeral") is not None
    }
    good: dict[str, Tree] = {}
    found: list[FieldError] = []
    for index, volume in enumerate(volumes):
        name, at = volume.get("name", ""), path.index(index)
        wrong = [*check_source(volume, at, sources), *_check_iscsi_name(volume, at)]
        wrong += [*_check_claim_name(volume, pod, at, sources), *_NAME(volume, at)]
        if name in good:
            wrong.append(errors.duplicate(at.child("name"), name))
        if not wrong:
            good[name] = volume
        found += [*wrong, *_check_not_made(volume, made, at)]
    return good, found


def _check_not_made(volume: Tree, made: set[str], path: Path) -> Iterator[FieldError]:
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
    if claim in made:
        problem = "must not reference a PVC that gets created for an ephemeral volume"
        yield errors.invalid(path.child("persistentVolumeClaim", "claimName"), claim, problem)
