"""Scripts of Python that keep more than their container has memory for end it."""

import pytest

from mockube.extras.python import limits
from tests.support.ends_of_commands import end_of


def python(script):
    return {"name": "c", "image": "python:3.12", "command": ["python", "-c", script]}


@pytest.fixture
def few_elements(monkeypatch):
    monkeypatch.setattr(limits, "MAX_ELEMENTS", 10_000)


@pytest.mark.usefixtures("few_elements")
@pytest.mark.parametrize(
    "script",
    [
        "a=list(range(10**8))",
        "a=[i for i in range(10**8)]",
        "a=[]\nwhile True: a += [0]*10000",
        "a=[1]\nwhile True: a=a+a",
        "a=[]\nfor i in range(10**7): a += [i]*10000",
    ],
)
async def test_list_of_python_that_is_larger_than_the_memory(script):
    assert await end_of(python(script)) == (137, "OOMKilled")


@pytest.mark.thorough
@pytest.mark.usefixtures("few_elements")
@pytest.mark.parametrize(
    "script",
    [
        "a=list(range(2*10**4))",
        "while True: a=list(range(2*10**4))",
        "a=[]\nfor i in range(3): a += [i]*10000",
        "a=[]\nwhile len(a) < 30000: a += [1]*10000",
    ],
)
async def test_list_of_python_that_is_only_too_large_to_be_stored(script):
    assert await end_of(python(script), memory="1Gi") is None
