"""PodSecurity: rejects pods, and warns about the pod templates of workloads, by the labels of their namespace."""

from collections.abc import Iterator, Sequence
from typing import Final

from mockube.apimachinery import meta, status
from mockube.apimachinery.groups import NAMESPACES, PODS
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.admission.configurations import PodSecurityConfiguration
from mockube.apiserver.admission.plugin import POD, WRITE, Plugin
from mockube.apiserver.event_loop import SLICE
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.loop import yield_to_loop

from .evaluate import evaluate
from .policy import (
    MODES,
    PREFIX,
    PRIVILEGED,
    LevelVersion,
    PodSecurityLevels,
    is_stricter,
    read_policy,
)

NAMESPACE: Final[Target] = "", "namespaces", ""
_POD_TARGETS: Final = frozenset({POD, ("", "pods", "ephemeralcontainers"), ("", "pods", "resize")})
_TEMPLATE: Final = ("spec", "template")
_TEMPLATES: Final = {
    ("", "replicationcontrollers", ""): _TEMPLATE,
    ("", "podtemplates", ""): ("template",),
    ("apps", "replicasets", ""): _TEMPLATE,
    ("apps", "deployments", ""): _TEMPLATE,
    ("apps", "statefulsets", ""): _TEMPLATE,
    ("apps", "daemonsets", ""): _TEMPLATE,
    ("batch", "jobs", ""): _TEMPLATE,
    ("batch", "cronjobs", ""): ("spec", "jobTemplate", "spec", "template"),
}
"""The path of the pod template in each kind of workload."""
_LABEL_MARK: Final = f'"{PREFIX}'.encode()
_PRIVILEGED: Final = str(LevelVersion())
MAX_PODS: Final = 3000
"""The number of existing pods that are evaluated when a namespace's level rises."""
MAX_SECONDS: Final = 1.0
"""The time for that. Both are upstream's (pod-security-admission/admission/admission.go): the warnings are an aid, not the check."""


class PodSecurity(Plugin):
    operations = WRITE
    targets = frozenset({NAMESPACE, *_POD_TARGETS, *_TEMPLATES})

    def __init__(self, configuration: PodSecurityConfiguration | None = None) -> None:
        self._configuration = configuration or PodSecurityConfiguration()
        self._is_privileged = self._configuration.defaults.is_privileged

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        if attributes.target == NAMESPACE:
            await self._validate_namespace(backend, attributes)
        elif reason := self._exemption(attributes):
            _annotate(attributes, "exempt", reason)
        else:
            await self._validate_pod(backend, attributes)

    def _exemption(self, attributes: AdmissionAttributes) -> str:
        exemptions = self._configuration.exemptions
        if attributes.namespace in exemptions.namespaces:
            return "namespace"
        return "user" if attributes.context.user.name in exemptions.usernames else ""

    async def _validate_pod(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        namespace = await _namespace(backend, attributes)
        if namespace is None:  # only pods are enforced; the templates of workloads are merely audited
            problem = f'failed to lookup namespace "{attributes.namespace}"'
            if attributes.target in _POD_TARGETS:
                raise status.internal_error(problem)
            missing = status.not_found(NAMESPACES, attributes.namespace)
            _annotate(attributes, "error", f"{problem}: {missing.message}")
            return
        defaults = self._configuration.defaults
        if self._is_privileged and namespace.value.find(_LABEL_MARK) < 0:
            if attributes.target in _POD_TARGETS:
                _annotate(attributes, "enforce-policy", _PRIVILEGED)
            return
        policy, label_errors = read_policy(namespace.labels, defaults)
        pod = _pod(attributes)
        if pod is None or not _is_applicable(attributes, policy, has_errors=bool(label_errors)):
            return
        if pod["spec"].get("runtimeClassName") in self._configuration.exemptions.runtime_classes:
            _annotate(attributes, "exempt", "runtimeClass")
            return
        if label_errors:
            problem = (
                f"[{', '.join(map(str, label_errors))}]" if len(label_errors) > 1 else str(label_errors[0])
            )
            _annotate(attributes, "error", f"Failed to parse policy: {problem}")
        await backend.run(attributes.context, _apply, attributes, policy, pod)

    async def _validate_namespace(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        written = attributes.object
        assert written is not None
        labels, defaults = meta.labels(written), self._configuration.defaults
        policy, label_errors = read_policy(labels, defaults)
        old, old_label_errors = (
            (None, None) if attributes.old is None else read_policy(meta.labels(attributes.old), defaults)
        )
        if label_errors and label_errors != old_label_errors:
            raise status.invalid(attributes.resource.group_kind, attributes.name, label_errors)
        if old is None or not _is_raised(policy.enforce, old.enforce):
            return
        if attributes.name in self._configuration.exemptions.namespaces:
            if warning := _exempt_warning(attributes.name, policy, defaults, written):
                attributes.context.report.warn(warning)
            return
        for warning in await self._warnings_of_existing(backend, attributes.name, policy.enforce):
            attributes.context.report.warn(warning)

    async def _warnings_of_existing(
        self, backend: Backend, namespace: str, enforced: LevelVersion
    ) -> list[str]:
        """Return warnings about the existing pods that would be rejected."""
        await backend.watch_cache.fresh()
        exempt = self._configuration.exemptions.runtime_classes
        pods = await _sort_by_owner(backend.list_cached(PODS, namespace), exempt)
        deadline, checked = backend.clock.real.monotonic() + MAX_SECONDS, 0
        names: dict[str, list[str]] = {}
        for pod in pods[:MAX_PODS]:
            if violations := evaluate(enforced, meta.annotations(pod), pod["spec"]):
                reasons = ", ".join(violation.reason for violation in violations)
                names.setdefault(reasons, []).append(meta.name(pod))
            checked += 1
            if backend.clock.real.monotonic() > deadline:
                break
            if checked % SLICE == 0:
                await yield_to_loop()
        return list(_existing_warnings(namespace, enforced, names, checked, len(pods)))


async def _namespace(backend: Backend, attributes: AdmissionAttributes) -> StoredObject | None:
    name = attributes.namespace
    stored = backend.find_cached(NAMESPACES, "", name)
    return stored or await backend.find(backend.rows[NAMESPACES], "", name)


def _pod(attributes: AdmissionAttributes) -> Tree | None:
    """Return the pod that is written, or the template of the workload; None if a workload has none."""
    path, tree = _TEMPLATES.get(attributes.target, ()), attributes.object
    for step in path:
        tree = (tree or {}).get(step)
    return tree if tree and tree.get("spec") is not None else None


def _is_applicable(attributes: AdmissionAttributes, policy: PodSecurityLevels, *, has_errors: bool) -> bool:
    """Return whether the policy applies to the write."""
    if attributes.target not in _POD_TARGETS:
        return has_errors or not policy.warn.level == policy.audit.level == PRIVILEGED
    if not has_errors and policy.is_privileged:
        _annotate(attributes, "enforce-policy", _PRIVILEGED)
        return False
    return attributes.operation is Operation.CREATE or _is_significant(attributes)


def _is_significant(attributes: AdmissionAttributes) -> bool:
    """Return whether an update of a pod changes containers or images; other changes cannot affect its security."""
    new, old = attributes.object, attributes.old
    assert new is not None
    assert old is not None
    for name in ("containers", "initContainers"):
        if _images(new, name) != _images(old, name):
            return True
    before = dict(_named_images(old))
    return any(before.get(name) != image for name, image in _named_images(new))


def _images(pod: Tree, name: str) -> list[str]:
    return [container.get("image", "") for container in pod["spec"].get(name) or ()]


def _named_images(pod: Tree) -> Iterator[tuple[str, str]]:
    for container in pod["spec"].get("ephemeralContainers") or ():
        yield container["name"], container.get("image", "")


def _apply(attributes: AdmissionAttributes, policy: PodSecurityLevels, pod: Tree) -> None:
    """Reject the write, add audit annotations, or warn, depending on the violations of a pod."""
    violated = {mode: _violation_text(mode, pod) for mode in {*policy}}
    is_enforced = attributes.target in _POD_TARGETS
    if is_enforced:
        _annotate(attributes, "enforce-policy", str(policy.enforce))
    if violated[policy.audit]:
        _annotate(attributes, "audit-violations", f"would violate {violated[policy.audit]}")
    if is_enforced and violated[policy.enforce]:
        problem = f"violates {violated[policy.enforce]}"
        raise status.forbidden(attributes.resource.group_resource, attributes.name, problem)
    if violated[policy.warn]:
        attributes.context.report.warn(f"would violate {violated[policy.warn]}")


def _violation_text(mode: LevelVersion, pod: Tree) -> str:
    """Return the policy and the violations of the pod; "" if there are none."""
    violations = ", ".join(map(str, evaluate(mode, meta.annotations(pod), pod["spec"])))
    return violations and f'PodSecurity "{mode}": {violations}'


def _annotate(attributes: AdmissionAttributes, key: str, value: str) -> None:
    attributes.context.report.annotations[PREFIX + key] = value


def _is_raised(new: LevelVersion, old: LevelVersion) -> bool:
    """Return whether pods that the old policy allows may violate the new one."""
    if new == old or new.level == PRIVILEGED:
        return False
    return new.minor != old.minor or is_stricter(new.level, old.level)


def _exempt_warning(
    name: str, policy: PodSecurityLevels, defaults: PodSecurityLevels, namespace: Tree
) -> str:
    if policy.is_privileged or policy.is_equivalent(defaults):
        return ""
    labels = meta.labels(namespace)
    ignored_modes = [
        f"{mode}={demanded}"
        for mode, demanded in zip(MODES, policy, strict=True)
        if demanded.level != PRIVILEGED and {PREFIX + mode, f"{PREFIX}{mode}-version"} & labels.keys()
    ]
    return f'namespace "{name}" is exempt from Pod Security, and the policy ({", ".join(ignored_modes)}) will be ignored'


async def _sort_by_owner(pods: Sequence[StoredObject], exempt: Sequence[str]) -> list[ReadOnlyTree]:
    """Return the pods, the first one of each owner before all others, because pods of one owner are probably alike."""
    first, others, owners = list[ReadOnlyTree](), list[ReadOnlyTree](), set[str]()
    for number, stored in enumerate(pods, 1):
        if number % SLICE == 0:
            await yield_to_loop()
        pod = stored.tree()
        if pod["spec"].get("runtimeClassName") in exempt:
            continue
        owner = meta.controller_of(pod)
        if owner is None or owner["uid"] not in owners:
            first.append(pod)
        else:
            others.append(pod)
        if owner is not None:
            owners.add(owner["uid"])
    return [*first, *others]


def _existing_warnings(
    namespace: str, enforced: LevelVersion, names: dict[str, list[str]], checked: int, total: int
) -> Iterator[str]:
    if checked < total:
        yield f"new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
    if names:
        yield f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforced}"'
    counts = {1: "", 2: " (and 1 other pod)"}
    yield from sorted(
        f"{min(pods)}{counts.get(len(pods), f' (and {len(pods) - 1} other pods)')}: {reasons}"
        for reasons, pods in names.items()
    )
