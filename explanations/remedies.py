"""Remedies that change an object: the command for a user, and the request that it sends, by which the server tries it first."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

from .commands import about, kind_argument, kubectl
from .explanation import Origin, Remedy
from .facts import DryRun, FieldPath, Member

STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json-patch+json"
_TYPES: Final = {MERGE: ("--type=merge",), JSON: ("--type=json",), STRATEGIC: ()}


def _request(obj: ReadOnlyTree, verb: str, body: Any = None, **fields: str) -> DryRun:
    return DryRun(
        verb=verb,
        kind=meta.kind(obj),
        group=meta.api_version(obj).rpartition("/")[0],
        namespace=meta.namespace(obj),
        name=meta.name(obj),
        body="" if body is None else orjson.dumps(body).decode(),
        **fields,
    )


def patched(
    text: str,
    obj: ReadOnlyTree,
    patch: Any,
    *,
    media_type: str = STRATEGIC,
    subresource: str = "",
    command: str = "",
) -> Remedy:
    """Return the remedy of a patch; `command` is a shorter one that sends the same."""
    request = _request(obj, "patch", patch, media_type=media_type, subresource=subresource)
    of_subresource = (f"--subresource={subresource}",) if subresource else ()
    written = about(obj, "patch", *_TYPES[media_type], *of_subresource, "-p", request.body)
    return Remedy(text=text, command=command or written, request=request)


def scaled(text: str, obj: ReadOnlyTree, replicas: int) -> Remedy:
    patch = {"spec": {"replicas": replicas}}
    command = about(obj, "scale", f"--replicas={replicas}")
    return patched(text, obj, patch, media_type=MERGE, subresource="scale", command=command)


def deleted(text: str, obj: ReadOnlyTree, *arguments: str) -> Remedy:
    """Return the remedy of a deletion; the arguments are about how long kubectl waits."""
    return Remedy(text=text, command=about(obj, "delete", *arguments), request=_request(obj, "delete"))


def labelled(text: str, obj: ReadOnlyTree, labels: Mapping[str, str]) -> Remedy:
    arguments = [f"{key}={value}" for key, value in labels.items()]
    command = kubectl(
        "label",
        kind_argument(obj),
        meta.name(obj),
        *arguments,
        "--overwrite",
        namespace=meta.namespace(obj),
    )
    return patched(text, obj, {"metadata": {"labels": {**labels}}}, media_type=MERGE, command=command)


def uncordoned(text: str, node: ReadOnlyTree) -> Remedy:
    command = kubectl("uncordon", meta.name(node))
    return patched(text, node, {"spec": {"unschedulable": None}}, media_type=MERGE, command=command)


def untainted(text: str, node: ReadOnlyTree, taint: ReadOnlyTree) -> Remedy:
    taints = (node.get("spec") or {}).get("taints") or ()
    left = [each for each in taints if (each["key"], each["effect"]) != (taint["key"], taint["effect"])]
    command = kubectl("taint", "nodes", meta.name(node), f"{taint['key']}:{taint['effect']}-")
    return patched(text, node, {"spec": {"taints": left}}, media_type=MERGE, command=command)


def selecting(text: str, service: ReadOnlyTree, selector: Mapping[str, str]) -> Remedy:
    """Return the remedy of another selector of a Service."""
    old = dict.fromkeys(service["spec"].get("selector") or ())
    arguments = ",".join(f"{key}={value}" for key, value in selector.items())
    return patched(
        text,
        service,
        {"spec": {"selector": old | {**selector}}},
        media_type=MERGE,
        command=about(service, "set selector", arguments).replace("service/", "service ", 1),
    )


def created(text: str, obj: ReadOnlyTree, *arguments: str) -> Remedy:
    """Return the remedy of a new object; the arguments are those of `kubectl create` that make it."""
    return Remedy(
        text=text,
        command=kubectl("create", *arguments, namespace=meta.namespace(obj)),
        request=_request(obj, "create", obj),
    )


def approved(text: str, request: ReadOnlyTree, outcome: str) -> Remedy:
    """Return the remedy of an approved, or a denied, CertificateSigningRequest."""
    verb = {"Approved": "approve", "Denied": "deny"}[outcome]
    condition = {"type": outcome, "status": "True", "reason": f"Kubectl{verb.title()}"}
    patch = {"status": {"conditions": [condition]}}
    command = kubectl("certificate", verb, meta.name(request))
    return patched(text, request, patch, subresource="approval", command=command)


def restored(text: str, origin: Origin, before: Any, after: Any) -> Remedy:
    """Return the remedy that gives a field the value that it had; None if it was not set."""
    named, value = origin.object, _merging(before, after)
    has_member = False
    for step in reversed(origin.path):
        if isinstance(step, Member):
            has_member = True
            value = [{"name": step.name, **(value if isinstance(value, dict) else {})}]
        else:
            value = {step: value}
    obj = {
        "apiVersion": named.api_version,
        "kind": named.kind,
        "metadata": {"name": named.name, "namespace": named.namespace},
    }
    return patched(text, obj, value, media_type=STRATEGIC if has_member else MERGE)


def _merging(before: Any, after: Any) -> Any:
    """Return what a patch that merges maps has to have for a value to become what it was."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return before
    return dict.fromkeys(after) | {key: _merging(value, after.get(key)) for key, value in before.items()}


def is_restorable(path: FieldPath, before: Any, after: Any) -> bool:
    """Return whether `restored` gives a field exactly the value that it had: a strategic patch merges lists of maps."""
    is_merged = any(isinstance(step, Member) for step in path)
    if not is_merged or before is None or after is None:
        return True
    if isinstance(before, dict) and isinstance(after, dict):
        return all(is_restorable(path, before.get(key), after.get(key)) for key in before | after)
    items = [item for value in (before, after) if isinstance(value, list) for item in value]
    return before == after or not any(isinstance(item, dict) for item in items)


def template_patch(owner: ReadOnlyTree, pod_spec: Mapping[str, Any]) -> Any:
    """Return the patch of an object by what changes in the spec of the pods that it makes."""
    template = {"template": {"spec": pod_spec}}
    match meta.kind(owner):
        case "Pod":
            return {"spec": pod_spec}
        case "CronJob":
            return {"spec": {"jobTemplate": {"spec": template}}}
        case _:
            return {"spec": template}
