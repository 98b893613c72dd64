from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.metrics.storage import ConsistencyMetrics


class FakeNumbers:
    def __init__(self):
        self.added = []

    def numbers(self, _):
        return self

    def add(self, *arguments):
        self.added.append(arguments)


def test_cache_of_the_control_api_is_checked_and_not_counted():
    numbers = FakeNumbers()
    metrics = ConsistencyMetrics({b"/registry/pods/": GroupResource("", "pods")}, numbers)
    metrics.count(b"/registry/control.mockube.dev/changes/", "success")
    metrics.count(b"/registry/pods/", "success")
    assert numbers.added == [(1, "", "pods", "success")]
