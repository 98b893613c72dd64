"""kubeadm token on a control-plane node. The messages were recorded with kubeadm 1.37.2."""

import pytest

from tests.support.node_machine import NODE, Machine

CONTROL_PLANE = {
    **NODE,
    "metadata": {**NODE["metadata"], "labels": {"node-role.kubernetes.io/control-plane": ""}},
}
TOKEN = "abcdef.0123456789abcdef"
DEFAULT_GROUP = "system:bootstrappers:kubeadm:default-node-token"
LISTED = [
    {"token": TOKEN, "expires": "2030-01-01T23:59:00Z", "usages": ["authentication", "signing"], "description": "a <b>", "groups": ["g", "h"]},
    {"token": "other0.0123456789abcdef", "expires": "", "usages": [], "description": "", "groups": []},
]  # fmt: skip
END = "\nTo see the stack trace of this error execute with --v=5 or higher\n"
FORMS = r'"\\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z" or "\\A([a-z0-9]{6})\\z"'
WITHOUT_AUTHENTICATION = 'token groups cannot be specified unless --usages includes "authentication"'
FOO = r'bootstrap group "foo" is invalid (must match \Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z)'


@pytest.fixture
def machine():
    return Machine(
        CONTROL_PLANE,
        **{
            "tokens": LISTED,
            "token.create": {"token": TOKEN, "server": "10.0.0.9:6443", "hash": "sha256:00"},
            "token.delete": None,
            "token.generate": TOKEN,
        },
    )


def created(machine, *arguments):
    """Return what `kubeadm token create` asks for."""
    assert machine.run("kubeadm", "token", "create", *arguments) == (0, f"{TOKEN}\n", "")
    return machine.requests[-1][1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "--usages", "signing"], f'bootstrapTokens.0.groups: Invalid value: ["{DEFAULT_GROUP}"]: {WITHOUT_AUTHENTICATION}'),
        (["create", "--usages", "signing", "--groups", ""], f'bootstrapTokens.0.groups: Invalid value: ["{DEFAULT_GROUP}"]: {WITHOUT_AUTHENTICATION}'),
        (
            ["create", "--usages=signing", "--groups=foo"],
            f'[bootstrapTokens.0.groups: Invalid value: ["foo"]: {WITHOUT_AUTHENTICATION}, bootstrapTokens.0.groups: Invalid value: ["foo"]: {FOO}]',
        ),
        (["create", "--groups", "foo"], f'bootstrapTokens.0.groups: Invalid value: ["foo"]: {FOO}'),
        (
            ["create", "--usages", "foo,bar,authentication"],
            ('bootstrapTokens.0.usages: Invalid value: ["foo","bar","authentication"]: '
            "invalid bootstrap token usage string: bar,foo, valid usage options: signing,authentication"),
        ),
        (["create", "nonsense"], r'the bootstrap token "nonsense" was not of the form "\\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z"'),
        (["create", "--ttl", "5"], 'invalid argument "5" for "--ttl" flag: time: missing unit in duration "5"'),
        (["create", "--ttl"], "flag needs an argument: --ttl"),
        (["create", "--foo"], "unknown flag: --foo"),
        (["create", "-x"], "unknown shorthand flag: 'x' in -x"),
        (["create", "--certificate-key", "abc"], "cannot use --certificate-key without --print-join-command"),
        (
            ["create", "--print-join-command=maybe"],
            'invalid argument "maybe" for "--print-join-command" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (["list", "--v=x"], 'invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax'),
        (
            ["create", "--usages", '"a'],
            r'invalid argument "\"a" for "--usages" flag: parse error on line 1, column 3: extraneous or missing " in quoted-field',
        ),
        (["list", "a"], 'unknown command "a" for "kubeadm token list"'),
        (["list", "-o", "jsonpath"], "could not construct output printer: template format specified but no template given"),
        (
            ["list", "-o", "wide"],
            ('could not construct output printer: unable to match a printer suitable for the output format "wide", allowed formats are: '
            "go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,template,templatefile,text,yaml"),
        ),
        (["list", "--kubeconfig", "/nosuch"], "failed to load admin kubeconfig: open /nosuch: no such file or directory"),
        (["delete", "nonsense"], f"given token didn't match pattern {FORMS}"),
        (["delete", "abcdef.short"], f"given token didn't match pattern {FORMS}"),
        (["delete"], f"missing argument; 'token delete' is missing token of form {FORMS}"),
        (["generate", "x"], 'unknown command "x" for "kubeadm token generate"'),
        (["lst"], 'unknown command "lst" for "kubeadm token"'),
        (["--foo"], "unknown flag: --foo"),
    ],
)  # fmt: skip
def test_wrong_use_ends_with_the_words_of_kubeadm(machine, arguments, message):
    code, output, errors = machine.run("kubeadm", "token", *arguments)
    assert (code, output, errors) == (1, "", f"error: {message}{END}")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["create", "--dry-run"], "kubeadm token create --dry-run"),
        (["create", "--config", "/x"], "kubeadm token create --config"),
        (["list", "--vmodule=a=1"], "kubeadm token list --vmodule"),
        (["list", "-o", "go-template={{.token}}"], "kubeadm token list --output=go-template"),
        (["list", "-o", "kyaml"], "kubeadm token list --output=kyaml"),
        (["list", "-o=jsonpath={.x}", "--allow-missing-template-keys=false"], "--allow-missing-template-keys=false"),
        (["list", "--kubeconfig", "/etc/kubernetes/kubelet.conf"], "--kubeconfig=/etc/kubernetes/kubelet.conf"),
    ],
)  # fmt: skip
def test_flag_that_is_not_simulated_is_refused_by_name(machine, arguments, named):
    code, output, errors = machine.run("kubeadm", "token", *arguments)
    assert (code, output) == (1, "")
    assert f"{named} is not simulated" in errors
    assert not machine.requests


def test_created_token_has_the_usages_and_groups_of_the_flags(machine):
    usages = ["--usages", "authentication"]
    groups = ["--groups", "system:bootstrappers:a", "--groups=system:bootstrappers:b,system:bootstrappers:c"]
    assert created(machine, "-v", "1", *usages, *groups, "--description", "x y", "--ttl", "1h30m", TOKEN) == {
        "token": TOKEN,
        "ttl": 5400.0,
        "description": "x y",
        "usages": ["authentication"],
        "groups": [f"system:bootstrappers:{name}" for name in "abc"],
    }


@pytest.mark.parametrize("arguments", [[], ["--usages", "", "--groups="]])
def test_created_token_has_the_default_usages_and_groups(machine, arguments):
    assert created(machine, *arguments) == {
        "token": "",
        "ttl": 86400.0,
        "description": "",
        "usages": ["signing", "authentication"],
        "groups": [DEFAULT_GROUP],
    }


@pytest.mark.parametrize("ttl", ["0", "-1h"])
def test_token_without_time_to_live_never_expires(machine, ttl):
    assert created(machine, f"--ttl={ttl}")["ttl"] == 0


def test_join_command_of_a_control_plane_has_the_key(machine):
    arguments = ("--print-join-command", "--certificate-key", "abc")
    assert (
        machine.run("kubeadm", "token", "create", *arguments)[1]
        == f"kubeadm join 10.0.0.9:6443 --token {TOKEN} --discovery-token-ca-cert-hash sha256:00 --control-plane --certificate-key abc\n"
    )


def test_table_of_tokens_has_the_columns_of_kubeadm(machine):
    description = f"{'a <b>':<56}"
    assert machine.run("kubeadm", "token", "list")[1].splitlines() == [
        f"TOKEN                     TTL         EXPIRES                USAGES                   {'DESCRIPTION':<56}   EXTRA GROUPS",
        f"{TOKEN}   23h         2030-01-01T23:59:00Z   authentication,signing   {description}   g,h",
        f"other0.0123456789abcdef   <forever>   <never>   {'<none>':<22}   {'<none>':<56}   <none>",
    ]


def test_tokens_as_json_are_documents_one_after_the_other(machine):
    assert (
        machine.run("kubeadm", "token", "list", "-o", "json")[1]
        == f"""\
{{
    "kind": "BootstrapToken",
    "apiVersion": "output.kubeadm.k8s.io/v1alpha3",
    "token": "{TOKEN}",
    "description": "a \\u003cb\\u003e",
    "expires": "2030-01-01T23:59:00Z",
    "usages": [
        "authentication",
        "signing"
    ],
    "groups": [
        "g",
        "h"
    ]
}}
{{
    "kind": "BootstrapToken",
    "apiVersion": "output.kubeadm.k8s.io/v1alpha3",
    "token": "other0.0123456789abcdef"
}}
"""
    )


def test_tokens_as_yaml_are_documents_of_a_stream(machine):
    first, second = machine.run("kubeadm", "token", "list", "--output=yaml")[1].split("---\n")
    assert 'description: a <b>\nexpires: "2030-01-01T23:59:00Z"\ngroups:\n- g\n- h\n' in first
    assert second == (
        "apiVersion: output.kubeadm.k8s.io/v1alpha3\nkind: BootstrapToken\ntoken: other0.0123456789abcdef\n"
    )


def test_template_is_expanded_for_each_token(machine):
    output = machine.run("kubeadm", "token", "list", "-o", 'jsonpath={.token} {.usages[0]}{"\\n"}')[1]
    assert output == f"{TOKEN} authentication\nother0.0123456789abcdef \n"


def test_token_is_deleted_by_its_id_or_by_its_whole_text(machine):
    output = machine.run("kubeadm", "token", "delete", "aaaaaa", TOKEN)[1]
    assert output == 'bootstrap token "aaaaaa" deleted\nbootstrap token "abcdef" deleted\n'


def test_subcommand_is_required(machine):
    code, output, errors = machine.run("kubeadm", "token")
    assert (code, errors) == (1, f"error: \nerror: subcommand is required{END}")
    assert output.startswith("Usage:\n")


@pytest.mark.parametrize("path", ["/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf"])
def test_kubeconfig_of_an_administrator_can_be_named(machine, path):
    assert machine.run("kubeadm", "--kubeconfig", path, "token", "list")[0] == 0
