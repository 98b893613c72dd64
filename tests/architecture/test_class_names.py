"""A public class name stands for one idea in a package; packages may share Kubernetes' words, as server and client do."""

import re
from collections import defaultdict

from tests.architecture.source import paths
from tools.packages import CODE, ROOT

_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
SHARED = {
    "Admission": "the protocol of the verbs, and the chain that implements it",
    "AlwaysDeny": "upstream's authorizer and upstream's plugin, whose names are read at run time",
}
"""The names that two modules of a package share, and why. An entry that is no longer needed is an error, too."""


def modules_by_class(package):
    """Map each public class at the top of a module to its modules."""
    found = defaultdict(list)
    for path in paths(package):
        for name in _CLASS.findall((ROOT / path).read_text()):
            found[name].append(path)
    return found


def test_class_name_stands_for_one_idea_in_package():
    several = {
        name: paths for package in CODE for name, paths in modules_by_class(package).items() if len(paths) > 1
    }
    unlisted = {name: paths for name, paths in several.items() if name not in SHARED}
    assert not unlisted, "name these classes after their different ideas, or list why they share a name"
    assert several.keys() == SHARED.keys(), "a listed name is not shared any more"
    assert {name: len(paths) for name, paths in several.items() if len(paths) > 2} == {}
