from argparse import ArgumentTypeError

import pytest

from mockube.packs.kruise.gates import read_kruise_gates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", (), id="none"),
        pytest.param("PreparingUpdateAsUpdate=true", ("PreparingUpdateAsUpdate",), id="on"),
        pytest.param("PreparingUpdateAsUpdate=false", (), id="off"),
        pytest.param(
            "PreparingUpdateAsUpdate=true,PreparingUpdateAsUpdate=false", (), id="the last one counts"
        ),
        pytest.param("CloneSetShortHash=false, WorkloadSpread=true", ("WorkloadSpread",), id="the defaults"),
        pytest.param("StatefulSetStartOrdinal=true", ("StatefulSetStartOrdinal",), id="always in effect"),
    ],
)
def test_gates_are_read(text, expected):
    assert read_kruise_gates(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A=true", "unrecognized feature gate of OpenKruise: A"),
        ("PreparingUpdateAsUpdate", "missing bool value for PreparingUpdateAsUpdate"),
        (
            "PreparingUpdateAsUpdate=yes",
            'invalid value of PreparingUpdateAsUpdate=yes, err: strconv.ParseBool: parsing "yes"',
        ),
        ("CloneSetShortHash=true", "OpenKruise's feature gate CloneSetShortHash cannot be true here"),
        (
            "PreDownloadImageForInPlaceUpdate=1",
            "OpenKruise's feature gate PreDownloadImageForInPlaceUpdate cannot be true here",
        ),
        (
            "StatefulSetAutoDeletePVC=false",
            "OpenKruise's feature gate StatefulSetAutoDeletePVC cannot be false here",
        ),
    ],
)
def test_other_gates_are_refused_by_name(text, problem):
    with pytest.raises(ArgumentTypeError) as refused:
        read_kruise_gates(text)
    assert problem in str(refused.value)
