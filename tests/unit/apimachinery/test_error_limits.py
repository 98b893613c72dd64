"""Errors are truncated to the maximum size of a response, with a count of what is omitted."""

import threading

import orjson
import pytest

from mockube.apimachinery import errors, gotext, status
from mockube.apimachinery.cancellation import Cancelled, cancelled_by
from mockube.apimachinery.errors import MAX_TEXT, MAX_VALUE_TEXT
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import MAX_STEP, ROOT

MEGA = 1024 * 1024
MANY = MAX_TEXT // 16
"""More errors than a response has room for."""
KIND = GroupKind("", "Pod")
PATH = ROOT.child("spec", "x")


def answer(*found, name="x"):
    return status.invalid(KIND, name, found).status()


def test_long_value_is_truncated_with_its_length():
    refusal = answer(errors.invalid(PATH, "y" * 3 * MEGA, "wrong"))
    left = f'"... ({3 * MEGA - MAX_VALUE_TEXT} more characters): wrong'
    assert refusal["message"].endswith(left)
    assert refusal["details"]["causes"][0]["message"].endswith(left)
    assert len(orjson.dumps(refusal)) < 3 * MAX_VALUE_TEXT


def test_value_at_limit_is_not_truncated():
    value = "y" * MAX_VALUE_TEXT
    assert answer(errors.invalid(PATH, value, ""))["message"].endswith(f'"{value}"')


def test_large_object_is_truncated():
    body = errors.invalid(PATH, [{"a": "b" * 10}] * MEGA, "wrong").body()
    assert len(body) < MAX_VALUE_TEXT + 100
    assert body.startswith('Invalid value: [{"a":"bbbbbbbbbb"},{"a"')
    assert body.endswith("...: wrong")


def test_small_object_is_not_truncated():
    value = {"a": [1, 1.5, None, True, "<"], "b": {}, "c": []}
    assert gotext.marshal_prefix(value, 1000) == gotext.marshal(value)


def test_errors_beyond_limit_are_counted():
    found = [errors.required(PATH.index(index)) for index in range(MANY)]
    refusal = answer(*found)
    causes = refusal["details"]["causes"]
    left = MANY - len(causes) + 1
    assert causes[-1] == {"message": f"{left} more errors"}
    assert refusal["message"].endswith(f", {left} more errors]")
    assert sum(len(cause["message"]) for cause in causes) < MAX_TEXT + 1000


def test_one_error_beyond_limit_is_singular():
    texts, left = errors.format_within_limit(["a" * MAX_TEXT, "b"], str)
    assert errors.join_messages(texts, left).endswith(", 1 more error]")


def test_long_key_in_path_is_truncated():
    assert str(PATH.key("k" * MEGA).child("name")) == f"spec.x[{'k' * (MAX_STEP - 1)}....name"


def test_long_name_is_truncated():
    assert len(orjson.dumps(answer(name="n" * MEGA))) < 10_000


def test_any_long_message_is_truncated():
    assert len(status.BadRequest("m" * 3 * MEGA).message) < status.MAX_MESSAGE + 100


def test_errors_of_a_request_that_is_over_stop_its_validation():
    request_is_over = threading.Event()
    with cancelled_by(request_is_over):
        errors.required(ROOT)
        request_is_over.set()
        with pytest.raises(Cancelled):
            errors.required(ROOT)
