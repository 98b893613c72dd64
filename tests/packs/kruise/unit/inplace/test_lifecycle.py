"""Lifecycle states of a pod: transitions and hooks."""

import pytest

from mockube.client.podview import PodView
from mockube.packs.kruise.inplace import lifecycle
from mockube.packs.kruise.inplace.lifecycle import Lifecycle, LifecycleHook

HOOK = {"labelsHandler": {"hold": "true"}, "finalizersHandler": ["a/b"]}
NONE = Lifecycle.of({})


def pod(state, *, node="n1", hold=None, finalizers=()):
    labels = {"lifecycle.apps.kruise.io/state": state} | ({} if hold is None else {"hold": hold})
    return PodView.of(
        {"metadata": {"name": "p", "labels": labels, "finalizers": [*finalizers]}, "spec": {"nodeName": node}}
    )


HELD = {"hold": "true", "finalizers": ["a/b"]}


@pytest.mark.parametrize(
    ("subject", "hooks", "is_updated", "is_finished", "expected"),
    [
        pytest.param(pod("PreparingNormal"), {}, True, True, "Normal", id="new, on a node"),
        pytest.param(pod("PreparingNormal", node=""), {}, True, True, None, id="new, not scheduled"),
        pytest.param(
            pod("PreparingNormal"), {"preNormal": HOOK}, True, True, None, id="new, hook label missing"
        ),
        pytest.param(
            pod("PreparingNormal", node="", **HELD),
            {"preNormal": HOOK},
            True,
            True,
            "Normal",
            id="new, hook label present",
        ),
        pytest.param(pod("Normal"), {}, False, True, None, id="normal"),
        pytest.param(pod(""), {}, False, True, None, id="no state label"),
        pytest.param(pod("PreparingUpdate"), {"inPlaceUpdate": HOOK}, False, True, None, id="prepared"),
        pytest.param(
            pod("PreparingUpdate", **HELD),
            {"inPlaceUpdate": HOOK},
            True,
            True,
            "Normal",
            id="update reverted",
        ),
        pytest.param(
            pod("PreparingUpdate"),
            {"inPlaceUpdate": HOOK},
            True,
            True,
            "Updated",
            id="update reverted, hook label missing",
        ),
        pytest.param(pod("Updating"), {}, True, False, None, id="updating"),
        pytest.param(pod("Updating"), {}, True, True, "Normal", id="updated"),
        pytest.param(pod("Updating"), {"inPlaceUpdate": HOOK}, True, True, "Updated", id="updated with hook"),
        pytest.param(
            pod("Updated"), {"inPlaceUpdate": HOOK}, True, True, None, id="updated, hook label missing"
        ),
        pytest.param(
            pod("Updated", hold="true"),
            {"inPlaceUpdate": HOOK},
            True,
            True,
            None,
            id="updated, some hook labels missing",
        ),
        pytest.param(
            pod("Updated", **HELD),
            {"inPlaceUpdate": HOOK},
            True,
            True,
            "Normal",
            id="updated, hook label present",
        ),
        pytest.param(pod("Updated"), {}, True, True, "Normal", id="hook removed"),
        pytest.param(pod("PreparingDelete"), {}, True, True, None, id="preparing delete"),
    ],
)
def test_next_lifecycle_state(subject, hooks, is_updated, is_finished, expected):
    told = Lifecycle.of({"lifecycle": hooks})
    found = lifecycle.next_state(subject, told, is_updated=is_updated, is_finished=is_finished)
    assert found == expected


@pytest.mark.parametrize(
    ("subject", "holds", "wholly"),
    [
        (pod("Normal"), False, False),
        (pod("Normal", hold="true"), True, False),
        (pod("Normal", hold="no"), False, False),
        (pod("Normal", finalizers=["a/b", "c"]), True, False),
        (pod("Normal", **HELD), True, True),
    ],
)
def test_lifecycle_hooks(subject, holds, wholly):
    hook = LifecycleHook(labels={"hold": "true"}, finalizers=("a/b",), marks_not_ready=False)
    assert (hook.holds(subject), hook.has_all_hooks(subject)) == (holds, wholly)


def test_absent_hook_is_none():
    assert Lifecycle(pre_normal=None, in_place_update=None, pre_delete=None) == NONE
    assert not NONE.marks_not_ready
    assert Lifecycle.of({"lifecycle": {"preDelete": {**HOOK, "markPodNotReady": True}}}).marks_not_ready
