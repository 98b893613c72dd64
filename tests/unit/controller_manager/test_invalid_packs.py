"""The controller manager refuses packs whose controllers are invalid, with a message about its flag."""

import pytest

from mockube.controller_manager.catalog import NAMES
from mockube.controller_manager.command_line import parse
from tests.support import packs

CONTROLLER = """
from mockube.controller_manager.control.actions import EMPTY_PLAN
from mockube.controller_manager.control.controller import Controller

def controller(name, service_account=""):
    return Controller(
        name=name, queue=name, service_account=service_account, watches=(), reconcile=lambda *_: EMPTY_PLAN, workers=1
    )
"""


def command_line(*flags):
    return parse(["--master=http://127.0.0.1:1", *flags], {}, NAMES)


@pytest.mark.parametrize(
    ("name", "controllers", "problem"),
    [
        pytest.param("wrong_controller", "(1,)", "1 of its controllers is neither a Controller nor a Runnable", id="a number"),
        pytest.param("failing_controller", "(1 / 0,)", "controllers failed: ZeroDivisionError: division by zero", id="an error"),
        pytest.param(
            "known_controller", '(controller("job-controller"),)',
            "its controller job-controller has the name of one of Kubernetes", id="a name that exists",
        ),
        pytest.param(
            "twin_controllers", '(controller("a"), controller("a"))',
            'its controller a has the name of one of pack "twin_controllers"', id="two of one name",
        ),
        pytest.param(
            "account_controller", '(controller("a", "website"),)',
            'its controller a has the service account website: it must be ""', id="a service account",
        ),
    ],
)  # fmt: skip
def test_invalid_controllers_are_refused(pack_folder, capsys, name, controllers, problem):
    packs.install(pack_folder, name, CONTROLLER + packs.pack_of(f"controllers=lambda _: {controllers}"))
    with pytest.raises(SystemExit) as ended:
        command_line(f"--packs={name}")
    assert ended.value.code == 2
    assert f'error: --packs: pack "{name}": {problem}' in capsys.readouterr().err


def test_invalid_images_are_refused(pack_folder, capsys):
    packs.install(pack_folder, "images_pack", packs.pack_of("images={'web': {'names': ['web'], 'port': 80}}"))
    with pytest.raises(SystemExit) as ended:
        command_line("--packs=images_pack")
    assert ended.value.code == 2
    problem = 'error: --packs: pack "images_pack": images: Object contains unknown field `port`'
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["cloud_provider", "help"], ids=["an ignored flag", "the help"])
def test_flag_that_exists_is_refused(pack_folder, capsys, flag):
    packs.install(pack_folder, f"{flag}_pack", packs.pack_with_flag(flag))
    with pytest.raises(SystemExit) as ended:
        command_line(f"--packs={flag}_pack")
    assert ended.value.code == 2
    problem = f'pack "{flag}_pack": its flag --{flag.replace("_", "-")} is one of the process'
    assert f"error: --packs: {problem}" in capsys.readouterr().err


def test_unknown_pack_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        command_line("--packs=unicorns")
    assert ended.value.code == 2
    assert 'error: --packs: unknown pack "unicorns", must be one of ' in capsys.readouterr().err


def test_controllers_of_pack_can_be_selected_by_name(pack_folder):
    packs.install(
        pack_folder, "chosen_pack", CONTROLLER + packs.pack_of('controllers=lambda _: [controller("shops")]')
    )
    flags = ("--controllers=*,-shops", "--packs=chosen_pack")
    assert command_line(*flags).controllers.controllers == ("*", "-shops")
    with pytest.raises(SystemExit):
        command_line("--controllers=*,-shops")


def test_controllers_of_pack_that_is_named_twice_run_once(pack_folder):
    text = CONTROLLER + packs.pack_of('controllers=lambda _: [controller("reviews")]')
    packs.install(pack_folder, "repeated_controllers", text)
    config = command_line("--packs=repeated_controllers,repeated_controllers")
    assert config.controllers.packs == ("repeated_controllers",)


def test_flags_of_pack_are_those_of_the_manager_while_it_is_on(pack_folder):
    controllers = "controllers=lambda flags: [controller(f'shops-{flags.concurrent_shop_syncs}')]"
    text = CONTROLLER + packs.pack_with_flag("concurrent_shop_syncs", controllers)
    packs.install(pack_folder, "flagged_pack", text)
    config = command_line("--packs=flagged_pack", "--concurrent-shop-syncs=7", "--controllers=shops-7")
    assert config.packs["flagged_pack"].concurrent_shop_syncs == 7
    with pytest.raises(SystemExit):
        command_line("--concurrent-shop-syncs=7")
