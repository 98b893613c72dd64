"""`tools/setup.sh`: when it creates or keeps the virtual environment, and its error messages.

A fake uv replaces the installer: it records its calls and creates the part of an environment that the script
checks.
"""

import os
import shutil
import subprocess
import sys

import pytest

from tools.packages import ROOT

LOCKS = ("requirements/run.txt", "requirements/build.txt", "requirements/dev.txt")

FAKE_UV = """#!/bin/sh
[ "$1" = --version ] && exit 0
echo "$*" >>"$UV_CALLS"
if [ "$1" = venv ]; then
    for last in "$@"; do :; done
    mkdir -p "$last/bin"
    touch "$last/pyvenv.cfg" "$last/bin/python"
    chmod +x "$last/bin/python"
fi
[ "$1" != "$UV_FAILS" ]
"""

RUN = ["venv", "pip", "pip"]
"""The calls of the installer for what running needs: the environment, the locked packages, and mockube."""
INSTALLS = [*RUN, "pip"]
"""The calls for development."""


def executable(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Checkout:
    """A temporary checkout with the files that the setup script reads."""

    def __init__(self, root, tools):
        self.root = root
        self.tools = tools
        self.calls = tools / "calls"
        root.mkdir()
        for name in ("pyproject.toml", *LOCKS, "tools/setup.sh"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        executable(tools / "uv", FAKE_UV)

    def setup(self, level="dev", *, fails="nothing", **environment):
        return subprocess.run(
            ["sh", str(self.root / "tools" / "setup.sh"), level],
            env={
                "PATH": f"{self.tools}{os.pathsep}{os.defpath}",
                "PYTHON": sys.executable,
                "UV_CALLS": str(self.calls),
                "UV_FAILS": fails,
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def installs(self):
        """Return the installer's subcommands since the last call of this method."""
        words = (
            [line.split()[0] for line in self.calls.read_text().splitlines()] if self.calls.exists() else []
        )
        self.calls.unlink(missing_ok=True)
        return words


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "a checkout", tmp_path / "bin")


@pytest.fixture
def installed_checkout(checkout):
    assert checkout.setup().returncode == 0
    assert checkout.installs() == INSTALLS
    return checkout


def test_setup_keeps_existing_environment(installed_checkout):
    answer = installed_checkout.setup()
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert installed_checkout.installs() == []


def test_setup_keeps_named_python_until_another_is_named(installed_checkout):
    assert installed_checkout.setup(PYTHON="").returncode == 0
    assert installed_checkout.installs() == []
    assert installed_checkout.setup(PYTHON="python3").returncode == 0
    assert installed_checkout.installs() == INSTALLS


@pytest.mark.parametrize(
    ("lock", "calls"),
    [
        ("requirements/run.txt", INSTALLS),
        ("requirements/build.txt", INSTALLS),
        ("requirements/dev.txt", ["pip"]),
    ],
)
def test_setup_installs_after_lock_change(lock, calls, installed_checkout):
    with (installed_checkout.root / lock).open("a") as file:
        file.write("# newer\n")
    assert installed_checkout.setup().returncode == 0
    assert installed_checkout.installs() == calls


def test_environment_for_running_becomes_that_of_development(checkout):
    assert checkout.setup("run").returncode == 0
    assert checkout.installs() == RUN
    assert checkout.setup("run").returncode == 0
    assert checkout.installs() == []
    assert checkout.setup("dev").returncode == 0
    assert checkout.installs() == ["pip"]
    assert checkout.setup("run").returncode == 0
    assert checkout.installs() == []


def test_setup_keeps_environment_after_tool_setting_change(installed_checkout):
    with (installed_checkout.root / "pyproject.toml").open("a") as project:
        project.write("# a new setting\n")
    installed_checkout.setup()
    assert installed_checkout.installs() == []


def test_uv_of_activated_environment_does_not_replace_that_environment(installed_checkout):
    programs = installed_checkout.root / ".venv/bin"
    executable(programs / "uv", FAKE_UV)
    (installed_checkout.tools / "uv").unlink()
    (installed_checkout.root / "requirements/run.txt").write_text("# changed\n")
    python = executable(installed_checkout.tools / "a-python", '#!/bin/sh\n[ "$1" = -c ]\n')
    result = installed_checkout.setup(PATH=f"{programs}{os.pathsep}{os.defpath}", PYTHON=str(python))
    assert "Making .venv with pip" in result.stderr


def test_moved_checkout_gets_new_environment(installed_checkout, tmp_path):
    installed_checkout.root = installed_checkout.root.rename(tmp_path / "elsewhere")
    installed_checkout.setup()
    assert installed_checkout.installs() == INSTALLS


def test_environment_with_missing_python_is_recreated(installed_checkout):
    (installed_checkout.root / ".venv/bin/python").unlink()
    installed_checkout.setup()
    assert installed_checkout.installs() == INSTALLS


def test_failed_installation_prints_advice_and_is_retried(checkout):
    answer = checkout.setup(fails="pip")
    assert answer.returncode == 1
    assert "uv said why, above" in answer.stderr
    assert "No network?" in answer.stderr
    checkout.installs()
    checkout.setup()
    assert checkout.installs() == INSTALLS


def test_setup_does_not_remove_foreign_folder(checkout, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "work").touch()
    answer = checkout.setup(VENV=str(precious))
    assert answer.returncode == 1
    assert "is no virtual environment" in answer.stderr
    assert (precious / "work").exists()
    assert checkout.installs() == []


@pytest.mark.parametrize(
    ("script", "says"),
    [
        pytest.param('[ "$1" = --version ] && echo Python 3.10.1', "is Python 3.10.1", id="too old"),
        pytest.param("exit 127", "is not here", id="not there"),
    ],
)
def test_setup_names_unsuitable_python(script, says, checkout):
    python = executable(checkout.tools / "old-python", f"#!/bin/sh\n{script}\n")
    answer = checkout.setup(PYTHON=str(python))
    assert answer.returncode == 1
    assert "needs Python 3.11 or newer" in answer.stderr
    assert says in answer.stderr
    assert "make PYTHON=" in answer.stderr
    assert checkout.installs() == []


def test_setup_without_working_uv_uses_venv_module(checkout):
    executable(checkout.tools / "uv", "#!/bin/sh\nexit 127\n")
    script = '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "$*" >"$UV_CALLS"\nexit 1\n'
    answer = checkout.setup(PYTHON=str(executable(checkout.tools / "a-python", script)))
    assert answer.returncode == 1
    assert checkout.calls.read_text() == "-m venv --without-pip .venv\n"
    assert "python3-venv" in answer.stderr
