from contextlib import closing
from functools import partial

import pytest

from mockube.exploration.starters import FunctionStarter


def run_operator(kubeconfig, *, debug=False):
    del kubeconfig, debug


class Manager:
    def __call__(self, kubeconfig):
        run_operator(kubeconfig)


@pytest.mark.parametrize(
    ("main", "text"),
    [
        pytest.param(run_operator, f"{__name__}.run_operator", id="function"),
        pytest.param(partial(run_operator, debug=True), "functools.partial(<function run_operator", id="partial"),
        pytest.param(Manager(), f"<{__name__}.Manager object", id="object"),
    ],
)  # fmt: skip
def test_operator_has_a_name_in_reports(main, text):
    with closing(FunctionStarter(main)) as starter:
        assert starter.text.startswith(text)
