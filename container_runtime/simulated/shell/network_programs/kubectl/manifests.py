"""The objects that kubectl creates: those of manifests, and those of `create configmap`, `create secret` and so on."""

import base64
from collections.abc import Iterator
from posixpath import basename, join
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.yaml_decode import load_all
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import ProgramOptions
from mockube.container_runtime.simulated.shell.process import Process, UnknownProgram, read_input
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .client import Work
from .connection import KubectlError

_EXTENSIONS: Final = (".yaml", ".yml", ".json")


def read_manifests(process: Process, options: ProgramOptions) -> Work[list[dict[str, Any]]]:
    """Return the objects in the files of -f; - is the standard input, and a folder is read without those in it."""
    objects = list[dict[str, Any]]()
    for name in (part for text in options.all("filename") for part in text.split(",")):
        if name.startswith(("http://", "https://")):
            raise UnknownProgram(f"kubectl -f {name}")
        content = yield from _read(process, name)
        for source, data in content:
            try:
                for document in load_all(data):
                    objects += _objects_of(document.tree, source)
            except YamlError as error:
                raise KubectlError(f"error: error parsing {source}: {error}") from None
    if not objects:
        raise KubectlError("error: no objects passed to apply")
    return objects


def _read(process: Process, name: str) -> Work[list[tuple[str, bytes]]]:
    if name == "-":
        data = bytearray()
        while len(data) < limits.MAX_MANIFESTS and (chunk := (yield from read_input(65536))):
            data += chunk
        return [("STDIN", bytes(data))]
    files, path = process.host.files, process.path(name)
    try:
        if not files.exists(path) and not files.unknown.may_exist(path):
            raise KubectlError(f'error: the path "{name}" does not exist')
        if not files.entry(path).is_directory:
            return [(name, files.read(path))]
        names = [child for child in files.children(path) if child.endswith(_EXTENSIONS)]
        return [(f"{name}/{child}", files.read(join(path, child))) for child in names]
    except FileError as error:
        raise KubectlError(f"error: open {name}: {str(error).lower()}") from None


def _objects_of(tree: Any, source: str) -> Iterator[dict[str, Any]]:
    if not tree:
        return
    if not isinstance(tree, dict) or not tree.get("apiVersion") or not tree.get("kind"):
        raise KubectlError(f'error: error validating "{source}": apiVersion and kind must be set')
    if tree["kind"].endswith("List") and isinstance(tree.get("items"), list):
        for item in tree["items"]:
            yield from _objects_of(item, source)
        return
    yield tree


def created_object(process: Process, options: ProgramOptions, words: list[str]) -> dict[str, Any]:
    """Return the object of a `create` command without files."""
    match words:
        case ["configmap" | "cm", name]:
            return _object("v1", "ConfigMap", name) | {"data": _text_data(process, options)}
        case ["secret", "generic", name]:
            data = {key: base64.b64encode(value).decode() for key, value in _data(process, options).items()}
            kind = options.get("type", "Opaque")
            return _object("v1", "Secret", name) | {"data": data, "type": kind}
        case ["secret", "tls", name]:
            files = {"tls.crt": options.get("cert"), "tls.key": options.get("key")}
            data = {key: base64.b64encode(_read_file(process, path)).decode() for key, path in files.items()}
            return _object("v1", "Secret", name) | {"data": data, "type": "kubernetes.io/tls"}
        case ["namespace" | "ns", name]:
            return _object("v1", "Namespace", name)
        case ["serviceaccount" | "sa", name]:
            return _object("v1", "ServiceAccount", name)
        case _:
            raise UnknownProgram(f"kubectl create {' '.join(words[:2])}".rstrip())


def job_of(cron_job: ReadOnlyTree, name: str) -> dict[str, Any]:
    """Return the Job of `create job NAME --from=cronjob/NAME`."""
    template = cron_job["spec"]["jobTemplate"]
    metadata = template.get("metadata") or {}
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": cron_job["metadata"]["name"],
        "uid": cron_job["metadata"]["uid"],
        "controller": True,
    }
    annotations = {**(metadata.get("annotations") or {}), "cronjob.kubernetes.io/instantiate": "manual"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": metadata.get("labels") or {},
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }


def _object(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _text_data(process: Process, options: ProgramOptions) -> dict[str, str]:
    return {key: value.decode("utf-8", "replace") for key, value in _data(process, options).items()}


def _data(process: Process, options: ProgramOptions) -> dict[str, bytes]:
    values = dict[str, bytes]()
    for text in options.all("from-literal"):
        key, equals, value = text.partition("=")
        if not equals:
            raise KubectlError(f"error: invalid literal source {text}, expected key=value")
        values[key] = value.encode()
    for text in options.all("from-file"):
        key, equals, path = text.partition("=")
        values |= _file_data(process, path if equals else text, key if equals else "")
    for path in options.all("from-env-file"):
        for line in _read_file(process, path).decode("utf-8", "replace").splitlines():
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith("#"):
                values[key] = value.encode()
    return values


def _file_data(process: Process, path: str, key: str) -> dict[str, bytes]:
    files, full_path = process.host.files, process.path(path)
    if not key and files.exists(full_path) and files.entry(full_path).is_directory:
        names = files.children(full_path)
        inner = [name for name in names if not files.entry(join(full_path, name)).is_directory]
        return {name: files.read(join(full_path, name)) for name in inner}
    return {key or basename(path): _read_file(process, path)}


def _read_file(process: Process, path: str) -> bytes:
    try:
        return process.host.files.read(process.path(path))
    except FileError as error:
        raise KubectlError(f"error: error reading {path}: {str(error).lower()}") from None
