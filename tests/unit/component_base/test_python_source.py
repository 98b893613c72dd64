"""Parsing of Python source."""

import ast
import gc

import pytest

from mockube.component_base.python_source import parse


class ParsingGarbage:
    """An object that only the garbage collector ends, and that parses source then."""

    ended = False

    def __init__(self):
        self.cycle = self

    def __del__(self):
        ast.parse("a + b")
        ParsingGarbage.ended = True


@pytest.fixture
def early_collections():
    thresholds = gc.get_threshold()
    gc.collect()
    gc.set_threshold(100)
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.thorough
@pytest.mark.usefixtures("early_collections")
def test_garbage_that_parses_source_does_not_disturb():
    ParsingGarbage()
    tree = parse("x = [1 + 2]\n" * 1000)
    assert (len(tree.body), ParsingGarbage.ended) == (1000, True)


def test_invalid_source_is_a_syntax_error():
    with pytest.raises(SyntaxError, match="never closed") as failure:
        parse("(", "script.py")
    assert failure.value.filename == "script.py"
