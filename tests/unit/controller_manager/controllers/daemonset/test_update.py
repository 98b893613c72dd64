"""Which pods a rolling update of a DaemonSet replaces next, node by node, as rollingUpdate of upstream."""

from types import SimpleNamespace

import pytest

from mockube.controller_manager.controllers.daemonset import update

ROLLING = {"updateStrategy": {"type": "RollingUpdate"}}


def state_of(nodes, *, surge=0, unavailable=1, spec=ROLLING):
    """Return the state of nodes with pods: `N` is a new and `O` an old pod, a small letter one that is not available.

    `!` marks the pod before it as deleted, and a node whose name ends with `-` should run no pod.
    """
    pods = {
        name: [
            SimpleNamespace(
                name=f"{name}/{code}", code=code, deleting=codes[position + 1 : position + 2] == "!"
            )
            for position, code in enumerate(codes)
            if code != "!"
        ]
        for name, codes in nodes.items()
    }
    fits = {name: SimpleNamespace(should_run=not name.endswith("-")) for name in nodes if name != "gone"}
    return SimpleNamespace(
        spec=spec,
        pods={name: found for name, found in pods.items() if found},
        fits=fits,
        desired_count=sum(fit.should_run for fit in fits.values()),
        max_surge=lambda _: surge,
        max_unavailable=lambda _: unavailable,
        is_updated=lambda pod: pod.code in "Nn",
        is_available=lambda pod: pod.code.isupper(),
    )


@pytest.fixture(autouse=True)
def actions(monkeypatch):
    """Let the update return the nodes that get a pod, and the pods that are deleted."""
    monkeypatch.setattr(
        update,
        "pod_actions",
        lambda _, nodes, pods: (*(f"+{name}" for name in nodes), *(f"-{each.name}" for each in pods)),
    )


@pytest.mark.parametrize(
    ("nodes", "limit", "expected"),
    [
        ({"a": "O", "b": "O"}, 1, ["-a/O"]),
        ({"a": "O", "b": "O"}, 2, ["-a/O", "-b/O"]),
        ({"a": "O", "b": "O"}, 0, ["-a/O"]),
        ({"a": "o", "b": "O"}, 1, ["-a/o"]),
        ({"a": "O", "b": "o", "c": "o"}, 1, ["-b/o", "-c/o"]),
        ({"a": "n", "b": "O"}, 1, []),
        ({"a": "n", "b": "O"}, 2, ["-b/O"]),
        ({"a": "N", "b": "O"}, 1, ["-b/O"]),
        ({"a": "NO", "b": "O"}, 1, []),
        ({"a": "NO", "b": "O"}, 2, ["-b/O"]),
        ({"a": "", "b": "O"}, 2, ["-b/O"]),
        ({"a": "", "b": "O", "c": "O"}, 1, []),
        ({"a": "NN", "b": "O"}, 1, []),
        ({"a": "OO", "b": "O"}, 1, []),
        ({"a": "O!", "b": "O"}, 1, []),
        ({"a": "O!N", "b": "O"}, 1, ["-b/O"]),
        ({"a-": "", "b": "O"}, 1, ["-b/O"]),
        ({"a-": "O"}, 0, []),
        ({"gone": "O", "b": "O"}, 1, ["-gone/O"]),
    ],
)
def test_update_without_surge(nodes, limit, expected):
    assert [*update.rolling_update(state_of(nodes, unavailable=limit))] == expected


@pytest.mark.parametrize(
    ("nodes", "limit", "expected"),
    [
        ({"a": "O", "b": "O"}, 1, ["+a"]),
        ({"a": "O", "b": "O"}, 2, ["+a", "+b"]),
        ({"a": "ON", "b": "O"}, 1, ["+b", "-a/O"]),
        ({"a": "On", "b": "O"}, 1, []),
        ({"a": "On", "b": "O"}, 2, ["+b"]),
        ({"a": "on", "b": "O"}, 1, []),
        ({"a": "o", "b": "O"}, 1, ["+a", "+b"]),
        ({"a": "On", "b": "o"}, 1, ["+b"]),
        ({"a": "N", "b": "n"}, 1, []),
        ({"a": "N", "b": "O"}, 1, ["+b"]),
        ({"a": "OO", "b": "O"}, 1, []),
        ({"a": "NN", "b": "O"}, 2, ["+b"]),
        ({"a-": "o", "b": "N"}, 1, ["-a-/o"]),
        ({"a-": "O", "b": "N"}, 1, ["-a-/O"]),
        ({"a-": "O", "b": "n"}, 1, []),
        ({"a-": "O", "c-": "O", "b": "n"}, 1, ["-a-/O"]),
        ({"gone": "o", "b": "N"}, 1, ["-gone/o"]),
        ({"a": "", "b": "O"}, 1, ["+b"]),
    ],
)
def test_update_with_surge(nodes, limit, expected):
    assert [*update.rolling_update(state_of(nodes, surge=limit))] == expected


@pytest.mark.parametrize("spec", [{}, {"updateStrategy": {"type": "OnDelete"}}])
def test_other_strategy_replaces_nothing(spec):
    assert update.rolling_update(state_of({"a": "o"}, spec=spec)) == ()
