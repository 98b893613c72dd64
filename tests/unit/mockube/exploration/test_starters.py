from contextlib import closing
from functools import partial

import pytest

from mockube.exploration.starters import FunctionStarter, bytecode_variables
from mockube.failure import Failure


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


def test_function_with_a_network_of_its_own_is_refused(tmp_path):
    with closing(FunctionStarter(run_operator)) as starter, pytest.raises(Failure, match="ownNetwork"):
        starter.start(tmp_path, {}, server="https://127.0.0.1:1")


@pytest.mark.parametrize(
    ("variables", "is_changed"),
    [
        pytest.param({"PYTHONDONTWRITEBYTECODE": "1"}, True, id="not stored"),
        pytest.param({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/a"}, False, id="stored elsewhere"),
        pytest.param({}, False, id="stored"),
    ],
)  # fmt: skip
def test_operator_stores_what_python_has_compiled(variables, is_changed, monkeypatch, tmp_path):
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = bytecode_variables(tmp_path)
    assert bool(found) is is_changed
    if is_changed:
        assert found == {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
