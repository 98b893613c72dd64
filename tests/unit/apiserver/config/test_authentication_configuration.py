from argparse import ArgumentTypeError

import pytest

from mockube.apiserver.config.authentication_configuration import NO_FILE, authentication_configuration

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"


def read(folder, text):
    file = folder / "authentication.yaml"
    file.write_text(text)
    return authentication_configuration(str(file))


def test_anonymous_paths_are_read(tmp_path):
    found = read(tmp_path, f"{HEAD}anonymous: {{enabled: true, conditions: [{{path: /livez}}]}}")
    assert (found.anonymous, found.anonymous_paths) == (True, {"/livez"})
    assert read(tmp_path, f"{HEAD}anonymous: {{enabled: false}}").anonymous is False
    assert read(tmp_path, HEAD).anonymous is NO_FILE.anonymous is None


WRONG = {
    "another kind": ("kind: Pod\napiVersion: v1", "expected AuthenticationConfiguration"),
    "a field": (f"{HEAD}x: 1", 'strict decoding error: unknown field "x"'),
    "no object": (f"{HEAD}anonymous: 1", "json: cannot unmarshal number into Go struct field"),
    "no YAML": (f"{HEAD}x: [", "yaml"),
}


@pytest.mark.parametrize(("text", "problem"), WRONG.values(), ids=WRONG)
def test_invalid_authentication_configuration_is_reported(tmp_path, text, problem):
    with pytest.raises(ArgumentTypeError) as raised:
        read(tmp_path, text)
    assert problem in str(raised.value)
