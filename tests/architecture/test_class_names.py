"""A public class name stands for one idea: the names that two modules share are listed, with the reason."""

import ast
from collections import defaultdict

from tests.architecture.source import module, paths
from tools.packages import PACKAGES

SHARED = {
    "Admission": "the protocol of the verbs, and the chain that implements it",
    "AlwaysDeny": "upstream's authorizer and upstream's plugin, whose names are read at run time",
    "Change": "a change of a cache, in both processes",
    "Clock": "protocols of the same clock: the store does not import apimachinery",
    "Config": "the flags of both processes",
    "Delete": "the action of a controller, and etcd's operation",
    "DeleteOptions": "Kubernetes' word, at the server and at the client",
    "Dependencies": "what both processes are given",
    "Durations": "metrics of both processes",
    "Family": "the protocol of a metric family, and its implementation",
    "Features": "the feature gates of both processes",
    "History": "the history of revisions, of two workloads",
    "ListOptions": "Kubernetes' word, at the server and at the client",
    "Patch": "a patch at the server, and the action of a controller",
    "Request": "the server's and the client's side",
    "Resource": "the server's and the client's side",
    "Response": "the server's and the client's side",
    "Sample": "the protocol of a metric's sample, and its implementation",
    "Selector": "upstream's fields.Selector and labels.Selector",
    "Timeout": "the Status error, and etcd's",
    "Timer": "protocols of the same timer: the store does not import apimachinery",
    "Transport": "what sends requests, of the client and of etcd's client",
    "Watch": "controller-runtime's word and etcd's",
}


def modules_by_class():
    """Map each public class at the top of a module to its modules."""
    found = defaultdict(list)
    for folder in PACKAGES:
        for path in paths(folder):
            for node in module(path).tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(path)
    return found


def test_class_name_stands_for_one_idea():
    several = {name: paths for name, paths in modules_by_class().items() if len(paths) > 1}
    unlisted = {name: paths for name, paths in several.items() if name not in SHARED}
    assert not unlisted, "name these classes after their different ideas, or list why they share a name"
    assert several.keys() == SHARED.keys(), "a listed name is not shared any more"
    assert {name: len(paths) for name, paths in several.items() if len(paths) > 2} == {}
