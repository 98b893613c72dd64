"""A command line that is read on behalf of a program: what it would tell a person of wrong flags is raised instead."""

import io
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import TypeVar

T = TypeVar("T")


def parse_flags(parse: Callable[[], T]) -> T:
    """ValueError with what it says as it ends."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return parse()
    except SystemExit as error:
        raise ValueError(said.getvalue().strip()) from error
