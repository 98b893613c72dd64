"""The subresource /binding, which sets the node of a pod once, and the legacy resource `bindings`."""

from datetime import datetime

from mockube.apimachinery import conditions, errors, gotext, meta, names, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import PODS, GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import CONDITION_POD_SCHEDULED
from mockube.apiserver.kinds.core.pod.strategy import drop_init_containers
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import (
    AdmissionAttributes,
    ObjectResult,
    Operation,
    RequestContext,
    write_options,
)
from mockube.apiserver.storage.journal import Author
from mockube.apiserver.storage.stored_object import canonical
from mockube.etcd.kv import Compare, Target, Txn

BINDING = GroupResource("", "pods/binding")

_TARGETS = ("", "Node")
_SCHEDULED = {"type": CONDITION_POD_SCHEDULED, "status": "True", "lastProbeTime": None}


async def create(registry: Registry, context: RequestContext) -> ObjectResult:
    options = write_options(context, "CreateOptions")
    binding, _ = await registry.begin(context, read_object, registry, context, options)
    metadata.match_namespace(binding, context)
    name = context.name or meta.name(binding)
    attributes = AdmissionAttributes(
        operation=Operation.CREATE, context=context, name=name, object=binding, dry_run=options.dry_run
    )
    await registry.admission.mutate(registry, attributes)
    assert attributes.object is not None
    binding = attributes.object
    if meta.name(binding) != name:
        raise status.BadRequest("name in URL does not match name in Binding object")
    field_errors = _check(binding, is_older=registry.is_before("1.37"))
    if field_errors:
        raise ApiError(errors.aggregate(field_errors))
    await registry.admission.validate(registry, attributes)
    author = context.author(metadata.manager_name(context, options))
    while not await _bind(registry, context.namespace, name, binding, author, dry_run=options.dry_run):
        pass
    return ObjectResult(code=201, tree=status.success(code=201))


def _check(binding: Tree, *, is_older: bool) -> list[FieldError]:
    """Check the target of a binding; before 1.37, its name may be no node's."""
    target, path = binding.get("target", {}), ROOT.child("target")
    field_errors = []
    if target.get("kind", "") not in _TARGETS:
        field_errors.append(errors.not_supported(path.child("kind"), target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        field_errors.append(errors.required(path.child("name")))
    elif not is_older and target.get("kind", "") in _TARGETS:
        field_errors += [
            errors.invalid(path.child("name"), target["name"], problem)
            for problem in names.check_dns1123_subdomain(target["name"])
        ]
    return field_errors


async def _bind(
    registry: Registry, namespace: str, name: str, binding: Tree, author: Author, *, dry_run: bool
) -> bool:
    """Store the binding; return False if a concurrent write changed the pod."""
    stored = await registry.get(registry.rows[PODS], namespace, name)
    pod = stored.tree()
    _check_preconditions(pod, binding, stored.key.decode())
    problem = _problem(pod)
    if problem:
        raise status.conflict(BINDING, name, f"pod {name} {problem}")
    if dry_run:
        return True
    seen = Compare(key=stored.key, target=Target.MOD, operand=stored.revision)
    put = registry.put(stored.key, canonical(_with_node(pod, binding, registry.clock.now())))
    return (await registry.commit(Txn(compare=(seen,), then=(put,)), author)).succeeded


def _check_preconditions(pod: Tree, binding: Tree, key: str) -> None:
    """Check the UID and resourceVersion of a binding, both optional, against the pod."""
    for field, display_name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        expected, actual = binding["metadata"].get(field, ""), pod["metadata"][field]
        if expected not in ("", actual):
            problem = f"Precondition failed: {display_name} in precondition: {expected}, {display_name} in object meta: {actual}"
            text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {problem}"
            raise status.conflict(PODS, meta.name(pod), text)


def _problem(pod: Tree) -> str:
    """Return why a pod cannot be bound; "" if it can."""
    spec = pod["spec"]
    if meta.is_deleting(pod):
        return "is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f"is already assigned to node {gotext.quote(spec['nodeName'])}"
    if spec.get("schedulingGates"):
        return "has non-empty .spec.schedulingGates"
    return ""


def _with_node(pod: Tree, binding: Tree, now: datetime) -> Tree:
    """Return the pod with its node and with the labels and annotations of the binding."""
    bound_pod = pod | {"spec": pod["spec"] | {"nodeName": binding["target"]["name"]}}
    bound_pod = meta.with_annotations(bound_pod, dict(meta.annotations(binding)))
    drop_init_containers(bound_pod)
    bound_pod = meta.with_labels(bound_pod, dict(meta.labels(binding)))
    bound_pod = conditions.with_condition(bound_pod, _SCHEDULED, now)
    # The nomination is obsolete once the pod has a node.
    pod_status = {
        field: value for field, value in bound_pod["status"].items() if field != "nominatedNodeName"
    }
    return bound_pod | {"status": pod_status}
