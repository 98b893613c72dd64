from math import inf

import pytest

from mockube.apimachinery.secrets import MASK
from mockube.exploration.change import Change
from mockube.exploration.findings import MAX_LINES, what_happened
from mockube.exploration.trace import Note, Trace
from mockube.exploration.unseen import HiddenChanges, unseen_lines
from tests.support.instant_clock import InstantClock

OPERATOR = "operator"


def change(
    revision, name, before, after, *, user="alice", kind="Deployment.apps", resource="deployments.apps"
):
    """Return a Change whose seconds are its revision."""
    return Change(
        seconds=float(revision), revision=revision, type="MODIFIED", identity=(kind, "default", name), resource=resource,
        user=user, author=user, verb="patch", before=before, after=after,
    )  # fmt: skip


def replicas(count, version="1"):
    return {"metadata": {"name": "web", "resourceVersion": version}, "spec": {"replicas": count}}


def secret(value):
    return {"metadata": {"name": "s"}, "data": {"k": value}}


SCALED = [change(2, "web", replicas(1), replicas(2)), change(3, "web", replicas(2), replicas(3, "9"))]
OF_SECRET = {"kind": "Secret", "resource": "secrets"}


def write(revision=5, name="web", **fields):
    return change(revision, name, {}, {}, user=OPERATOR, **fields)


def lines(changes, resource="*", revision=1, began=0.0, ended=inf, lag=inf):
    hidden = HiddenChanges(resource=resource, revision=revision, began=began, ended=ended, lag=lag)
    return [*unseen_lines(changes, OPERATOR, [hidden])]


def test_write_has_what_the_operator_had_seen_and_what_was_true():
    assert lines([*SCALED, write(), write(6)]) == [
        (5.0, "it had not seen of Deployment.apps web in default: spec.replicas: 1 -> 3 (revision 3)")
    ]


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        pytest.param(None, replicas(1), "that Deployment.apps web in default was made", id="made"),
        pytest.param(replicas(1), None, "that Deployment.apps web in default was deleted", id="deleted"),
        pytest.param(
            replicas(1), replicas(1, "9"), "of Deployment.apps web in default: a new version", id="version"
        ),
    ],
)
def test_object_that_was_made_or_deleted_meanwhile(before, after, text):
    assert lines([change(2, "web", before, after), write()]) == [
        (5.0, f"it had not seen {text} (revision 2)")
    ]


def test_values_of_secrets_are_not_shown():
    changes = [change(2, "s", secret("old"), secret("new"), **OF_SECRET), write()]
    assert lines(changes) == [
        (5.0, f'it had not seen of Secret s in default: data.k: "{MASK}" -> "{MASK}" (revision 2)')
    ]


def test_object_that_was_written_comes_before_others():
    changes = [*SCALED, change(4, "b", None, replicas(1)), write()]
    ((_, text),) = lines(changes)
    assert text.endswith("spec.replicas: 1 -> 3 (revision 3), and changes of 1 more object")


@pytest.mark.parametrize(
    "span",
    [
        pytest.param({"resource": "pods"}, id="another resource"),
        pytest.param({"revision": 3}, id="all was seen"),
        pytest.param({"began": 6.0}, id="later"),
        pytest.param({"ended": 5.0}, id="ended"),
        pytest.param({"lag": 1.0}, id="late by a second only"),
    ],
)
def test_write_of_an_operator_that_had_seen_everything_has_no_line(span):
    assert lines([*SCALED, write()], **span) == []


def test_line_about_what_was_not_seen_is_not_shortened_away():
    trace = Trace(clock=InstantClock(), operator=OPERATOR, objects={})
    trace.notes.append(Note(seconds=0.0, text="disturbance: hold"))
    trace.hidden["f"] = HiddenChanges(resource="*", revision=1, began=0.0)
    trace.changes += [change(1, f"early-{number}", None, replicas(1)) for number in range(9)]
    trace.changes += [*SCALED, write(), *(write(6, f"late-{number}") for number in range(9))]
    shown = [line.partition(" s  ")[2] for line in what_happened(trace, [])]
    assert len(shown) == MAX_LINES
    at = next(index for index, text in enumerate(shown) if text.startswith("it had not seen"))
    assert shown[at - 1] == "MODIFIED Deployment.apps web in default by operator"
