"""What a report reads of a server."""

import pytest

from mockube.apimachinery.status import Forbidden, NotFound, ServiceUnavailable, TooManyRequests, not_found
from mockube.client.kinds import PODS
from mockube.failure import Failure
from mockube.report.recording import ObjectIdentity, Subject
from mockube.report.summary import summarize
from mockube.report.writing import WRITERS
from tests.support.report_server import ReportServer, collected
from tests.support.reports import tree_of


def test_requests_are_listed_before_the_report_sends_others():
    server = ReportServer()
    collected(server)
    assert server.sent[0] == "list requests"


def test_faults_are_in_the_report_and_do_not_refuse_its_requests():
    fault = {"metadata": {"name": "outage"}, "spec": {"match": {"resource": "pods"}}}
    pod = tree_of("Pod", "web")
    server = ReportServer(
        objects={"faults": [fault], "pods": [pod]}, errors={"pods": ServiceUnavailable("no pods today")}
    )
    found = collected(server, ends_faults=True)
    assert (found.faults, found.refused, found.objects["pods"]) == ([fault], {}, [pod])


def test_faults_stay_unless_they_are_to_end():
    fault = {"metadata": {"name": "outage"}, "spec": {"match": {"resource": "pods"}}}
    server = ReportServer(objects={"faults": [fault]}, errors={"pods": ServiceUnavailable("no pods today")})
    assert collected(server).refused == {"pods": "no pods today"}
    assert not any(each.startswith("delete") for each in server.sent)


def test_report_without_rights_to_control_has_the_rest_and_notes():
    plurals = ("requests", "marks", "faults", "changes", "clocks", "cluster")
    pod = tree_of("Pod", "web")
    found = collected(ReportServer(objects={"pods": [pod]}, errors=dict.fromkeys(plurals, Forbidden("no"))))
    assert found.objects["pods"] == [pod]
    assert [note.partition(".control")[0] for note in found.notes] == [
        "changes",
        "faults",
        "marks",
        "requests",
    ]
    text = WRITERS[".md"](found)
    assert "Kubernetes v1.37.2: 1 object" in text
    assert "- requests.control.mockube.dev could not be listed: no" in text


def test_report_that_cannot_mask_the_values_of_secrets_is_refused():
    server = ReportServer(errors={"secrets": ServiceUnavailable("no secrets today")})
    with pytest.raises(Failure, match="their values cannot be masked: no secrets today"):
        collected(server)


def test_report_without_rights_to_secrets_says_that_values_are_not_masked():
    found = collected(ReportServer(errors={"secrets": Forbidden("not yours")}))
    assert found.notes == [
        "secrets could not be listed: not yours",
        "The values of Secrets are not masked where other texts quote them.",
    ]


CRASHED = {"phase": "Failed", "reason": "Evicted"}


def crashed(*names):
    return [tree_of("Pod", name, owner="web", status=CRASHED) for name in names]


def test_pods_that_are_alike_stay_in_the_report_if_the_first_one_is_deleted_meanwhile():
    pods = crashed("a", "b", "c")
    errors = {name: not_found(PODS.group_resource, name) for name in ("a", "b")}
    found = collected(ReportServer(objects={"pods": pods}, errors=errors))
    assert [each["object"]["name"] for each in found.explanations] == ["c"]
    assert not found.similar
    errors = {"a": not_found(PODS.group_resource, "a")}
    found = collected(ReportServer(objects={"pods": pods}, errors=errors))
    assert [other.name for other in found.similar[ObjectIdentity("pods", "default", "b")]] == ["c"]
    assert summarize(found)["counts"]["notHealthy"] == 2


def test_pod_that_is_deleted_meanwhile_is_not_in_the_report():
    errors = {"a": not_found(PODS.group_resource, "a")}
    assert not collected(ReportServer(objects={"pods": crashed("a")}, errors=errors)).explanations


@pytest.mark.parametrize(
    "error", [TooManyRequests("later"), NotFound("the server could not find the requested resource")]
)
def test_pod_that_the_server_does_not_explain_has_its_place_and_the_reason(error):
    found = collected(ReportServer(objects={"pods": crashed("a", "b")}, errors={"a": error}))
    (problem,) = summarize(found)["problems"]
    assert (problem["state"], problem["key"]) == ("Unknown", "pods|default|a")
    assert [each["name"] for each in problem["affected"]] == ["b"]
    assert problem["cause"].startswith("the server does not explain it: ")
    assert problem["commands"]


@pytest.mark.parametrize("suffix", [*WRITERS])
def test_command_with_an_argument_that_is_not_utf_8_has_a_report_in_each_format(suffix):
    subject = Subject(title="mockube run -- echo \udce9", text="no \udce9")
    assert WRITERS[suffix](collected(ReportServer(), subject)).encode()
    assert "echo \\udce9" in WRITERS[".md"](collected(ReportServer(), subject))


def test_list_that_fails_at_a_later_page_has_the_objects_before_and_a_note():
    pod = tree_of("Pod", "web")
    found = collected(ReportServer(objects={"pods": [pod]}, errors={"pods page 2": TooManyRequests("later")}))
    assert found.objects["pods"] == [pod]
    assert found.notes[-1] == "pods could not be listed, apart from 1: later"
