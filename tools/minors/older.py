"""Derive `apimachinery/schema/data/minors.json.gz`: in what each older minor release differs from the next one.

What a minor's types, resources, gates and roles are stands in Kubernetes' Go modules, which are downloaded into Go's
module cache; `releases.py` has the patch releases. Needs a Go toolchain, and takes some minutes:

    .venv/bin/python -m tools.minors older

`apimachinery/schema/data/README.md` describes the file.
"""

import gzip
from collections.abc import Mapping
from typing import Any, TypeAlias

import orjson

from tools.minors.derive import OPENAPI, POD_TEMPLATE, ROLES, ROOT, TYPES, pack, types_of
from tools.minors.gates import read_gates
from tools.minors.gomodules import Release, additions, pod_template_types
from tools.minors.releases import CURRENT, OLDER
from tools.minors.roles import read_roles
from tools.minors.served import read_resources

Table: TypeAlias = Mapping[str, Any]

MINORS = ROOT / "apimachinery/schema/data/minors.json.gz"


def derive_older_minors() -> str:
    newer = newest = current_tables()
    minors = {}
    for release in OLDER:
        tables = read(release, newest)
        minors[release.minor] = {
            name: changed for name, table in tables.items() if (changed := changes(table, newer[name]))
        }
        newer = tables
    pack(MINORS, minors)
    return f"{MINORS.relative_to(ROOT)}: {MINORS.stat().st_size} bytes"


def changes(table: Table, newer: Table) -> Table:
    """What of a table is another than in that of the next minor, by key; null for what is not there yet."""
    changed = {key: value for key, value in table.items() if key not in newer or newer[key] != value}
    return changed | {key: None for key in newer if key not in table}


def current_tables() -> Mapping[str, Table]:
    """The tables of the newest minor, most of which have files of their own."""
    types, openapi = (orjson.loads(gzip.decompress(path.read_bytes())) for path in (TYPES, OPENAPI))
    roles = {name: rows_by_name(rows) for name, rows in orjson.loads(ROLES.read_bytes()).items()}
    pod_template = orjson.loads(POD_TEMPLATE.read_bytes())
    return tables_of(CURRENT, types, openapi, roles, pod_template)


def with_defaults(fields: list[dict[str, Any]], newest: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fields with the defaults that newer types declare: before, code filled in the same."""
    declared = {field["name"]: field["default"] for field in newest if "default" in field}
    return [
        field | ({"default": declared[field["name"]]} if field["name"] in declared else {})
        for field in fields
    ]


def read(release: Release, newest: Mapping[str, Table]) -> Mapping[str, Table]:
    types = types_of(release)
    types["structs"] = {
        name: with_defaults(fields, newest["structs"].get(name, ()))
        for name, fields in types["structs"].items()
    }
    return tables_of(release, types, additions(release), read_roles(release), pod_template_types(release))


def tables_of(
    release: Release, types: Table, openapi: Table, roles: Table, pod_template: Table
) -> Mapping[str, Table]:
    gates = read_gates(release)
    return {
        "kinds": types["kinds"],
        "structs": types["structs"],
        "additions": openapi["additions"],
        "definitions": openapi["definitions"],
        "resources": read_resources(release, gates),
        "gates": gates,
        "podTemplate": pod_template,
        **roles,
    }


def rows_by_name(rows: list[dict[str, Any]]) -> Table:
    return {row.get("namespace", "") + "/" + row["name"]: row for row in rows}
