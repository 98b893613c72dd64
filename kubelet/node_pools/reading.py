"""Read pools in every form: a number, text, YAML or JSON, a file, and what a program passes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from mockube.apimachinery.yaml_decode import load_all
from mockube.apimachinery.yaml_scalars import YamlError

from .document import decode_all
from .pool import NodePools, PoolError, check_total, is_number, plain_nodes, read_count
from .rules import complete
from .text import read_text

MAX_BYTES: Final = 1 << 20
_MAX_PATH: Final = 4096
_FILE_SUFFIXES: Final = (".yaml", ".yml", ".json")
PoolsValue = int | str | Path | Sequence[Mapping[str, Any]]
"""The value of an option in Python: what `--simulate-nodes` takes, or the list that a file contains."""


def read_value(value: PoolsValue) -> NodePools:
    """Read the value of a flag or of an option in Python; raise PoolError if it is invalid."""
    if isinstance(value, str):
        return read_file(Path(value)) if _is_path(value) else read_pools(value)
    if isinstance(value, Path):
        return read_file(value)
    if isinstance(value, int):
        if value < 0:
            raise PoolError(f"{value} is negative")
        return plain_nodes(check_total(value))
    documents = decode_all(value)
    return complete(documents, msgspec.json.encode(documents).decode())


def read_pools(text: str) -> NodePools:
    """Read a number, pools as text, or pools as YAML."""
    if len(text) > MAX_BYTES:
        raise PoolError(f"pools have more than {MAX_BYTES} bytes")
    if is_number(text.strip()):
        return plain_nodes(read_count(text.strip()))
    tree = _tree_of_yaml(text.encode(errors="surrogateescape")) if _is_document(text) else read_text(text)
    return complete(decode_all(tree), text)


def read_file(path: Path) -> NodePools:
    """Read a file of pools. The other processes of the cluster read the same file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise PoolError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        return complete(decode_all(_tree_of_yaml(data)), data.decode(), path=path)
    except PoolError as error:
        raise PoolError(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise PoolError(f"{path}: it is not UTF-8") from error


def _is_path(text: str) -> bool:
    is_one_word = not _is_document(text) and "=" not in text and len(text) <= _MAX_PATH
    return is_one_word and (text.endswith(_FILE_SUFFIXES) or "/" in text)


def _is_document(text: str) -> bool:
    """Return whether a text is YAML or JSON."""
    return text.lstrip().startswith(("[", "{", "- ", "-\n")) or "\n" in text.strip()


def _tree_of_yaml(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise PoolError(f"pools have more than {MAX_BYTES} bytes")
    try:
        documents = [*load_all(data)]
    except YamlError as error:
        raise PoolError(" ".join(str(error).split())) from error
    if len(documents) > 1:
        raise PoolError("all pools must be in one YAML document, as a list")
    if documents and documents[0].strict_errors:
        raise PoolError(" ".join(documents[0].strict_errors[0].split()))
    return documents[0].tree if documents else None
