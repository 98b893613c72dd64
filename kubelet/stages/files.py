"""The files with stages: those of the user, and those that come with mockube. `document` parses them."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from mockube.apimachinery.yaml_decode import load_all
from mockube.apimachinery.yaml_scalars import YamlError

from .document import Stage, stage_of
from .query import StageError

DEFAULTS: Final = Path(__file__).parent / "defaults"


def load_stages(files: Iterable[Path]) -> tuple[Stage, ...]:
    """Return the stages of the files, and mockube's own stages of each kind for which the files have none."""
    stages = [stage for file in files for stage in _read(file)]
    kinds = {stage.kind for stage in stages}
    return (*stages, *(stage for stage in _defaults() if stage.kind not in kinds))


def of_kind(kind: str, stages: Iterable[Stage]) -> list[Stage]:
    return [stage for stage in stages if stage.kind == kind]


@cache
def _defaults() -> Sequence[Stage]:
    return [stage for file in sorted(DEFAULTS.glob("*.yaml")) for stage in _read(file)]


def _read(file: Path) -> list[Stage]:
    try:
        documents = [tree for tree in _documents(file) if tree is not None]
        stages = [stage_of(tree) for tree in documents]
    except OSError as error:
        raise StageError(f"{file}: {error.strerror}") from error
    except YamlError as error:
        raise StageError(f"{file}: {error}") from error
    except StageError as error:
        raise StageError(f"{file}: {error}") from error
    return [stage for stage in stages if stage is not None]


def _documents(file: Path) -> list[Any]:
    """Return every document of the file, and the items of each List."""
    documents: list[Any] = []
    for loaded in load_all(file.read_bytes()):
        tree = loaded.tree
        is_list = isinstance(tree, dict) and isinstance(tree.get("items"), list)
        documents += tree["items"] if is_list else [tree]
    return documents
