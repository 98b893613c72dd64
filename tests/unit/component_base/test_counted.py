"""Numbers of things in messages."""

import pytest

from mockube.component_base.counted import counted


@pytest.mark.parametrize(("count", "text"), [(0, "0 pods are"), (1, "1 pod is"), (2, "2 pods are")])
def test_one_thing_is_singular(count, text):
    assert counted(count, "pod is", "pods are") == text
