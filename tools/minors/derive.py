"""Derive the data of the newest minor from the Go modules of its release, and the definitions of all minors."""

import gzip
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from tools.minors import protobuf_table, schema_data
from tools.minors.gates import read_gates
from tools.minors.gomodules import (
    Release,
    additions,
    go_types,
    internal_types,
    module_folder,
    pod_template_types,
    template_hashes,
)
from tools.minors.releases import CURRENT, OLDER
from tools.minors.roles import read_roles

ROOT: Final = Path(__file__).parents[2]
TYPES: Final = ROOT / "apimachinery/schema/data/newest.json.gz"
DEFINITIONS: Final = ROOT / "apimachinery/schema/data/definitions"
OPENAPI: Final = ROOT / "apiserver/openapi/data/newest.json.gz"
INTERNAL: Final = ROOT / "apiserver/kinds/common/data/newest.json.gz"
OLDER_INTERNAL: Final = ROOT / "apiserver/kinds/common/data/older.json.gz"
GATES: Final = ROOT / "apimachinery/schema/data/gates.json"
ROLES: Final = ROOT / "apiserver/bootstrap/data/rbac.json"
WIRE: Final = ROOT / "apiserver/wire/protobuf/messages.json.gz"
HASHES: Final = ROOT / "tests/unit/controller_manager/workloads/template_hashes.jsonl"
POD_TEMPLATE: Final = ROOT / "controller_manager/workloads/data/pod_template.json"


def derive_newest() -> str:
    """Write all files of the newest minor, and the definitions of all minors; return what they are."""
    pack_definitions((CURRENT, *OLDER))
    pack(TYPES, types_of(CURRENT))
    pack(OPENAPI, additions(CURRENT))
    newest = internal_types(CURRENT)
    pack(INTERNAL, newest)
    present = orjson.loads(gzip.decompress(OLDER_INTERNAL.read_bytes()))
    pack(OLDER_INTERNAL, with_differences(present, OLDER[0].minor, newest, internal_types(OLDER[0])))
    GATES.write_text(_lines(read_gates(CURRENT)))
    ROLES.write_text(_role_lines(read_roles(CURRENT)))
    WIRE.write_bytes(gzip.compress(protobuf_table.render(wire_table((CURRENT, *OLDER))).encode(), mtime=0))
    POD_TEMPLATE.write_text(_lines(pod_template_types(CURRENT)))
    _add_hashes(CURRENT)
    paths = (DEFINITIONS, TYPES, OPENAPI, INTERNAL, OLDER_INTERNAL, GATES, ROLES, WIRE, POD_TEMPLATE)
    return ", ".join(str(path.relative_to(ROOT)) for path in paths)


def pack_definitions(releases: Iterable[Release]) -> None:
    """Write the OpenAPI definitions that each release publishes: those of the newest, and for each older minor the differences from the next."""
    shutil.rmtree(DEFINITIONS, ignore_errors=True)
    DEFINITIONS.mkdir()
    newer: dict[str, Any] = {}
    for release in releases:
        definitions = schema_data.definitions_of(release)
        pack(DEFINITIONS / f"{release.minor}.json.gz", definition_differences(newer, definitions))
        newer = definitions


def definition_differences(newer: Mapping[str, Any], older: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definitions of a minor that the next newer one has otherwise or not at all, and None for those that only the newer one has."""
    changed = {name: value for name, value in older.items() if newer.get(name) != value}
    return dict(sorted((changed | dict.fromkeys(newer.keys() - older.keys())).items()))


def with_differences(
    present: Mapping[str, Any], minor: str, newest: Mapping[str, Any], older: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the differences of internal types by minor, from newest to oldest, with those of the first older one.

    The others keep theirs from the next minor: to read one again, most of its Kubernetes would be compiled.
    """
    differences = {name: fields for name, fields in older.items() if newest.get(name) != fields}
    return {minor: differences} | {other: rows for other, rows in present.items() if other != minor}


def types_of(release: Release) -> dict[str, Any]:
    """The Go types of a release, with how their lists and maps merge."""
    types = go_types(release)
    definitions = schema_data.definitions_of(release)
    types["structs"] = {
        name: schema_data.merge_struct(name, fields, definitions) for name, fields in types["structs"].items()
    }
    return types


def wire_table(releases: Iterable[Release]) -> dict[str, Any]:
    """The messages of all releases: a newer one has not all kinds and alpha fields of the older ones."""
    table: dict[str, Any] = {"version": "", "kinds": {}, "messages": {}}
    for release in releases:
        folders = {
            prefix: module_folder(release, module) for prefix, module in protobuf_table.MODULES.items()
        }
        older = protobuf_table.derive(protobuf_table.read_wire(folders.values()), folders)
        table["version"] = table["version"] or f"v0.{release.version.partition('.')[2]}"
        for api_version, kinds in older["kinds"].items():
            table["kinds"][api_version] = kinds | table["kinds"].get(api_version, {})
        for name, rows in older["messages"].items():
            newer = table["messages"].setdefault(name, [])
            numbers = {row[1] for row in newer}
            newer += (row for row in rows if row[1] not in numbers)
    return table


def _add_hashes(release: Release) -> None:
    """Add the hashes that a release computes for the templates of the test."""
    rows = [orjson.loads(line) for line in HASHES.read_bytes().splitlines()]
    templates = [{name: fact for name, fact in row.items() if name != "hashes"} for row in rows]
    computed = template_hashes(release, b"\n".join(map(orjson.dumps, templates))).splitlines()
    for row, line in zip(rows, computed, strict=True):
        row["hashes"] = {release.minor: orjson.loads(line)["hash"]} | row["hashes"]
    HASHES.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


def pack(path: Path, facts: Mapping[str, Any]) -> None:
    """Write compressed JSON."""
    # Without a time in it, the same facts make the same file.
    path.write_bytes(gzip.compress(orjson.dumps(facts), mtime=0))


def _lines(facts: Mapping[str, Any]) -> str:
    """One entry a line, so that a change reads well."""
    return (
        "{\n"
        + ",\n".join(f'"{name}": {orjson.dumps(fact).decode()}' for name, fact in facts.items())
        + "\n}\n"
    )


def _role_lines(roles: Mapping[str, Mapping[str, Any]]) -> str:
    rows_by_resource = (
        f'"{resource}": [\n' + ",\n".join(orjson.dumps(row).decode() for row in rows.values()) + "\n]"
        for resource, rows in roles.items()
    )
    return "{\n" + ",\n".join(rows_by_resource) + "\n}\n"
