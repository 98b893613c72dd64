"""Changes of objects on their way through upstream's internal types, even if their version stays the same.

Fields that say the same are made to agree, and what only clients write is taken up into what is stored.
"""

import base64
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from mockube.apimachinery import gotext, status
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import ANNOTATION_ROLLBACK_TO, ANNOTATION_TEMPLATE_GENERATION
from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler.conversion import (
    V1,
    V2,
    to_v1,
    to_v2,
    without_annotations,
)

Settle: TypeAlias = Callable[[Tree], None]
"""Changes a tree that may share its inner parts with others: they are replaced, never changed."""


class Unconvertible(status.BadRequest):
    """An object cannot be read into upstream's internal type. Patches and apply have other errors for the problem."""

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(f'{kind} in version "v1" cannot be handled as a {kind}: {problem}')
        self.problem = problem


def settle(api_version: str, kind: str, tree: Tree) -> None:
    """Make an object what it would be after it was read and written again by upstream's server."""
    for change in _TABLE.get((api_version, kind), ()):
        change(tree)


def _take_up_texts(secret: Tree) -> None:
    """Move `stringData` to `data`, which it overrides."""
    texts = secret.pop("stringData", None)
    if texts:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        secret["data"] = dict(sorted({**(secret.get("data") or {}), **encoded}.items()))


def _name_both_ways(section: str, single_field: str, list_field: str, wrap: str, tree: Tree) -> None:
    """Set both the single field and the list whose first item it is; the single field wins if they differ."""
    part = tree.get(section) or {}
    first, rest = part.get(single_field, ""), part.get(list_field) or []
    if rest and first in ("", _unwrap(rest[0], wrap)):
        first = _unwrap(rest[0], wrap)
    elif first:
        rest = [{wrap: first} if wrap else first]
    if first:
        tree[section] = part | {single_field: first, list_field: rest}


def _unwrap(element: object, wrap: str) -> object:
    return element.get(wrap, "") if wrap and isinstance(element, dict) else element


def _type_claims(stateful_set: Tree) -> None:
    """Templates of claims say that they are claims."""
    spec = stateful_set.get("spec") or {}
    if spec.get("volumeClaimTemplates"):
        typed = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
        claims = [typed | claim | typed for claim in spec["volumeClaimTemplates"]]
        stateful_set["spec"] = spec | {"volumeClaimTemplates": claims}


def _name_account(path: tuple[str, ...], tree: Tree) -> None:
    """Set `serviceAccountName` and its old name `serviceAccount` to the same value."""
    *parents, last = path
    outer = tree
    for step in parents:
        outer = outer.get(step) or {}
    spec = outer.get(last) or {}
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name and not spec.get("serviceAccountName") == spec.get("serviceAccount") == name:
        _replace(tree, path, spec | {"serviceAccountName": name, "serviceAccount": name})


def _end_soon(pod: Tree) -> None:
    """Set a negative grace period of a pod, but not of a template, to one second."""
    spec = pod.get("spec") or {}
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        pod["spec"] = spec | {"terminationGracePeriodSeconds": 1}


def _replace(tree: Tree, path: tuple[str, ...], value: Tree) -> None:
    step, *rest = path
    if not rest:
        tree[step] = value
        return
    tree[step] = dict(tree[step])
    _replace(tree[step], tuple(rest), value)


_IN_POD: Final = partial(_name_account, ("spec",))
_IN_TEMPLATE: Final = partial(_name_account, ("spec", "template", "spec"))


def _count_template(daemon_set: Tree) -> None:
    """The template's generation is a field of the internal type, which is always written: 0, if nothing was read."""
    metadata = daemon_set.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    text = annotations.get(ANNOTATION_TEMPLATE_GENERATION, "0")
    if annotations.get(ANNOTATION_TEMPLATE_GENERATION) != (number := _number("DaemonSet", text)):
        annotations = annotations | {ANNOTATION_TEMPLATE_GENERATION: number}
        daemon_set["metadata"] = metadata | {"annotations": annotations}


def _read_rollback(deployment: Tree) -> None:
    """The revision to go back to was a field once, and still has to be a number."""
    metadata = deployment.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    text = annotations.get(ANNOTATION_ROLLBACK_TO)
    if text is None:
        return
    others = {name: value for name, value in annotations.items() if name != ANNOTATION_ROLLBACK_TO}
    if text:
        about = f"failed to parse annotation[{ANNOTATION_ROLLBACK_TO}]={text} as int64: "
        others[ANNOTATION_ROLLBACK_TO] = _number("Deployment", text, about)
    deployment["metadata"] = metadata | {"annotations": others}
    if not others:
        deployment["metadata"].pop("annotations")


def _number(kind: str, text: str, about: str = "") -> str:
    """Return the text of a number as Go writes it, or refuse the object of that kind that has it."""
    try:
        return str(gotext.parse_int(text))
    except gotext.NumberError as error:
        raise Unconvertible(kind, f"{about}{error}") from error


def _keep_in_annotations(autoscaler: Tree) -> None:
    """Decode the annotations of v1 and encode them again, which drops what cannot be decoded."""
    autoscaler.update(to_v1(to_v2(autoscaler)))


def _drop_annotations(autoscaler: Tree) -> None:
    autoscaler.update(without_annotations(autoscaler))


_TABLE: Final[Mapping[tuple[str, str], tuple[Settle, ...]]] = {
    ("v1", "Node"): (partial(_name_both_ways, "spec", "podCIDR", "podCIDRs", ""),),
    ("v1", "Pod"): (_IN_POD, _end_soon, partial(_name_both_ways, "status", "podIP", "podIPs", "ip")),
    ("v1", "PodTemplate"): (partial(_name_account, ("template", "spec")),),
    ("v1", "ReplicationController"): (_IN_TEMPLATE,),
    ("v1", "Secret"): (_take_up_texts,),
    ("apps/v1", "DaemonSet"): (_IN_TEMPLATE, _count_template),
    ("apps/v1", "Deployment"): (_IN_TEMPLATE, _read_rollback),
    ("apps/v1", "ReplicaSet"): (_IN_TEMPLATE,),
    ("apps/v1", "StatefulSet"): (_IN_TEMPLATE, _type_claims),
    (V1, "HorizontalPodAutoscaler"): (_keep_in_annotations,),
    (V2, "HorizontalPodAutoscaler"): (_drop_annotations,),
    ("batch/v1", "CronJob"): (partial(_name_account, ("spec", "jobTemplate", "spec", "template", "spec")),),
    ("batch/v1", "Job"): (_IN_TEMPLATE,),
}
