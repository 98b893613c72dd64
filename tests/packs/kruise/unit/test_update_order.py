import pytest

from mockube.client.podview import PodView
from mockube.packs.kruise.update_order import by_priority, scatter


def pod(name, **labels):
    return PodView.of({"metadata": {"name": name, "uid": name, "labels": labels}})


def names(pods):
    return "".join(it.key.name for it in pods)


def weight(number, **labels):
    return {"weight": number, "matchSelector": {"matchLabels": labels}}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param(None, "abcd", id="none"),
        pytest.param({"orderPriority": []}, "abcd", id="no priorities"),
        pytest.param(
            {"orderPriority": [{"orderedKey": "turn"}]},
            "dcba",
            id="pods without the label, then highest value",
        ),
        pytest.param(
            {"orderPriority": [{"orderedKey": "side"}, {"orderedKey": "turn"}]},
            "dacb",
            id="the first label counts",
        ),
        pytest.param(
            {"weightPriority": [weight(20, turn="no-2"), weight(10, side="left")]}, "bacd", id="weights"
        ),
        pytest.param(
            {"weightPriority": [weight(10, turn="no-2"), weight(5, side="left"), weight(6, turn="x-1")]},
            "abcd",
            id="weights are summed, ties keep their order",
        ),
        pytest.param(
            {
                "weightPriority": [
                    {"weight": 9, "matchSelector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}
                ]
            },
            "abcd",
            id="unparsable selector selects nothing",
        ),
    ],
)
def test_update_order_by_priority(strategy, expected):
    pods = [pod("a", turn="x-1", side="left"), pod("b", turn="no-2"), pod("c", turn="10"), pod("d")]
    assert names(by_priority(pods, strategy)) == expected


X = [{"key": "kind", "value": "x"}]


def pods_of(text):
    """Return a pod for each character; capital letters are pods with `kind: x`."""
    return [pod(it, **({"kind": "x"} if it.isupper() else {})) for it in text]


@pytest.mark.parametrize(
    ("waiting", "others", "expected"),
    [
        pytest.param("ABCdef", "", "AdeBfC", id="half and half"),
        pytest.param("ABcdefgh", "", "AcdefghB", id="two of eight"),
        pytest.param("Abcd", "", "Abcd", id="single matching pod"),
        pytest.param("ABCd", "", "ABCd", id="single pod that does not match"),
        pytest.param("ABCDef", "", "ABeCfD", id="more of the kind"),
        pytest.param("ABcdef", "GHIJ", "cdeAfB", id="no denser than all pods are"),
    ],
)
def test_update_order_scattered(waiting, others, expected):
    pods = pods_of(waiting)
    assert names(scatter(pods, [*pods, *pods_of(others)], X)) == expected


def test_scatter_keeps_every_pod_once():
    for size in range(9):
        for kind in range(2**size):
            text = "".join("ABCDEFGHI"[i] if kind >> i & 1 else "abcdefghi"[i] for i in range(size))
            pods = pods_of(text)
            for more in ("", "XY", "xyz"):
                assert sorted(names(scatter(pods, [*pods, *pods_of(more)], X))) == sorted(text)
