"""How older minors word what the newest words otherwise, and what they let change in suspended Jobs.

A function takes an error of the newest, and returns what an older minor says in its place.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import IMMUTABLE
from mockube.apiserver.kinds.common.internal import internal

_HISTORY_LIMIT: Final = "'updateStrategy', 'revisionHistoryLimit', "


def history_limit_unnamed(error: FieldError) -> Sequence[FieldError]:
    return (replace(error, detail=error.detail.replace(_HISTORY_LIMIT, "'updateStrategy', ", 1)),)


def tolerations_twice(error: FieldError) -> Sequence[FieldError]:
    """Uniqueness is told with the right path."""
    begins, is_duplicate = "scheduling.tolerations[", error.type is ErrorType.DUPLICATE
    if is_duplicate or not error.field.startswith(begins):
        return (error,)
    return (replace(error, field=f"scheduling.tolerations.tolerations[{error.field.removeprefix(begins)}"),)


def no_handler(error: FieldError) -> Sequence[FieldError]:
    if error.field != "handler" or error.type is not ErrorType.REQUIRED:
        return (error,)
    return [errors.invalid(ROOT.child("handler"), "", text) for text in names.check_dns1123_label("")]


def no_replicas(error: FieldError) -> Sequence[FieldError]:
    path = ROOT.child("spec", "maxReplicas")
    if error.field != str(path) or error.detail.endswith("`minReplicas`"):
        return (error,)
    value = 0 if error.type is ErrorType.REQUIRED else error.value
    return (errors.invalid(path, value, "must be greater than 0"),)


_ENABLEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "spec.type": ("Exempt", "Limited"),
    "spec.limited.limitResponse.type": ("Queue", "Reject"),
}


def no_level(error: FieldError) -> Sequence[FieldError]:
    supported = _ENABLEMENTS.get(error.field)
    if supported is None or error.type is not ErrorType.REQUIRED:
        return (error,)
    return (errors.not_supported(ROOT.child(*error.field.split(".")), "", supported),)


def no_driver(error: FieldError) -> Sequence[FieldError]:
    """A driver's name that is missing is no name either."""
    if error.type is not ErrorType.REQUIRED or not error.field.endswith((".attacher", "].name")):
        return (error,)
    problems = names.check_dns1123_subdomain("")
    wrong = [replace(error, type=ErrorType.INVALID, value="", detail=text) for text in problems]
    return [*([error, error] if error.field.endswith("attacher") else [error]), *wrong]


def updates_forbidden(error: FieldError) -> Sequence[FieldError]:
    if error.field not in ("parameters", "provisioner", "reclaimPolicy") or error.detail != IMMUTABLE:
        return (error,)
    return (errors.forbidden(ROOT.child(error.field), f"updates to {error.field} are forbidden."),)


# --- Jobs that are suspended

_TEMPLATE: Final = ROOT.child("spec", "template")
_DIRECTIVES: Final = frozenset({"nodeSelector", "tolerations", "schedulingGates", "affinity"})


def template_kept(error: FieldError) -> Sequence[FieldError]:
    """The template is looked at by a rule of older minors in the place of that of the newest."""
    about = (str(_TEMPLATE), str(_TEMPLATE.child("spec")))
    return () if error.field in about and error.detail == IMMUTABLE else (error,)


def keeps_template(new_job: ReadOnlyTree, old_job: ReadOnlyTree) -> Iterable[FieldError]:
    """Until a suspended Job starts, its pods may be scheduled otherwise; they never need something else."""
    new, old = ((job.get("spec") or {}).get("template") or {} for job in (new_job, old_job))
    is_suspended = bool((old_job.get("spec") or {}).get("suspend"))
    if is_suspended and not (old_job.get("status") or {}).get("startTime"):
        is_same = _unscheduled(new) == _unscheduled(old)
    else:
        is_same = new == old
    return () if is_same else (errors.invalid(_TEMPLATE, internal("core.PodTemplateSpec", new), IMMUTABLE),)


def _unscheduled(template: ReadOnlyTree) -> dict[str, object]:
    """A template without what says where its pods are scheduled, and without labels and annotations."""
    spec = template.get("spec") or {}
    affinity = spec.get("affinity") or {}
    return {
        "metadata": _without(template.get("metadata") or {}, {"labels", "annotations"}),
        "spec": _without(spec, _DIRECTIVES),
        "affinity": _without(affinity, {"nodeAffinity"}),
    }


def _without(tree: ReadOnlyTree, names: Collection[str]) -> dict[str, object]:
    return {name: value for name, value in tree.items() if name not in names}
