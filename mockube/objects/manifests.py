"""The objects that a user passes to a method: as dicts, models, texts, files, folders or kustomizations.

A str is a text if it contains a line break, `{` or `: `. Any other str is the path of a file or a folder.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery.yaml_decode import load_all
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.clients import NotInstalled
from mockube.component_base.printable import printable
from mockube.importing.documents import is_list, type_name, with_kind
from mockube.importing.files import NotAFile, read_file

from .errors import InvalidType, InvalidValue, NoSuchFile
from .trees import Model, Object, Objects, encode_text, is_model, to_tree

Manifests: TypeAlias = "str | bytes | os.PathLike[str] | Mapping[str, Any] | Model | Iterable[Manifests]"
"""Objects: a dict, a model of a client library, YAML or JSON as a text, the path of a file or of a folder, or several of these."""

SUFFIXES: Final = (".yaml", ".yml", ".json")
"""The files of a folder that are read, as by kubectl."""
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The file of a kustomization, of which a folder has one."""
MAX_LIST_DEPTH: Final = 50
"""The depth of lists of lists. A deeper one contains itself."""
KUSTOMIZE_SECONDS: Final = 60.0
_TEXT_MARKS: Final = ("\n", "{", ": ")


def read_objects(manifests: Manifests) -> Objects:
    """Return the objects of manifests; raise InvalidType, InvalidValue or NoSuchFile for others."""
    return [*_objects(manifests, 0)]


def is_text(value: str) -> bool:
    """Return whether a str is a text, and not a path."""
    return any(mark in value for mark in _TEXT_MARKS)


def _objects(manifests: Any, depth: int) -> Iterator[Object]:
    if depth > MAX_LIST_DEPTH:
        raise InvalidValue(f"the list is nested more than {MAX_LIST_DEPTH} times")
    match manifests:
        case bytes() | bytearray() | memoryview():
            yield from _text_objects(bytes(manifests), "the text")
        case str() if is_text(manifests):
            yield from _text_objects(encode_text(manifests, "the text"), "the text")
        case str() | os.PathLike():
            yield from _path_objects(_path(manifests))
        case Mapping():
            yield from _tree_objects(_convert(manifests), "the dict")
        case _ if is_model(manifests):
            yield from _tree_objects(_convert(manifests), f"the {type(manifests).__name__}")
        case _ if hasattr(manifests, "read"):  # an open file, which would yield its lines
            yield from _objects(_text_of(manifests), depth + 1)
        case Iterable():
            for item in manifests:
                yield from _objects(item, depth + 1)
        case _:
            raise InvalidType(
                "objects must be a dict, a list of dicts, YAML or JSON as a str, or a path,"
                f" not {type(manifests).__name__}"
            )


def _text_of(file: Any) -> bytes:
    text = file.read()
    return encode_text(text, "the file") if isinstance(text, str) else bytes(text)


def _convert(value: Any) -> Any:
    """Return a dict or a model as a tree. An error names the object."""
    try:
        return to_tree(value)
    except (InvalidType, InvalidValue) as error:
        fields = value if isinstance(value, Mapping) else {}
        metadata = fields.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        subject = printable(f"{fields.get('kind', type(value).__name__)} {name}".strip())
        raise type(error)(f"{subject}: {error}") from error


def _path(value: "str | os.PathLike[str]") -> Path:
    if not value:
        raise InvalidValue("the text is empty: pass YAML or JSON, or the path of a file or folder")
    try:
        path = Path(value).expanduser()
    except RuntimeError as error:  # there is no user of this name
        raise InvalidValue(f'"{value}" is not a path: {error}') from error
    if "://" in str(value):
        raise InvalidValue(f'"{value}" is a URL: download it, and pass the text or the path of the file')
    try:
        exists = path.exists()
    except OSError as error:
        raise InvalidValue(f'"{str(value)[:80]}" is not a path: {error.strerror}') from error
    if not exists:
        place = "" if path.is_absolute() else f" in {Path.cwd()}"
        hint = 'a manifest that is no file has a line break, "{" or ": "'
        if str(value).count("/") == 1 and not path.suffix:
            hint = f'a method takes "{value}" alone as the kind and the name of an object, but not in a list'
        raise NoSuchFile(f'there is no file or folder "{value}"{place}; {hint}')
    return path


def _path_objects(path: Path) -> Iterator[Object]:
    if path.is_dir():
        yield from _folder_objects(path)
    elif path.name in KUSTOMIZATIONS:
        yield from _kustomization_objects(path.parent)
    else:
        yield from _text_objects(_read(path, may_be_pipe=True), str(path))


def _read(path: Path, *, may_be_pipe: bool = False) -> bytes:
    try:
        return read_file(path, may_be_pipe=may_be_pipe)
    except NotAFile as error:
        raise InvalidValue(f"{path}: {error.strerror}") from error
    except FileNotFoundError as error:
        raise NoSuchFile(f"{path} is a link to a file that does not exist") from error


def _folder_objects(folder: Path) -> Iterator[Object]:
    """Yield the objects of a kustomization, or of the files in a folder, without those in folders below."""
    if any((folder / name).is_file() for name in KUSTOMIZATIONS):
        yield from _kustomization_objects(folder)
        return
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and not path.is_dir())
    if not files:
        raise InvalidValue(f"the folder {folder} has no files that end with {', '.join(SUFFIXES)}")
    for file in files:
        yield from _text_objects(_read(file), str(file))


def _kustomization_objects(folder: Path) -> Iterator[Object]:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise NotInstalled(
            f"{folder} has a kustomization, which kubectl builds, and kubectl is not installed:"
            " https://kubernetes.io/docs/tasks/tools"
        )
    command = [kubectl, "kustomize", str(folder)]
    try:
        result = subprocess.run(command, capture_output=True, check=False, timeout=KUSTOMIZE_SECONDS)  # noqa: S603 - no shell
    except subprocess.TimeoutExpired as error:
        raise InvalidValue(f"`{' '.join(command)}` did not end within {KUSTOMIZE_SECONDS:g} s") from error
    if result.returncode:
        raise InvalidValue(
            f"`kubectl kustomize {folder}` failed: {result.stderr.decode(errors='replace').strip()}"
        )
    yield from _text_objects(result.stdout, f"the kustomization {folder}")


def _text_objects(text: bytes, source: str) -> Iterator[Object]:
    """Yield the objects of all documents of a text; empty documents are skipped."""
    is_empty = True
    for number, document in enumerate(_documents(text, source), 1):
        if document is not None:
            is_empty = False
            name = source if number == 1 else f"document {number} of {source}"
            if isinstance(document, list):
                yield from _list_objects(document, name)
            else:
                yield from _tree_objects(document, name)
    if is_empty:
        raise InvalidValue(f"{source} contains no objects")


def _documents(text: bytes, source: str) -> Iterator[Any]:
    if text.lstrip()[:1] in {b"{", b"["}:
        try:
            yield orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # YAML in braces, or several documents
        else:
            return
    try:
        for document in load_all(text):
            yield document.tree
    except YamlError as error:
        problem = str(error).removeprefix("error converting YAML to JSON: yaml: ")
        raise InvalidValue(f"{source} is not YAML: {problem}") from error


def _list_objects(items: Iterable[Any], source: str) -> Iterator[Object]:
    for number, item in enumerate(items, 1):
        yield from _tree_objects(item, f"item {number} of {source}")


def _tree_objects(tree: Any, source: str) -> Iterator[Object]:
    """Yield an object, or the items of a list of any kind."""
    if not isinstance(tree, dict):
        raise InvalidValue(f"{source} is not an object: it is {type_name(tree)}")
    if "items" in tree and not is_list(tree) and is_list({**tree, "items": []}):
        raise InvalidValue(f"items of {source} must be a list: {_excerpt(tree)}")
    if is_list(tree):
        yield from _list_objects([with_kind(item, tree) for item in tree["items"] or ()], source)
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(tree.get(field), str) or not tree[field]:
            raise InvalidValue(f"{source} has no {field}: {_excerpt(tree)}")
    if not isinstance(tree.get("metadata") or {}, dict):
        raise InvalidValue(f"metadata of {source} must be an object: {_excerpt(tree)}")
    yield tree


def _excerpt(tree: Object) -> str:
    text = printable(orjson.dumps(tree, default=str).decode())
    return f"{text[:100]}..." if len(text) > 100 else text
