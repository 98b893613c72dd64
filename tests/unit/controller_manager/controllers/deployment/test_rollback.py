"""Deployment: rollback requested by the deprecated annotation."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import DEPLOYMENTS
from tests.support.controllers.deployments import DeploymentHarness, image_of

ROLLBACK_TO = "deprecated.deployment.rollback.to"


def three_versions():
    cluster = DeploymentHarness().deploy(replicas=1)
    cluster.settle()
    for number in (2, 3):
        noted = meta.with_annotations(cluster.web, {"note": str(number)})
        cluster.put(DEPLOYMENTS, noted)
        cluster.release(f"a:{number}")
        cluster.settle()
    cluster.events.clear()
    return cluster


def request_rollback(cluster, revision):
    cluster.put(DEPLOYMENTS, meta.with_annotations(cluster.web, {ROLLBACK_TO: revision}))
    cluster.roll_on()


@pytest.mark.parametrize(
    ("asked", "image", "event"),
    [
        pytest.param(
            "1",
            "a:1",
            ("Normal", "DeploymentRollback", 'Rolled back deployment "web" to revision 1'),
            id="one",
        ),
        pytest.param(
            "0",
            "a:2",
            ("Normal", "DeploymentRollback", 'Rolled back deployment "web" to revision 2'),
            id="last",
        ),
        pytest.param(
            "9",
            "a:3",
            (
                "Warning",
                "DeploymentRollbackRevisionNotFound",
                "Unable to find the revision to rollback to.",
            ),
            id="missing revision",
        ),
        pytest.param(
            "3",
            "a:3",
            (
                "Warning",
                "DeploymentRollbackTemplateUnchanged",
                'The rollback revision contains the same template as current deployment "web"',
            ),
            id="the same",
        ),
    ],
)
def test_rollback_restores_template(asked, image, event):
    cluster = three_versions()
    request_rollback(cluster, asked)
    assert image_of(cluster.web["spec"]["template"]) == image
    assert cluster.events == [event]
    assert ROLLBACK_TO not in meta.annotations(cluster.web)


def test_rollback_without_previous_revision_records_event():
    cluster = DeploymentHarness().deploy(replicas=1)
    cluster.settle()
    cluster.events.clear()
    request_rollback(cluster, "0")
    assert cluster.events == [
        ("Warning", "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
    ]


def test_rollback_restores_annotations_but_not_hash():
    cluster = three_versions()
    request_rollback(cluster, "2")
    assert meta.annotations(cluster.web)["note"] == "2"
    assert meta.labels(cluster.web["spec"]["template"]) == {"app": "web"}
    cluster.settle()
    assert cluster.sizes == {"a:1": 0, "a:2": 1, "a:3": 0}
    assert cluster.revisions["a:2"] == "4"


@pytest.mark.parametrize("asked", ["", "x", "1.5"])
def test_invalid_rollback_annotation_is_ignored(asked):
    cluster = three_versions()
    request_rollback(cluster, asked)
    assert meta.annotations(cluster.web)[ROLLBACK_TO] == asked
    assert cluster.events == []


def test_paused_deployment_is_not_rolled_back():
    cluster = three_versions()
    cluster.pause()
    request_rollback(cluster, "1")
    assert image_of(cluster.web["spec"]["template"]) == "a:3"
