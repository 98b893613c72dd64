"""Template hashes match those of upstream's code, which `tools/podtemplate` recorded."""

from pathlib import Path

import orjson
import pytest

from mockube.apimachinery.schema import minors
from mockube.controller_manager.workloads.templates import safe_encode, template_hash

SAMPLES = [
    orjson.loads(line) for line in (Path(__file__).parent / "template_hashes.jsonl").read_bytes().splitlines()
]


@pytest.mark.parametrize("minor", minors.MINORS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_template_hash_is_that_of_upstreams_minor(sample, minor):
    hashed = template_hash(sample["template"], sample.get("collisionCount"), minor)
    assert hashed == sample["hashes"][minor]


def test_collision_count_changes_hash():
    template = SAMPLES[0]["template"]
    assert len({template_hash(template, count) for count in (None, 0, 1, 2)}) == 4


def test_hashes_have_no_vowels():
    assert safe_encode("0123456789") == "456789bcdf"
