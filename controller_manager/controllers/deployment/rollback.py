"""Go back to a former version on request of an old client: by an annotation, which names the revision.

Today's kubectl writes the former template into the Deployment itself, and needs none of this.
"""

from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import DEPLOYMENTS
from mockube.controller_manager.control.actions import Action, EventTemplate, RecordEvent, Update
from mockube.controller_manager.controllers.deployment.observe import DeploymentState
from mockube.controller_manager.controllers.deployment.revision import ANNOTATION_ROLLBACK_TO, OWN_ANNOTATIONS
from mockube.controller_manager.controllers.deployment.state import DeploymentView, SetView
from mockube.controller_manager.workloads.templates import equal_ignoring_hash, without_hash

_NOT_FOUND: Final = "DeploymentRollbackRevisionNotFound"
_UNCHANGED: Final = "DeploymentRollbackTemplateUnchanged"
_DONE: Final = "DeploymentRollback"


def rollback_revision(deployment: DeploymentView) -> int | None:
    """The revision to roll back to, 0 for the last one; None without a request."""
    text = meta.annotations(deployment.object).get(ANNOTATION_ROLLBACK_TO, "")
    return int_or_none(text)


def rollback_actions(state: DeploymentState, revision: int) -> tuple[Action, ...]:
    """Write the template and annotations of that revision into the Deployment, and remove the request in any case."""
    deployment = state.deployment
    revision = revision or _previous_revision(state)
    if revision == 0:
        return _given_up(deployment, _NOT_FOUND, "Unable to find last revision.")
    target = next((replica_set for replica_set in state.sets if replica_set.revision == revision), None)
    if target is None:
        return _given_up(deployment, _NOT_FOUND, "Unable to find the revision to rollback to.")
    if equal_ignoring_hash(deployment.template, target.object["spec"]["template"]):
        text = f'The rollback revision contains the same template as current deployment "{deployment.name}"'
        return _given_up(deployment, _UNCHANGED, text)
    text = f'Rolled back deployment "{deployment.name}" to revision {revision}'
    event = EventTemplate(about=deployment.object, done=(_DONE, text))
    return (Update(resource=DEPLOYMENTS, body=_with_version(deployment, target), event=event),)


def _previous_revision(state: DeploymentState) -> int:
    """The newest revision but one."""
    revisions = sorted((replica_set.revision for replica_set in state.sets), reverse=True)
    return revisions[1] if len(revisions) > 1 else 0


def _given_up(deployment: DeploymentView, reason: str, text: str) -> tuple[Action, ...]:
    body = meta.with_annotations(deployment.object, {ANNOTATION_ROLLBACK_TO: None})
    record = RecordEvent(about=deployment.object, type="Warning", reason=reason, message=text)
    return (record, Update(resource=DEPLOYMENTS, body=body))


def _with_version(deployment: DeploymentView, target: SetView) -> ReadOnlyTree:
    own = {key: value for key, value in meta.annotations(deployment.object).items() if key in OWN_ANNOTATIONS}
    passed_on = {
        key: value for key, value in meta.annotations(target.object).items() if key not in OWN_ANNOTATIONS
    }
    annotations = {**own, **passed_on}
    del annotations[ANNOTATION_ROLLBACK_TO]
    body = meta.with_metadata(deployment.object, annotations=annotations)
    template = without_hash(target.object["spec"]["template"])
    return {**body, "spec": {**deployment.spec, "template": template}}
