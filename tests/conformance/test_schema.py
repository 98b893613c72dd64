"""A real server's responses are in Go's form, and bodies that it could not decode get the same errors."""

import re

import orjson
import pytest

from mockube.apimachinery.schema import builtin
from mockube.apiserver.schema.decode import DecodeError, Decoder
from tests.support.recorded import recordings

SCHEMAS = builtin.load()
DECODER = Decoder()
RECORDER = builtin.load("1.36"), Decoder()
"""The types of the server that `protobuf.jsonl` was recorded with."""

REFUSED = re.compile(r'\S+ in version "[^"]+" cannot be handled as an? \S+: (?!converting )(.*)', re.DOTALL)
"""A body of another kind than the path's is decoded, and then refused because it cannot be converted."""

FIELD_WARNING = re.compile(r'"((?:unknown|duplicate) field .*)"')


def kind_of(tree, schemas=SCHEMAS):
    return (
        schemas.kind(str(tree.get("apiVersion")), str(tree.get("kind"))) if isinstance(tree, dict) else None
    )


@pytest.fixture(params=recordings.cases())
def case(request):
    return request.param


def assert_written_again(tree, schemas=SCHEMAS, decoder=DECODER):
    kind = kind_of(tree, schemas)
    if kind is not None:
        decoded = decoder.decode(kind, tree)
        assert decoded.strict == ()
        assert orjson.dumps(without_column_descriptions(decoded.tree)) == orjson.dumps(tree)


def without_column_descriptions(tree):
    """The recorder removes the descriptions of columns."""
    for column in tree.get("columnDefinitions", ()):
        del column["description"]
    return tree


def test_recorded_answers_are_encoded_unchanged(case):
    for _, response in recordings.steps(case):
        for tree in recordings.trees(response.get("body")):
            assert_written_again(recordings.filled_in(tree))


@pytest.mark.parametrize("untouched", recordings.cases("protobuf.jsonl"))
def test_unredacted_answers_are_encoded_unchanged(untouched):
    for tree in recordings.trees(untouched["json"]):
        assert_written_again(tree, *RECORDER)


def refusal(response):
    """Return the server's error about the request's body; nothing if it could decode it."""
    body = response.get("body")
    found = (
        REFUSED.fullmatch(body.get("message", ""))
        if isinstance(body, dict) and body.get("code") == 400
        else None
    )
    return found[1] if found else ""


def decoding(kind, text, *, validation):
    """Return the errors and warnings for a body."""
    try:
        strict = DECODER.decode(kind, orjson.loads(text), text=text).strict
    except DecodeError as error:
        return recordings.TIME.sub("<time>", str(error)), []
    if validation == "Strict" and strict:
        return f"strict decoding error: {', '.join(strict)}", []
    return "", list(strict) if validation == "Warn" else []


def bodies(case):
    """Yield each body that is decoded into a built-in type: of writes of whole objects."""
    for request, response in recordings.steps(case):
        text = request["raw"].encode() if "raw" in request else orjson.dumps(request.get("body"))
        text = text.replace(b"${ns}", b"<ns>")
        if request["method"] in ("POST", "PUT") and text.startswith(b"{"):
            kind = kind_of(orjson.loads(text))
            if kind is not None:
                yield kind, text, request, response


def test_decoding_errors_match_recording(case):
    for kind, text, request, response in bodies(case):
        validation = re.search(r"fieldValidation=(\w+)", request["path"])
        warnings = [FIELD_WARNING.fullmatch(warning) for warning in response.get("warnings", ())]
        warned = [found[1].replace('\\"', '"') for found in warnings if found]
        expected = refusal(response), warned
        assert decoding(kind, text, validation=validation[1] if validation else "Warn") == expected


def test_decoding_error_messages_are_recognised():
    """Otherwise the test above could pass without any case."""
    refused = [
        refusal(response)
        for parameter in recordings.cases("api/unknown-fields.jsonl")
        for _, response in recordings.steps(parameter.values[0])
    ]
    assert any(text.startswith("json: cannot unmarshal ") for text in refused)
    assert any(text.startswith("strict decoding error: ") for text in refused)
