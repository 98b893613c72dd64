"""Suggestions for mistyped names."""

import pytest

from mockube.component_base.suggestions import MAX_NAME, did_you_mean, enumerate_names, nearest


@pytest.mark.parametrize(
    ("name", "candidates", "expected"),
    [
        pytest.param("deplyment", ["Deployment", "DaemonSet"], "Deployment", id="mistyped"),
        pytest.param("imagepullpolicy", ["image", "imagePullPolicy"], "imagePullPolicy", id="other case"),
        pytest.param("job", ["Node", "Pod"], "", id="none is similar"),
        pytest.param("", ["Pod"], "", id="no name"),
        pytest.param("a" * (MAX_NAME + 1), ["a" * MAX_NAME], "", id="too long"),
    ],
)
def test_most_similar_candidate_is_suggested(name, candidates, expected):
    assert nearest(name, candidates) == expected
    assert did_you_mean(name, candidates) == (f': did you mean "{expected}"?' if expected else "")


def test_names_are_listed_in_order_up_to_a_number():
    assert enumerate_names(["b", "a"]) == "a, b"
    assert enumerate_names(map(str, range(10))) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
