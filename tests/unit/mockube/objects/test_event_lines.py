"""Events in messages: only those of some objects, and similar ones in one line."""

from mockube.objects.wait_report import event_lines


def event(version, name, message, reason="FailedCreate"):
    return {
        "metadata": {"resourceVersion": str(version)},
        "type": "Warning",
        "reason": reason,
        "involvedObject": {"kind": "ReplicaSet", "name": name},
        "message": message,
    }


def test_events_that_differ_in_generated_names_are_one_line():
    events = [
        event(12, "web-5f7cd8bfc", 'pods "web-5f7cd8bfc-4f6th" is forbidden'),
        event(9, "web-5f7cd8bfc", 'pods "web-5f7cd8bfc-ttksn" is forbidden'),
        event(11, "web-5f7cd8bfc", "no quota", reason="Other"),
        event(10, "db-67f6d7cb78", 'pods "db-67f6d7cb78-x5mwp" is forbidden'),
    ]
    replica_set = {"kind": "ReplicaSet", "metadata": {"name": "web-5f7cd8bfc"}}
    assert event_lines(events, [replica_set]) == [
        'Warning FailedCreate replicaset/web-5f7cd8bfc and 1 more: pods "web-5f7cd8bfc-ttksn" is forbidden',
        "Warning Other replicaset/web-5f7cd8bfc: no quota",
    ]
