"""What runs pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and those before them."""

from apimachinery import meta
from apimachinery.groups import GroupResource
from apimachinery.wellknown import (
    ANNOTATION_TEMPLATE_GENERATION,
    LABEL_JOB_CONTROLLER_UID,
    LABEL_JOB_CONTROLLER_UID_LEGACY,
    LABEL_JOB_NAME,
    LABEL_JOB_NAME_LEGACY,
)
from apiserver.resources.strategy import MAIN, ORPHAN, SPEC, STATUS, Request, Strategy, Tree

TEMPLATE_LABELS = ("template", "metadata", "labels")

ORPHANED_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


def _template_generation(daemon_set: Tree) -> int:
    text = meta.annotations(daemon_set).get(ANNOTATION_TEMPLATE_GENERATION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _set_template_generation(daemon_set: Tree, generation: int) -> None:
    annotations = {**meta.annotations(daemon_set), ANNOTATION_TEMPLATE_GENERATION: str(generation)}
    daemon_set["metadata"]["annotations"] = annotations


def _begin_template_generation(daemon_set: Tree, _request: Request) -> None:
    _set_template_generation(daemon_set, max(_template_generation(daemon_set), 1))


def _count_template_generation(new: Tree, old: Tree, _request: Request) -> None:
    """Only the server counts: it goes up with each new template, and by nothing else."""
    is_new = new["spec"].get("template") != old["spec"].get("template")
    _set_template_generation(new, _template_generation(old) + is_new)


def _keep_template_generation(new: Tree, old: Tree, _request: Request) -> None:
    _set_template_generation(new, _template_generation(old))


def _select_own_pods(job: Tree, _request: Request) -> None:
    """A Job's pods carry its uid, and it selects them by that, unless it says that it has a selector of its own."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    given, name, uid = meta.labels(spec.get("template", {})), meta.name(job), metadata["uid"]
    # What the client wrote stays: if it is wrong, validation says so.
    made = {
        LABEL_JOB_CONTROLLER_UID: uid,
        LABEL_JOB_NAME: name,
        LABEL_JOB_CONTROLLER_UID_LEGACY: uid,
        LABEL_JOB_NAME_LEGACY: name,
    }
    labels = dict(sorted({**made, **given}.items()))
    # A Job that has no labels, or only those that it had from its template by default, has its template's.
    if metadata.get("labels", given) == given:
        metadata["labels"] = labels
    selector = spec.get("selector") or {}
    match = {LABEL_JOB_CONTROLLER_UID: uid, **selector.get("matchLabels", {})}
    job["spec"] = meta.with_value(spec, TEMPLATE_LABELS, labels) | {
        "selector": {"matchLabels": {}} | selector | {"matchLabels": match}
    }


def _forget_unavailable(stateful_set: Tree, _request: Request) -> None:
    """How many pods may be missing at once is a feature that is not on."""
    spec = stateful_set.get("spec") or {}
    strategy = spec.get("updateStrategy") or {}
    update = strategy.get("rollingUpdate") or {}
    if "maxUnavailable" in update:
        kept = {name: value for name, value in update.items() if name != "maxUnavailable"}
        stateful_set["spec"] = spec | {"updateStrategy": strategy | {"rollingUpdate": kept}}


COUNTED = Strategy(generation=SPEC, first_generation=1)

STATEFUL_SETS = Strategy(
    generation=SPEC,
    first_generation=1,
    prepare_create=_forget_unavailable,
    prepare_update={MAIN: lambda new, _old, request: _forget_unavailable(new, request)},
)

DEPLOYMENTS = Strategy(
    resets={MAIN: STATUS, "status": (*SPEC, ("metadata", "labels"))},
    generation=(*SPEC, ("metadata", "annotations")),
    first_generation=1,
)

DAEMON_SETS = Strategy(
    generation=SPEC,
    first_generation=1,
    prepare_create=_begin_template_generation,
    prepare_update={MAIN: _count_template_generation, "status": _keep_template_generation},
)

JOBS = Strategy(
    generation=SPEC,
    first_generation=1,
    prepare_create=_select_own_pods,
    dependents=ORPHAN,
    dependents_warning=ORPHANED_PODS,
)

STRATEGIES = {
    GroupResource("", "podtemplates"): Strategy(
        generation=(("template",),), first_generation=1, returns_deleted=True
    ),
    GroupResource("", "replicationcontrollers"): Strategy(
        generation=SPEC, first_generation=1, dependents=ORPHAN
    ),
    GroupResource("apps", "daemonsets"): DAEMON_SETS,
    GroupResource("apps", "deployments"): DEPLOYMENTS,
    GroupResource("apps", "replicasets"): COUNTED,
    GroupResource("apps", "statefulsets"): STATEFUL_SETS,
    GroupResource("batch", "cronjobs"): COUNTED,
    GroupResource("batch", "jobs"): JOBS,
}
