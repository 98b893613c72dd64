"""The bill of materials of a wheel, in the format of CycloneDX 1.6: mockube, and the locked versions of what it needs."""

import hashlib
import re
import tomllib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any, Final

import orjson
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.packages import ROOT

_PIN: Final = re.compile(r"^([a-z0-9.-]+)==(\S+)(?: ; ([^\\]*?))? \\$", re.MULTILINE)
"""A distribution in a file of `requirements/`: name, version, and for which systems it is."""


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
    for name, version, marker in _PIN.findall(requirements):
        reference = _purl(name, version)
        condition = {"properties": [{"name": "mockube:marker", "value": marker}]} if marker else {}
        yield {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": version,
            "purl": reference,
            **condition,
        }


def _references(requirements: Iterable[str], components: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the components that fulfil requirements: a package may have another version for other systems."""
    names = {canonicalize_name(Requirement(text).name) for text in requirements}
    return [component["bom-ref"] for component in components if component["name"] in names]


def _requirements_of(name: str) -> Sequence[str]:
    """Return the requirements of a package, which are known of what this system needs."""
    with suppress(PackageNotFoundError):
        return [text for text in requires(name) or () if "extra ==" not in text]
    return ()


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"
