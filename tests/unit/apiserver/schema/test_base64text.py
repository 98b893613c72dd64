import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.schema import base64text
from mockube.apiserver.schema.base64text import Base64Error


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param("", b"", id="empty"),
        pytest.param("YWJj", b"abc", id="no padding"),
        pytest.param("YWI=", b"ab", id="one"),
        pytest.param("YQ==", b"a", id="two"),
        pytest.param("YR==", b"a", id="bits to spare"),
        pytest.param("YW\nJj\r\n", b"abc", id="line ends"),
        pytest.param("YQ=\n=\n", b"a", id="line ends in the padding"),
    ],
)
def test_base64_accepted_by_go_is_decoded(text, data):
    assert base64text.canonical(text) == base64.b64encode(data).decode()


# The offsets are those that Go's decoder reports.
@pytest.mark.parametrize(
    ("text", "offset"),
    [
        pytest.param("!", 0, id="at once"),
        pytest.param("YWJj!", 4, id="after a quantum"),
        pytest.param("Y", 0, id="one trailing character"),
        pytest.param("YWJjYW", 4, id="two trailing characters"),
        pytest.param("YW J", 2, id="a space"),
        pytest.param("é", 0, id="not of this alphabet"),
        pytest.param("=", 0, id="padding only"),
        pytest.param("Y===", 1, id="padding too early"),
        pytest.param("YQ=", 3, id="padding that ends"),
        pytest.param("YQ=\n", 4, id="padding that ends in a line end"),
        pytest.param("YQ=x", 2, id="padding that breaks off"),
        pytest.param("YQ==x", 4, id="more behind the padding"),
        pytest.param("YWI==", 4, id="too much padding"),
        pytest.param("YWJj=", 4, id="padding of a whole quantum"),
        pytest.param("YWJj====", 4, id="a quantum of padding"),
        pytest.param("\nYQ=\nx", 4, id="line ends count"),
    ],
)
def test_base64_refused_by_go_is_refused(text, offset):
    with pytest.raises(Base64Error, match=f"^illegal base64 data at input byte {offset}$"):
        base64text.canonical(text)


@given(st.binary())
def test_encoded_base64_is_canonical(data):
    text = base64text.encode(data)
    assert base64text.canonical(text) == text
    assert base64.b64decode(text) == data
