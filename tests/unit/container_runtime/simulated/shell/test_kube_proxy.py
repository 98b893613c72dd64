"""kube-proxy and CoreDNS end with the reason when they cannot read their configuration."""

import pytest

from tests.support.shell_network import run_script

HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"


def log_of(command):
    result = run_script(command)
    assert result.code == 1
    return result.err


def test_missing_file_of_configuration_is_named():
    log = log_of("kube-proxy --config=/var/lib/kube-proxy/configuration.conf --hostname-override=n")
    assert log.startswith("E")
    assert log.endswith(
        'run.go:72] "command failed" err="failed complete: open /var/lib/kube-proxy/configuration.conf: '
        'no such file or directory"\n'
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "failed complete: failed to decode: yaml: line "),
        ("a: 1", "Object 'Kind' is missing in '{\\\"a\\\":1}'"),
        ("- a", "couldn't get version/kind"),
        (
            HEAD.replace("v1alpha1", "v9"),
            'is registered for version \\"kubeproxy.config.k8s.io/v9\\" in scheme',
        ),
        (HEAD + "mode: ebpf\n", 'Invalid value: \\"ebpf\\": must be iptables, ipvs, nftables or blank'),
    ],
)
def test_invalid_configuration_is_refused_with_the_reason(text, problem):
    assert problem in log_of(f"cat > /c <<'END'\n{text}\nEND\nkube-proxy --config /c")


@pytest.mark.parametrize("command", ["coredns", "coredns -conf Corefile", "cd /c; coredns -conf ../Corefile"])
def test_file_of_configuration_is_relative_to_the_working_directory(command):
    log = log_of(f"mkdir /c; cd /; printf '.:53 {{\\n  forwrd\\n}}\\n' > Corefile; {command}")
    assert "Unknown directive 'forwrd'" in log
    assert "open none: no such file" in log_of("kube-proxy --config none")
