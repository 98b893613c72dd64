"""Exit messages contain the last error that the process logged."""

import pytest

from mockube.processes.child_processes import ControlPlaneProgram, exit_message


@pytest.mark.parametrize(
    ("log", "message"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("I0131 12:00:00.000000    42 serve.py:1] Serving\n", "", id="info only"),
        pytest.param("W0131 12:00:00.000000    42 serve.py:1] Odd\n", "", id="warning only"),
        pytest.param(
            "I0131 12:00:00.000000    42 a.py:1] fine\nF0131 12:00:00.000000    42 a.py:9] No room\n",
            ": No room",
            id="last line is fatal",
        ),
        pytest.param(
            "usage: python -m mockube.apiserver [FLAG ...]\npython -m mockube.apiserver: error: --v: no number\n",
            ": --v: no number",
            id="usage error",
        ),
        pytest.param('Traceback:\n  File "x"\nValueError: 3\n', ": ValueError: 3", id="a crash"),
    ],
)
def test_exit_message_contains_last_error_of_log(tmp_path, log, message):
    path = tmp_path / "log"
    path.write_text(log)
    program = ControlPlaneProgram(name="apiserver", command=(), log=path)
    assert exit_message(program, 3) == f"the apiserver exited with code 3{message}"
