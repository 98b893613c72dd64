"""What a report reads of a server."""

from mockube.apimachinery.status import ServiceUnavailable
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
