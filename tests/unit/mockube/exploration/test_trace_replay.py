from mockube.exploration.change import Change
from mockube.exploration.trace import Trace
from mockube.exploration.trace_replay import TraceReplay
from tests.support.instant_clock import InstantClock

OPERATOR = "operator"


def tree(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def change(name, before, after):
    return Change(
        seconds=0.0,
        revision=1,
        type="MODIFIED",
        identity=("ConfigMap", "", name),
        user="admin",
        author="admin",
        verb="",
        before=before,
        after=after,
    )


def test_state_has_all_objects_and_their_versions():
    old, new, created, other = tree("a"), tree("a", x="1"), tree("b"), tree("c")
    changes = [change("a", old, new), change("b", None, created), change("a", new, None)]
    objects = {("ConfigMap", "", "c"): other, ("ConfigMap", "", "b"): created}
    replayed = TraceReplay(Trace(clock=InstantClock(), operator=OPERATOR, objects=objects, changes=changes))
    states = [replayed.apply(each) for each in changes[:2]]
    assert [*states[-1].cluster["ConfigMap"]] == [other, new, created]
    assert [*states[-1].objects] == [new, created]
    last = replayed.apply(changes[2])
    assert [*last.cluster["ConfigMap"]] == [other, created]
    assert [*last.objects] == [created]
    assert [*last.history["ConfigMap"]] == [other, old, new, created]
    assert (last.object, last.old_object, last.user, last.operator) == (None, new, "admin", OPERATOR)
