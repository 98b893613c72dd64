"""The API server refuses packs that are invalid, or whose kinds exist already, with a message about its flag."""

import pytest

from mockube.apiserver.config.command_line import parse
from tests.support import packs


def refusal(capsys, *names):
    """Return the last line of what the API server prints about packs that it refuses."""
    with pytest.raises(SystemExit) as ended:
        parse([f"--packs={','.join(names)}"], {})
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1].partition("error: --packs: ")[2]


def test_unknown_pack_is_refused(capsys):
    assert refusal(capsys, "unicorns").startswith('unknown pack "unicorns", must be one of ')


def test_kind_in_group_of_kubernetes_is_refused(pack_folder, capsys):
    packs.install(
        pack_folder, "apps_pack", packs.pack_of("", packs.definition("deployments", "apps", "Deployment"))
    )
    problem = 'pack "apps_pack": Deployment cannot be defined, because apps is a group of Kubernetes'
    assert refusal(capsys, "apps_pack") == problem


@pytest.mark.parametrize(
    ("other", "name"),
    [
        pytest.param(("websites", "example.com", "Site"), "websites", id="same plural"),
        pytest.param(("sites", "example.com", "Website"), "Website", id="same kind"),
    ],
)
def test_kind_of_another_pack_is_refused(pack_folder, capsys, other, name):
    first, second = f"first_{name}", f"second_{name}"
    packs.install(pack_folder, first, packs.pack_of("", packs.definition()))
    packs.install(pack_folder, second, packs.pack_of("", packs.definition(*other)))
    assert (
        refusal(capsys, first, second) == f'packs "{first}" and "{second}" both define {name} of example.com'
    )


def test_two_definitions_of_a_kind_in_a_pack_are_refused(pack_folder, capsys):
    definitions = packs.definition(), packs.definition(kind="Site")
    packs.install(pack_folder, "doubled_pack", packs.pack_of("", *definitions))
    problem = 'pack "doubled_pack": two of its definitions define websites of example.com'
    assert refusal(capsys, "doubled_pack") == problem


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        pytest.param("text_pack", "a: [", "definitions failed: YamlError: ", id="no YAML"),
        pytest.param(
            "map_pack", "kind: ConfigMap", "its definitions contain an object that is no CustomResourceDefinition",
            id="another kind",
        ),
        pytest.param(
            "bad_pack", packs.definition().replace("scope: Namespaced", "scope: Galactic"),
            'the definition websites.example.com is invalid: spec.scope: Unsupported value: "Galactic"', id="invalid field",
        ),
        pytest.param(
            "no_pack", "apiVersion: apiextensions.k8s.io/v1", "definitions failed: KeyError: 'spec'", id="without fields"
        ),
    ],
)  # fmt: skip
def test_invalid_definition_is_refused(pack_folder, capsys, name, text, problem):
    packs.install(pack_folder, name, packs.pack_of("", text))
    assert refusal(capsys, name).startswith(f'pack "{name}": {problem}')


@pytest.mark.parametrize(
    ("name", "webhooks", "problem"),
    [
        pytest.param(
            "wrong_hook_pack",
            "(1,)",
            "1 of its webhooks is neither a KindWebhook nor a Plugin",
            id="a number",
        ),
        pytest.param(
            "failing_hook_pack",
            "(1 / 0,)",
            "webhooks failed: ZeroDivisionError: division by zero",
            id="an error",
        ),
        pytest.param(
            "lost_hook_pack",
            "(__import__('mockube.apiserver.packs.webhook', fromlist=['x']).KindWebhook(group='example.com', resource='shops'),)",
            "there is no shops.example.com for its webhook",
            id="of a missing kind",
        ),
    ],
)
def test_invalid_webhook_is_refused(pack_folder, capsys, name, webhooks, problem):
    packs.install(pack_folder, name, packs.pack_of(f"webhooks=lambda: {webhooks}", packs.definition()))
    assert refusal(capsys, name).startswith(f'pack "{name}": {problem}')


def test_pack_that_is_named_twice_is_served_once(pack_folder):
    packs.install(pack_folder, "repeated_pack", packs.pack_of("", packs.definition()))
    config = parse(["--packs=repeated_pack", "--packs=repeated_pack"], {})
    assert config.features.packs == ("repeated_pack",)
