"""Hashes against those that upstream's own code gave the same templates: `tools/podtemplate` made the file."""

from pathlib import Path

import orjson
import pytest

from mockube.controller_manager.workloads.template_hash import safe_encode, template_hash

SAMPLES = [
    orjson.loads(line) for line in (Path(__file__).parent / "template_hashes.jsonl").read_bytes().splitlines()
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["hash"])
def test_a_template_has_upstreams_hash(sample):
    assert template_hash(sample["template"], sample.get("collisionCount")) == sample["hash"]


def test_a_collision_gives_another_hash_and_a_count_of_none_is_a_count():
    template = SAMPLES[0]["template"]
    assert len({template_hash(template, count) for count in (None, 0, 1, 2)}) == 4


def test_hashes_are_spelled_without_vowels():
    assert safe_encode("0123456789") == "456789bcdf"
