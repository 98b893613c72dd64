from argparse import ArgumentTypeError

import pytest

from mockube.apiserver.config.authentication_configuration import UNSAID, authentication_configuration

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"


def read(folder, text):
    file = folder / "authentication.yaml"
    file.write_text(text)
    return authentication_configuration(str(file))


def test_the_paths_of_anonymous_requests_are_read(tmp_path):
    found = read(tmp_path, f"{HEAD}anonymous: {{enabled: true, conditions: [{{path: /livez}}]}}")
    assert (found.enabled, found.paths) == (True, {"/livez"})
    assert read(tmp_path, f"{HEAD}anonymous: {{enabled: false}}").enabled is False
    assert read(tmp_path, HEAD) == UNSAID


WRONG = {
    "another kind": ("kind: Pod\napiVersion: v1", "it is no AuthenticationConfiguration"),
    "tokens": (f"{HEAD}jwt: [{{}}]", "jwt: authenticators of tokens of other issuers are not built"),
    "a field": (f"{HEAD}x: 1", 'unknown field "x" in the file'),
    "no object": (f"{HEAD}anonymous: 1", "anonymous is no object"),
    "no condition": (f"{HEAD}anonymous: {{enabled: true, conditions: [{{}}]}}", "each has a path"),
    "conditions of nothing": (
        f"{HEAD}anonymous: {{conditions: [{{path: /}}]}}",
        "enabled should be set to true when conditions are defined",
    ),
}


@pytest.mark.parametrize(("text", "problem"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_file_is_told(tmp_path, text, problem):
    with pytest.raises(ArgumentTypeError) as raised:
        read(tmp_path, text)
    assert problem in str(raised.value)
