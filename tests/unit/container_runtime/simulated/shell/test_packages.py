"""Package managers add the programs of known packages to a container."""

import pytest

from mockube.container_runtime.simulated.programs.program import CommandContext, program_of
from mockube.container_runtime.simulated.shell.access import ContainerUser
from tests.support.images import IMAGES


def run(image, script, **context):
    described = {
        "image": image,
        "command": ["sh", "-c", script],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return program_of(IMAGES, described, CommandContext(**context))


@pytest.mark.parametrize(
    ("image", "script"),
    [
        ("debian:12", "apt-get update && apt-get install -y --no-install-recommends curl procps"),
        ("ubuntu", "apt update && apt install -y curl procps"),
        ("alpine", "apk add --no-cache curl procps"),
    ],
)
def test_installed_program_is_there(image, script):
    assert run(image, "command -v curl").exit_code == 127
    assert run(image, f"{script} && command -v curl && which ps").exit_code == 0


def test_program_of_a_package_that_is_not_simulated_is_not_simulated():
    assert run("debian:12", "git status").exit_code == 127
    assert run("debian:12", "apt-get update; apt-get install -y git; git status; exit 3") is None


def test_package_outside_of_the_table_is_not_simulated():
    assert run("debian:12", "apt-get update; apt-get install -y libfrobnicate-dev; exit 3") is None


@pytest.mark.parametrize(
    ("image", "script", "code", "message"),
    [
        (
            "debian:12",
            "apt-get update",
            100,
            "E: List directory /var/lib/apt/lists/partial is missing. - Acquire (13: Permission denied)\n",
        ),
        (
            "debian:12",
            "apt-get install -y curl",
            100,
            "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n",
        ),
        ("alpine", "apk add curl", 99, "ERROR: Unable to lock database: Permission denied\n"),
    ],
)
def test_only_root_installs_packages(image, script, code, message):
    end = run(image, script, identity=ContainerUser(1000))
    assert end.exit_code == code
    assert end.message.startswith(message)


def test_image_has_the_package_manager_of_its_distribution():
    assert run("debian:12", "apk add curl").exit_code == 127
    assert run("alpine", "apt-get update").exit_code == 127


def test_image_has_no_lists_of_packages():
    end = run("debian:12", "apt-get install -y curl")
    assert end.exit_code == 100
    assert end.message.endswith("E: Unable to locate package curl\n")


@pytest.mark.parametrize(
    ("image", "script", "code", "message"),
    [
        (
            "alpine",
            "apk add curl nosuchpkg",
            1,
            "ERROR: unable to select packages:\n  nosuchpkg (no such package):\n    required by: world[nosuchpkg]\n",
        ),
        ("alpine", "apk add 'cu rl'", 1, "cu rl (no such package):\n    required by: world[cu rl]\n"),
        (
            "debian:12",
            "apt-get update; apt-get install -y does-not-exist",
            100,
            "E: Unable to locate package does-not-exist\n",
        ),
    ],
)
def test_package_that_is_known_not_to_exist_is_not_installed(image, script, code, message):
    end = run(image, f"{script}; code=$?; command -v curl; exit $code")
    assert end.exit_code == code
    assert message in end.message


def test_version_of_a_package_is_no_letter_of_its_name():
    assert run("alpine", "apk add curl=8.5.0-r0 'jq>1.6' && command -v curl") is None
    assert run("alpine", "apk add --no-cache curl=8.5.0-r0 && command -v curl").exit_code == 0
