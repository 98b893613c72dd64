"""The commands of kubectl that read and write objects."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.container_runtime.simulated.shell.options import ProgramOptions
from mockube.container_runtime.simulated.shell.process import Output, Process, Run, write_text

from . import output
from .client import TABLE, ApiClient, ServerError
from .connection import KubectlError
from .manifests import created_object, job_of, read_manifests
from .selection import (
    SelectedObjects,
    fetch,
    is_on,
    is_true_by_default,
    namespace_of,
    object_path,
    select,
    selects_some,
    wait_gone,
)

_APPLY: Final = "application/apply-patch+yaml"
_PATCHES: Final = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}
_MANAGER: Final = "kubectl"
_POLL_SECONDS: Final = 1.0


def get(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    text = options.get("output")
    output.check_format(text)
    selections = yield from select(process, client, options, words)
    ignores_missing = is_on(options, "ignore-not-found")
    if text in ("", "wide"):
        return (yield from _print_tables(client, options, selections, ignores_missing=ignores_missing))
    objects = list[dict[str, Any]]()
    for selection in selections:
        objects += yield from fetch(client, options, selection, ignores_missing=ignores_missing)
    is_list = not all(selection.names for selection in selections) or len(objects) != 1
    if objects or not ignores_missing:
        yield write_text(output.render(selections[0].resource, objects, text, is_list=is_list))
    return 0


def _print_tables(
    client: ApiClient,
    options: ProgramOptions,
    selections: Sequence[SelectedObjects],
    *,
    ignores_missing: bool,
) -> Run:
    rows, has_prefix = 0, len({selection.resource for selection in selections}) > 1
    for selection in selections:
        query = {"labelSelector": options.get("selector"), "fieldSelector": options.get("field-selector")}
        header = not is_on(options, "no-headers")
        for name in selection.names or ("",):
            path = selection.resource.path(selection.namespace, name)
            try:
                table = yield from client.send("GET", path, query=None if name else query, accept=TABLE)
            except ServerError as error:
                if not (ignores_missing and error.reason == "NotFound"):
                    raise
                continue
            rows += len(table.get("rows") or ())
            if table.get("rows"):
                prefix = f"{selection.resource.title}/" if has_prefix else ""
                is_wide = options.get("output") == "wide"
                yield write_text(output.table_lines(table, is_wide=is_wide, has_header=header, prefix=prefix))
                header = False
    if not rows and not ignores_missing:
        scope = f" in {client.namespace} namespace" if any(item.namespace for item in selections) else ""
        yield Output(2, f"No resources found{scope}.\n".encode())
    return 0


def create(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    output.check_format(options.get("output"))
    if "filename" in options:
        objects = yield from read_manifests(process, options)
    elif words[:1] == ["job"] and "from" in options and len(words) == 2:
        selections = yield from select(process, client, ProgramOptions(), [options.get("from")])
        cron_jobs = yield from fetch(client, options, selections[0])
        objects = [job_of(cron_jobs[0], words[1])]
    else:
        objects = [created_object(process, options, list(words))]
    if options.get("dry-run") == "client":
        return (yield from _print_unsent(options, objects))
    source = "STDIN" if options.get("filename") == "-" else options.get("filename")
    for tree in objects:
        resource = yield from client.resource_of_kind(tree["apiVersion"], tree["kind"])
        namespace = namespace_of(client, options, resource, tree)
        query = {"fieldManager": f"{_MANAGER}-create", "dryRun": "All" if _is_server_dry_run(options) else ""}
        try:
            created = yield from client.send("POST", resource.path(namespace), query=query, body=tree)
        except ServerError as error:
            action = f'error when creating "{source}"' if source else "failed to create"
            raise KubectlError(
                error.describe(action) if source else _without_source(error, resource.singular)
            ) from None
        yield from _report(
            options, SelectedObjects(resource=resource, namespace=namespace), created, "created"
        )
    return 0


def _without_source(error: ServerError, kind: str) -> str:
    if error.reason == "Invalid":
        return error.describe()
    return f"error: failed to create {kind}: {error.text}"


def _is_server_dry_run(options: ProgramOptions) -> bool:
    return options.get("dry-run") == "server"


def _print_unsent(options: ProgramOptions, objects: Sequence[ReadOnlyTree]) -> Run:
    text = options.get("output")
    for index, tree in enumerate(objects):
        if text == "yaml":
            yield write_text(("---\n" if index else "") + output.to_yaml(tree))
        elif text == "json":
            yield write_text(output.to_json(tree))
        else:
            kind = f"{tree['kind'].lower()}/{tree['metadata']['name']}"
            yield write_text(f"{kind}\n" if text == "name" else f"{kind} created (dry run)\n")
    return 0


def _report(options: ProgramOptions, selection: SelectedObjects, tree: ReadOnlyTree, verb: str) -> Run:
    """Print the result of a write: a sentence, or the object in a format."""
    text = options.get("output")
    name = output.reference(selection.resource, meta.name(tree))
    if text:
        yield write_text(output.render(selection.resource, [tree], text, is_list=False))
    else:
        suffix = " (server dry run)" if _is_server_dry_run(options) else ""
        yield write_text(f"{name} {verb}{suffix}\n")
    return 0


def apply(process: Process, client: ApiClient, options: ProgramOptions, _: Sequence[str]) -> Run:
    """Apply manifests. The server merges them, as with --server-side, so that no annotation stores the last version."""
    output.check_format(options.get("output"))
    objects = yield from read_manifests(process, options)
    if options.get("dry-run") == "client":
        return (yield from _print_unsent(options, objects))
    for tree in objects:
        resource = yield from client.resource_of_kind(tree["apiVersion"], tree["kind"])
        namespace = namespace_of(client, options, resource, tree)
        selection = SelectedObjects(resource=resource, namespace=namespace, names=(tree["metadata"]["name"],))
        before = yield from fetch(client, options, selection, ignores_missing=True)
        is_server_side = is_on(options, "server-side")
        query = {
            "fieldManager": options.get("field-manager") or _MANAGER,
            "force": "true" if not is_server_side or is_on(options, "force-conflicts") else "",
            "dryRun": "All" if _is_server_dry_run(options) else "",
        }
        path = resource.path(namespace, selection.names[0])
        after = yield from client.send("PATCH", path, query=query, body=tree, content_type=_APPLY)
        is_same = bool(before) and meta.resource_version(before[0]) == meta.resource_version(after)
        verb = "unchanged" if is_same else "configured" if before else "created"
        yield from _report(options, selection, after, "serverside-applied" if is_server_side else verb)
    return 0


def delete(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    selections = yield from select(process, client, options, words)
    ignores_missing = is_on(options, "ignore-not-found") or is_on(options, "all") or "selector" in options
    body = _delete_options(options)
    waits = list[tuple[SelectedObjects, ReadOnlyTree]]()
    for selection in selections:
        if not selects_some(options, selection):
            raise KubectlError("error: resource(s) were provided, but no name was specified")
        objects = yield from fetch(client, options, selection, ignores_missing=ignores_missing)
        for tree in objects:
            try:
                yield from client.send("DELETE", object_path(selection, tree), body=body)
            except ServerError as error:
                if error.reason != "NotFound":
                    raise
                continue
            yield write_text(_deletion_line(options, selection, tree))
            waits.append((selection, tree))
    if is_true_by_default(options, "wait") and not is_on(options, "force"):
        for deleted_from, deleted in waits:
            yield from wait_gone(client, object_path(deleted_from, deleted), meta.uid(deleted))
    return 0


def _deletion_line(options: ProgramOptions, selection: SelectedObjects, tree: ReadOnlyTree) -> str:
    name, namespace = meta.name(tree), meta.namespace(tree)
    if options.get("output") == "name":
        return f"{output.reference(selection.resource, name)}\n"
    deleted = "force deleted" if is_on(options, "force") else "deleted"
    origin = f" from {namespace} namespace" if namespace else ""
    return f'{selection.resource.title} "{name}" {deleted}{origin}\n'


def _delete_options(options: ProgramOptions) -> dict[str, Any]:
    policies = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}
    body: dict[str, Any] = {
        "propagationPolicy": policies.get(options.get("cascade", "background"), "Background")
    }
    grace = "0" if is_on(options, "force") else options.get("grace-period")
    if grace.lstrip("-").isdecimal() and int(grace) >= 0:
        body["gracePeriodSeconds"] = int(grace)
    return body


def patch(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    kind = options.get("type", "strategic")
    if kind not in _PATCHES:
        raise KubectlError(f"error: --type must be one of [json merge strategic], not {kind!r}")
    text = options.get("patch")
    if "patch-file" in options:
        text = process.host.files.read(process.path(options.get("patch-file"))).decode("utf-8", "replace")
    try:
        body = load(text.encode()).tree
    except YamlError as error:
        raise KubectlError(f"error: unable to parse {orjson.dumps(text).decode()}: {error}") from None
    selections = yield from select(process, client, options, words)
    for selection in selections:
        objects = yield from fetch(client, options, selection)
        for tree in objects:
            path = object_path(selection, tree)
            subresource = options.get("subresource")
            after = yield from client.send(
                "PATCH",
                f"{path}/{subresource}" if subresource else path,
                query={"fieldManager": f"{_MANAGER}-patch"},
                body=body,
                content_type=_PATCHES[kind],
            )
            is_same = meta.resource_version(tree) == meta.resource_version(after)
            yield from _report(options, selection, after, "patched (no change)" if is_same else "patched")
    return 0


def label(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    return (yield from _change_map(process, client, options, words, "labels"))


def annotate(process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    return (yield from _change_map(process, client, options, words, "annotations"))


def _change_map(
    process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str], field: str
) -> Run:
    changes: dict[str, str | None] = {}
    rest = list[str]()
    for word in words:
        key, equals, value = word.partition("=")
        if equals and rest:
            changes[key] = value
        elif word.endswith("-") and rest and "/" not in rest[0][:1] and len(rest) + ("/" in rest[0]) > 1:
            changes[word[:-1]] = None
        else:
            rest.append(word)
    if not changes:
        raise KubectlError(f"error: at least one {field[:-1]} update is required")
    selections = yield from select(process, client, options, rest)
    for selection in selections:
        if not selects_some(options, selection):
            raise KubectlError("error: one or more resources must be specified as <resource> <name>")
        objects = yield from fetch(client, options, selection)
        for tree in objects:
            present: ReadOnlyTree = tree["metadata"].get(field) or {}
            if not is_on(options, "overwrite"):
                _check_overwrite(present, changes)
            query = {"fieldManager": f"{_MANAGER}-{'label' if field == 'labels' else 'annotate'}"}
            after = yield from client.send(
                "PATCH",
                object_path(selection, tree),
                query=query,
                body={"metadata": {field: changes}},
                content_type=_PATCHES["merge"],
            )
            yield from _report(options, selection, after, _map_verb(field, present, changes))
    return 0


def _check_overwrite(present: ReadOnlyTree, changes: dict[str, str | None]) -> None:
    for key, value in changes.items():
        if value is not None and present.get(key, value) != value:
            problem = f"'{key}' already has a value ({present[key]}), and --overwrite is false"
            raise KubectlError(f"error: {problem}")


def _map_verb(field: str, present: ReadOnlyTree, changes: dict[str, str | None]) -> str:
    if field == "annotations":
        return "annotated"
    if all(value is None for value in changes.values()):
        return "unlabeled"
    return "not labeled" if all(present.get(key) == value for key, value in changes.items()) else "labeled"
