"""The number and size of warning headers are limited."""

import pytest

from mockube.apiserver.request.response import ALL_WARNINGS_SIZE, WARNING_SIZE, fit_warnings, warning_headers


def texts(count, length):
    return [str(number).ljust(length, "x") for number in range(count)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["a", "b", "a"], ["a", "b"], id="each once"),
        pytest.param(["", "a\x00", "a\u0085", "é"], ["é"], id="characters invalid in headers"),
        pytest.param(texts(4, 1024), texts(4, 1024), id="as much as fits"),
        pytest.param(
            texts(5, 1024), [text[:WARNING_SIZE] for text in texts(5, 1024)], id="long warnings are truncated"
        ),
        pytest.param(texts(20_000, 100), texts(41, 100), id="warnings beyond the total size are omitted"),
        pytest.param(["x" * 5000], ["x" * WARNING_SIZE], id="one that is too long"),
    ],
)
def test_warnings_are_limited_and_truncated(given, expected):
    assert list(fit_warnings(given)) == expected


def test_total_size_of_truncated_warnings_is_limited():
    assert len(fit_warnings(texts(100, 1000))) == ALL_WARNINGS_SIZE // WARNING_SIZE


def test_warning_is_quoted():
    assert warning_headers(['a "b" \\']) == [b'Warning: 299 - "a \\"b\\" \\\\"\r\n']
