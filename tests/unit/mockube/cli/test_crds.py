"""`mockube crds` prints the definitions of an installed pack, and reports what is wrong with one."""

import pytest
import yaml

from mockube.cli.main import main
from tests.support import packs


def test_definitions_of_installed_pack_are_printed(pack_folder, capsys):
    packs.install(pack_folder, "printed_pack", packs.pack_of("", packs.definition()))
    assert main(["crds", "printed_pack"]) == 0
    tree = yaml.safe_load(capsys.readouterr().out)
    assert (tree["metadata"]["name"], tree["spec"]["names"]["singular"]) == (
        "websites.example.com",
        "website",
    )
    assert main(["crds", "printed_pack", "--without-conversion"]) == 0
    assert capsys.readouterr().out == packs.definition()


def test_pack_that_fails_is_reported(pack_folder, capsys):
    packs.install(pack_folder, "unprinted_pack", packs.pack_of("", "a: ["))
    assert main(["crds", "unprinted_pack"]) == 2
    assert capsys.readouterr().err.startswith(
        'mockube: pack "unprinted_pack": definitions failed: YamlError: '
    )


def test_unknown_pack_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["crds", "nothing"])
    assert ended.value.code == 2
    assert '"nothing" is not one of kruise' in capsys.readouterr().err


def test_up_reports_unknown_pack(capsys):
    assert main(["up", "--packs=nothing"]) == 2
    assert 'mockube: --packs: unknown pack "nothing", must be one of ' in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["keep", "allowed_hosts"], ids=["of the command", "of the API server"])
def test_up_refuses_pack_whose_flag_exists(pack_folder, capsys, flag):
    packs.install(pack_folder, f"{flag}_pack", packs.pack_with_flag(flag))
    assert main(["up", f"--packs={flag}_pack"]) == 2
    problem = f'pack "{flag}_pack": its flag --{flag.replace("_", "-")} is one of the process'
    assert f"mockube: --packs: {problem}" in capsys.readouterr().err
