"""The files of certificate authorities that flags assign to signers."""

from pathlib import Path

import pytest

from mockube.controller_manager.config.signing import CAFiles, CertificateSigningOptions, signer_files

SIGNERS = ("kubelet_serving", "kubelet_client", "kube_apiserver_client", "legacy_unknown")
PAIR = CAFiles(Path("c"), Path("k"))


def files(**flags):
    named = {f"cluster_signing_{name}_file": Path(text) for name, text in flags.items()}
    return signer_files(CertificateSigningOptions(**named))._asdict()


def test_general_files_are_those_of_each_signer():
    assert files(cert="c", key="k") == dict.fromkeys(SIGNERS, PAIR)
    assert files() == files(cert="c") == files(key="k") == dict.fromkeys(SIGNERS)


@pytest.mark.parametrize("signer", SIGNERS)
def test_signer_with_files_of_its_own_is_the_only_one(signer):
    found = files(**{f"{signer}_cert": "c", f"{signer}_key": "k"})
    assert found == {**dict.fromkeys(SIGNERS), signer: PAIR}


@pytest.mark.parametrize("signer", SIGNERS)
@pytest.mark.parametrize(("given", "missing"), [("cert", "key"), ("key", "cert")])
def test_half_a_pair_is_refused(signer, given, missing):
    with pytest.raises(ValueError, match=f'"cluster-signing-.*": cannot specify {given} without {missing}'):
        files(**{f"{signer}_{given}": "x"})


@pytest.mark.parametrize("general", [{"cert": "c"}, {"key": "k"}, {"cert": "c", "key": "k"}])
def test_general_files_beside_others_are_refused(general):
    with pytest.raises(ValueError, match="at the same time"):
        files(kubelet_client_cert="c", kubelet_client_key="k", **general)
