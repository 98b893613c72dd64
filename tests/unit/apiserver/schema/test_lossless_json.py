"""JSON documents and patches keep number literals and the escapes in strings."""

import pytest

from mockube.apimachinery.patch import json_merge
from mockube.apiserver.schema import lossless_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{ "a": 2.0, "b": [1e3, -0] }', '{"a":2.0,"b":[1e3,-0]}'),
        (rb'{"a": "\u00e4", "b": "\u0061"}', r'{"a":"\u00e4","b":"\u0061"}'),
        ('{"a": "<&> \u2028"}'.encode(), r'{"a":"\u003c\u0026\u003e \u2028"}'),
        (b'{"a": null, "b": true, "c": {}, "d": []}', '{"a":null,"b":true,"c":{},"d":[]}'),
    ],
)
def test_document_keeps_number_literals(text, expected):
    assert lossless_json.dumps(lossless_json.loads(text)) == expected


def test_patch_keeps_number_literals():
    patched = json_merge.apply(
        lossless_json.loads(b'{"a":{"c":1,"b":"x"}}'), lossless_json.loads(rb'{"a":{"d":2.50,"b":"\u0079"}}')
    )
    assert lossless_json.dumps(patched) == r'{"a":{"b":"\u0079","c":1,"d":2.50}}'
