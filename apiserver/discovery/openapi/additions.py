"""What upstream's definitions say beyond those of `kubernetes-validate`: enumerations, defaults, two descriptions.

Knows how these facts are stored and how they go into a definition; where they come from, `data/README.md`.
"""

import gzip
from collections.abc import Mapping
from pkgutil import get_data
from typing import Any, Final, TypeAlias

from msgspec import Raw
from msgspec.json import decode

Schema: TypeAlias = dict[str, Any]

_ONE_SCHEMA: Final = ("items", "additionalProperties")
"""Keywords under which another schema stands."""


def load(release: str) -> Mapping[str, Raw]:
    """By the name of a definition what is added to it, not looked into yet."""
    packed = get_data(__package__, f"data/{release}.json.gz")
    assert packed is not None, "the package is installed where its files can be read"
    return decode(gzip.decompress(packed), type=dict[str, Raw])


def extended(schema: Schema, addition: Schema) -> Schema:
    """The schema with the addition, which has its form; only a description is added to the end of the schema's own."""
    made = schema | addition
    for keyword in _ONE_SCHEMA:
        if keyword in addition:
            made[keyword] = extended(schema[keyword], addition[keyword])
    if "properties" in addition:
        fields = schema["properties"]
        made["properties"] = fields | {
            name: extended(fields[name], added) for name, added in addition["properties"].items()
        }
    if "description" in addition:
        made["description"] = schema.get("description", "") + addition["description"]
    return made
