"""The conversions that a write needs are cached until it ends."""

from types import SimpleNamespace

import pytest

from mockube.apiserver.customresources.conversion_webhook import WebhookConversion
from mockube.apiserver.kinds.kind import NotConverted


class CountingConverter:
    def __init__(self, versions):
        self.custom_versions = dict.fromkeys(versions)
        self.calls = 0

    async def convert(self, trees, api_version):
        self.calls += 1
        return [tree | {"apiVersion": api_version} for tree in trees]


async def test_write_that_needs_conversions_to_many_versions_ends():
    versions = [f"g/v{number}" for number in range(50)]
    converter = CountingConverter(versions)
    conversion = WebhookConversion(converter, SimpleNamespace(row=SimpleNamespace(api_version="g/v0")))
    trees = [{"apiVersion": "g/v0", "kind": "A", "spec": {"a": number}} for number in range(4)]

    def write():
        return [conversion.at_version(tree, version) for tree in trees for version in versions]

    for _ in range(1000):
        try:
            assert len(write()) == 200
            break
        except NotConverted as needed:
            await needed.prepare()
    else:
        pytest.fail("the write needs a conversion again")
    assert converter.calls == 200
