"""The bill of materials of a wheel, in the format of CycloneDX 1.6: mockube, and the locked versions of what it needs."""

import hashlib
import re
import tomllib
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any, Final

import orjson
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.packages import ROOT

_PIN: Final = re.compile(
    r"^([a-z0-9.-]+)==(\S+)(?: ; ([^\\]*?))? \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)
"""A distribution in a file of `requirements/`: name, version, for which systems it is, and the hashes of its files."""
_HASH: Final = re.compile(r"sha256:([0-9a-f]{64})")
_LICENSE_CLASSIFIER: Final = re.compile(r"License :: (?:OSI Approved :: )?(.+)")


def bill_of_materials(wheel: Path, requirements: Path, epoch: int) -> bytes:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    reference = _purl(project["name"], project["version"])
    components = [*_components(requirements.read_text())]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": reference,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": reference,
                "hashes": [{"alg": "SHA-256", "content": digest}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": reference, "dependsOn": _references(project["dependencies"], components)},
            *(
                {"ref": row["bom-ref"], "dependsOn": _references(_requirements_of(row["name"]), components)}
                for row in components
            ),
        ],
    }
    return orjson.dumps(bill, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _components(requirements: str) -> Iterator[Mapping[str, Any]]:
    """Yield the locked packages; the hashes of one are those of the files that its registry has for all systems."""
    pins = _PIN.findall(requirements)
    for name, locked_version, marker, hashes in pins:
        _check_installed(name, {other_version for other, other_version, *_ in pins if other == name})
        reference = _purl(name, locked_version)
        condition = {"properties": [{"name": "mockube:marker", "value": marker}]} if marker else {}
        yield {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": locked_version,
            "licenses": _licenses(metadata(name)),
            "purl": reference,
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in _HASH.findall(hashes)],
            **condition,
        }


def _check_installed(name: str, versions: Collection[str]) -> None:
    """Refuse to describe a package without its metadata, which has its licence and what it requires."""
    with suppress(PackageNotFoundError):
        if version(name) in versions:
            return
        raise SystemExit(
            f"mockube: {name} {version(name)} is installed, and not {' or '.join(sorted(versions))}: run `make setup`"
        )
    raise SystemExit(
        f"mockube: {name} is not installed, so its licence and requirements are unknown: run `make setup`"
    )


def _licenses(package: PackageMetadata) -> Sequence[Mapping[str, Any]]:
    """Return the licence as the package names it: an expression of SPDX, the classifiers, or a text."""
    if expression := package.get("License-Expression"):
        return [{"expression": expression}]
    classifiers = [_LICENSE_CLASSIFIER.fullmatch(text) for text in package.get_all("Classifier") or ()]
    names = [match[1] for match in classifiers if match] or [package.get("License") or ""]
    if not all(names):
        raise SystemExit(f"mockube: the metadata of {package['Name']} has no licence")
    return [{"license": {"name": name}} for name in names]


def _references(requirements: Iterable[str], components: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the components that fulfil requirements: a package may have another version for other systems."""
    names = {canonicalize_name(Requirement(text).name) for text in requirements}
    return [component["bom-ref"] for component in components if component["name"] in names]


def _requirements_of(name: str) -> Sequence[str]:
    return [text for text in requires(name) or () if "extra ==" not in text]


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"
