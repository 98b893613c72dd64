"""Write the objects of kubeadm's manifests as the API server reads them, after a change of the manifests.

python -m tools.kubeadm_objects
"""

import msgspec

from mockube.apimachinery.yaml_decode import load_all
from mockube.apiserver.bootstrap.kubeadm.objects import DATA, PHASES


def encoded_objects() -> bytes:
    """Return the objects by the name of their manifest, one manifest a line."""
    texts = ((phase, DATA.with_name("manifests").joinpath(f"{phase}.yaml").read_bytes()) for phase in PHASES)
    lines = (
        b'"%s":%s' % (phase.encode(), msgspec.json.encode([each.tree for each in load_all(text)]))
        for phase, text in texts
    )
    return b"{" + b",\n".join(lines) + b"}\n"


if __name__ == "__main__":
    DATA.write_bytes(encoded_objects())
