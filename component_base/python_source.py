"""Parses Python source."""

import ast


def parse(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a module.

    Until 3.11.7 and 3.12.1, Python raises SystemError if the garbage collector runs meanwhile and what it ends parses source, too,
    such as the traceback of a task that has failed. The second attempt does not meet this garbage again.
    """
    try:
        return ast.parse(text, filename)
    except SystemError:
        return ast.parse(text, filename)
