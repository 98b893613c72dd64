import pytest

from mockube.packs.kruise.controllers.cloneset.spec import partition_replicas


@pytest.mark.parametrize(
    ("replicas", "partition", "kept"),
    [
        (9, "99%", 8),
        (10, "90%", 9),
        (10, "1%", 1),
        (99, "100%", 99),
        (4, "99%", 3),
        (0, "99%", 0),
        (9, "0.01%", 1),
        (1, "99%", 1),
        (9, "99", 0),
        (8, "12.5%", 1),
        (8, ".5%", 1),
        (8, "5.%", 1),
        (8, "+50%", 4),
        (8, "1e1%", 1),
        (8, "0x1p5%", 3),
        (8, "-1.5%", 0),
        (8, "1e17%", 8),
        (8, "1e300%", 0),
        (10_000, "0.07%", 8),
        (5, 3, 3),
        (5, 7, 5),
        (5, -1, 0),
        (5, None, 0),
        (5, "0%", 0),
    ],
)
def test_partition_keeps_pods(replicas, partition, kept):
    assert partition_replicas(partition, replicas) == kept
