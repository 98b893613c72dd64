import pytest

from mockube.apimachinery import names
from mockube.apimachinery.randomness import SeededRandom

ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"
LABEL_REGEX = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
KEY_REGEX = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

LABEL = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {ALPHANUMERIC_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL_REGEX}')"
)
SUBDOMAIN = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    f"{ALPHANUMERIC_ENDS} "
    rf"(e.g. 'example.com', regex used for validation is '{LABEL_REGEX}(\.{LABEL_REGEX})*')"
)
SUBDOMAIN_WITH_UNDERSCORE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    f"{ALPHANUMERIC_ENDS} (e.g. 'example.com', regex used for validation is "
    r"'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
)
WILDCARD = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
    rf"(e.g. '*.example.com', regex used for validation is '\*\.{LABEL_REGEX}(\.{LABEL_REGEX})*')"
)
DNS1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character "
    "(e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
KEY_NAME = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {ALPHANUMERIC_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY_REGEX}')"
)
OPTIONAL_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
LABEL_VALUE = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    f"{ALPHANUMERIC_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({KEY_REGEX})?')"
)
C_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' "
    "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
ENV_VAR = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
    "and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', "
    "regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
RELAXED_ENV_VAR = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
)
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
PORT_CHARACTERS = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
PORT_LETTER = "must contain at least one letter (a-z)"


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (names.check_dns1123_label, "a"),
        (names.check_dns1123_label, "0-a"),
        (names.check_dns1123_label, "a" * 63),
        (names.check_dns1123_subdomain, "a.b-c.0"),
        (names.check_dns1123_subdomain, "a" * 253),
        (names.check_dns1123_subdomain_with_underscore, "_a.b_c"),
        (names.check_wildcard_dns1123_subdomain, "*.example.com"),
        (names.check_dns1035_label, "a-1"),
        (names.check_label_key, "app"),
        (names.check_label_key, "example.com/My_Name.1"),
        (names.check_label_value, ""),
        (names.check_label_value, "My_Value.1"),
        (names.check_kube_finalizer_name, "kubernetes"),
        (names.check_kube_finalizer_name, "example.com/mine"),
        (names.check_path_segment_name, "anything: goes"),
        (names.check_path_segment_prefix, "."),
        (names.check_c_identifier, "_a1"),
        (names.check_env_var_name, "my.env-name"),
        (names.check_relaxed_env_var_name, "1 + 1!"),
        (names.check_config_map_key, ".key"),
        (names.check_http_header_name, "X-Header"),
        (names.check_port_name, "http-8080"),
        (names.check_percent, "250%"),
        (names.check_port_number, 1),
        (names.check_port_number, 65535),
    ],
    ids=lambda case: getattr(case, "__name__", None),
)
def test_valid_names_pass(check, value):
    assert check(value) == []


@pytest.mark.parametrize(
    ("check", "value", "problems"),
    [
        pytest.param(names.check_dns1123_label, "", [LABEL], id="label, empty"),
        pytest.param(names.check_dns1123_label, "A", [LABEL], id="label, upper case"),
        pytest.param(names.check_dns1123_label, "a-", [LABEL], id="label, ends with a dash"),
        pytest.param(names.check_dns1123_label, "a\n", [LABEL], id="label, ends with a newline"),
        pytest.param(names.check_dns1123_label, "a.b", ["must not contain dots"], id="label, dotted"),
        pytest.param(
            names.check_dns1123_label, "a" * 64, ["must be no more than 63 characters"], id="label, long"
        ),
        pytest.param(
            names.check_dns1123_label,
            "é" * 32,
            ["must be no more than 63 characters", LABEL],
            id="label, long in bytes",
        ),
        pytest.param(names.check_dns1123_subdomain, "a..b", [SUBDOMAIN], id="subdomain"),
        pytest.param(
            names.check_dns1123_subdomain,
            "a" * 254,
            ["must be no more than 253 characters"],
            id="subdomain, long",
        ),
        pytest.param(
            names.check_dns1123_subdomain_with_underscore,
            "a__",
            [SUBDOMAIN_WITH_UNDERSCORE],
            id="subdomain with underscore",
        ),
        pytest.param(names.check_wildcard_dns1123_subdomain, "*.*.a", [WILDCARD], id="wildcard"),
        pytest.param(names.check_dns1035_label, "0a", [DNS1035], id="1035"),
        pytest.param(
            names.check_dns1035_label,
            "-" * 64,
            ["must be no more than 63 characters", DNS1035],
            id="1035, too long and invalid",
        ),
        pytest.param(
            names.check_label_key,
            "",
            ["name part must be non-empty", f"name part {KEY_NAME}"],
            id="key, empty",
        ),
        pytest.param(names.check_label_key, "a b", [f"name part {KEY_NAME}"], id="key"),
        pytest.param(
            names.check_label_key, "a" * 64, ["name part must be no more than 63 bytes"], id="key, long name"
        ),
        pytest.param(names.check_label_key, "/a", ["prefix part must be non-empty"], id="key, empty prefix"),
        pytest.param(names.check_label_key, "A/b", [f"prefix part {SUBDOMAIN}"], id="key, prefix"),
        pytest.param(
            names.check_label_key,
            "a" * 254 + "/b",
            ["prefix part must be no more than 253 bytes"],
            id="key, long prefix",
        ),
        pytest.param(
            names.check_label_key,
            "a/b/c",
            [f"a valid label key {KEY_NAME} {OPTIONAL_PREFIX}"],
            id="key, two slashes",
        ),
        pytest.param(names.check_label_value, "a b", [LABEL_VALUE], id="value"),
        pytest.param(names.check_label_value, "a" * 64, ["must be no more than 63 bytes"], id="value, long"),
        pytest.param(
            names.check_kube_finalizer_name,
            "mine",
            ["name is neither a standard finalizer name nor is it fully qualified"],
            id="finalizer",
        ),
        pytest.param(names.check_path_segment_name, ".", ["may not be '.'"], id="path segment, dot"),
        pytest.param(names.check_path_segment_name, "..", ["may not be '..'"], id="path segment, dots"),
        pytest.param(
            names.check_path_segment_name,
            "a%/",
            ["may not contain '/'", "may not contain '%'"],
            id="path segment, characters",
        ),
        pytest.param(names.check_c_identifier, "1a", [C_IDENTIFIER], id="C identifier"),
        pytest.param(names.check_env_var_name, "1a", [ENV_VAR], id="variable"),
        pytest.param(names.check_env_var_name, ".", ["must not be '.'"], id="variable, dot"),
        pytest.param(names.check_env_var_name, "..a", ["must not start with '..'"], id="variable, dots"),
        pytest.param(
            names.check_relaxed_env_var_name,
            "",
            ["environment variable name must be non-empty"],
            id="relaxed variable, empty",
        ),
        pytest.param(
            names.check_relaxed_env_var_name, "a=b", [RELAXED_ENV_VAR], id="relaxed variable, equals"
        ),
        pytest.param(
            names.check_relaxed_env_var_name, "é", [RELAXED_ENV_VAR], id="relaxed variable, not ASCII"
        ),
        pytest.param(
            names.check_relaxed_env_var_name, "a\t", [RELAXED_ENV_VAR], id="relaxed variable, control"
        ),
        pytest.param(names.check_config_map_key, "a/b", [CONFIG_KEY], id="config key"),
        pytest.param(names.check_config_map_key, "..", ["must not be '..'"], id="config key, dots"),
        pytest.param(
            names.check_config_map_key,
            "a" * 254,
            ["must be no more than 253 characters"],
            id="config key, long",
        ),
        pytest.param(names.check_http_header_name, "X_Y", [HEADER], id="header"),
        pytest.param(names.check_port_name, "", [PORT_CHARACTERS, PORT_LETTER], id="port name, empty"),
        pytest.param(names.check_port_name, "A", [PORT_CHARACTERS, PORT_LETTER], id="port name, upper case"),
        pytest.param(
            names.check_port_name, "a" * 16, ["must be no more than 15 characters"], id="port name, long"
        ),
        pytest.param(
            names.check_port_name,
            "-a--b",
            ["must not contain consecutive hyphens", "must not begin or end with a hyphen"],
            id="port name, hyphens",
        ),
        pytest.param(
            names.check_port_name,
            "a-",
            ["must not begin or end with a hyphen"],
            id="port name, hyphen at its end",
        ),
        pytest.param(names.check_percent, "5", [PERCENT], id="percent"),
        pytest.param(names.check_port_number, 0, ["must be between 1 and 65535, inclusive"], id="port 0"),
        pytest.param(
            names.check_port_number, 65536, ["must be between 1 and 65535, inclusive"], id="port 65536"
        ),
    ],
)
def test_invalid_names_are_refused(check, value, problems):
    assert check(value) == problems


def test_newer_checks_count_bytes():
    assert names.check_dns1123_label("a" * 64, names.BYTES) == ["must be no more than 63 bytes"]
    assert names.check_dns1123_subdomain("a" * 254, names.BYTES) == ["must be no more than 253 bytes"]


@pytest.mark.parametrize(
    ("prefix", "masked"),
    [
        pytest.param("web", "web", id="no dash"),
        pytest.param("web-", "wea", id="dash"),
        pytest.param("-", "-", id="only a dash"),
    ],
)
def test_mask_trailing_dash(prefix, masked):
    assert names.mask_trailing_dash(prefix) == masked


def test_generate_name():
    name = names.generate_name("web-", SeededRandom())
    assert name.startswith("web-")
    assert len(name) == 9
    assert names.check_dns1123_label(name) == []


def test_generated_names_fit_into_a_label():
    assert len(names.generate_name("a" * 100, SeededRandom())) == 63
