"""OpenAPI documents equal those of a real cluster: of every group, and of definitions of many forms."""

import lzma
from pathlib import Path

import orjson
import pytest
import yaml

from mockube.apimachinery.schema import minors
from mockube.apiserver.customresources.compile import compile_definition
from mockube.apiserver.kinds.built_in_kinds import GROUPS, NEWEST
from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.apiserver.openapi.documents import Documents
from tests.conformance.golden.golden import differences

FOLDER = Path(__file__).parent / "golden/openapi"
ROWS = [row for group in GROUPS for row in group.resources]


def recorded_document(name):
    return orjson.loads(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes()))


def documents_of_customs(minor=minors.NEWEST):
    kinds = kinds_of(minor)
    definitions = yaml.safe_load_all((FOLDER / "custom.yaml").read_text())
    custom_versions = [
        custom for definition in definitions for custom in compile_definition(definition, dict)
    ]
    rows = [
        *(row for group in kinds.groups for row in group.resources),
        *(custom.row for custom in custom_versions),
    ]
    return Documents(rows, custom_versions, kinds.strategies, minor=minor)


HASHES = orjson.loads((FOLDER / "hashes.json").read_bytes())
"""Hashes of the documents' bytes, and of version 2 with the custom kinds of `custom.yaml`."""
BUILTIN, CUSTOM = recorded_document("builtin"), recorded_document("custom")
DOCUMENTS = Documents(ROWS, strategies=NEWEST.strategies)
WITH_CUSTOMS = documents_of_customs()
OLDER_HASHES = orjson.loads((FOLDER / "older_hashes.json").read_bytes())
OLDER = {minor: documents_of_customs(minor) for minor in OLDER_HASHES}
OF_V2 = "v2 with custom kinds"


@pytest.mark.parametrize("folder", sorted(BUILTIN.keys() - {"v2"}))
def test_openapi_v3_document_matches_recording(folder):
    assert not differences(BUILTIN[folder], orjson.loads(DOCUMENTS.v3(folder).body))


def test_openapi_v2_document_matches_recording():
    assert not differences(BUILTIN["v2"], orjson.loads(DOCUMENTS.v2().body))


def test_openapi_index_lists_recorded_documents():
    assert sorted(BUILTIN.keys() - {"v2"}) == list(DOCUMENTS.folders)
    assert CUSTOM.keys() - {"v2"} == {*WITH_CUSTOMS.folders} - {*DOCUMENTS.folders}


@pytest.mark.parametrize("folder", sorted(CUSTOM.keys() - {"v2"}))
def test_custom_kind_in_openapi_v3_matches_recording(folder):
    assert not differences(CUSTOM[folder], orjson.loads(WITH_CUSTOMS.v3(folder).body))


def test_custom_kind_in_openapi_v2_matches_recording():
    document = orjson.loads(WITH_CUSTOMS.v2().body)
    found = {
        part: {name: of for name, of in document[part].items() if "example" in name}
        for part in ("paths", "definitions")
    }
    assert not differences(CUSTOM["v2"], found)


@pytest.mark.parametrize("folder", sorted(HASHES.keys() - {OF_V2}))
def test_openapi_v3_document_has_upstreams_bytes(folder):
    assert WITH_CUSTOMS.v3(folder).digest == HASHES[folder]


def test_openapi_v2_document_has_upstreams_bytes():
    assert WITH_CUSTOMS.v2().digest == HASHES[OF_V2]


@pytest.mark.parametrize(
    ("minor", "folder"), [(minor, folder) for minor, hashes in OLDER_HASHES.items() for folder in hashes]
)
def test_openapi_document_of_older_minor_has_upstreams_bytes(minor, folder):
    document = OLDER[minor].v2() if folder == OF_V2 else OLDER[minor].v3(folder)
    assert document.digest == OLDER_HASHES[minor][folder]
