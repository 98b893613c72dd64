"""Read the value of `--simulate-nodes`."""

from argparse import ArgumentTypeError

from .pool import NodePools, PoolError, is_number, plain_nodes, read_count


def read_nodes(text: str) -> NodePools:
    """Read a number, or pools in any form; raise ArgumentTypeError if the text is neither."""
    try:
        if is_number(text):
            return plain_nodes(read_count(text))
        from .reading import read_value  # noqa: PLC0415 - most clusters have a plain number

        return read_value(text)
    except PoolError as error:
        raise ArgumentTypeError(str(error)) from error
