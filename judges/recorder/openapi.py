"""Record the OpenAPI documents of a real server, as `tests/conformance/test_openapi.py` reads them.

    python -m judges.recorder.openapi

The server is started from the folder that MOCKUBE_REAL_KUBERNETES names. First its own documents are stored, then the
additions of the definitions of `custom.yaml`, with the hashes of all.
"""

import http.client
import lzma
import ssl
import tempfile
from base64 import b64encode
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import orjson
import yaml

from judges.recorder.control_plane import ControlPlane, control_plane
from tests.support.processes.real_kubernetes import require_folder
from tests.support.recorded.recordings import FOLDER

OPENAPI = FOLDER / "openapi"
HEADERS = {"Authorization": "Bearer admintoken"}
JSON = "application/json"
PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
IN_PROTOBUF = ("apis/authentication.k8s.io/v1", "version", "openid/v1/jwks", "apis")
"""The documents that are recorded in protobuf as well, besides those of custom kinds."""
V2 = "v2"
SETTLING = 300
"""How many times in a row the index has to be the same."""
MAX_TRIES = 6000


class Client:
    def __init__(self, plane: ControlPlane) -> None:
        self._address = urlsplit(plane.url).netloc
        self._context = ssl._create_unverified_context()

    def send(self, method: str, path: str, body: bytes = b"", accept: str = JSON) -> tuple[bytes, str]:
        """Return the body and the ETag of the response."""
        connection = http.client.HTTPSConnection(self._address, context=self._context)
        connection.request(method, path, body or None, {**HEADERS, "Accept": accept, "Content-Type": JSON})
        response = connection.getresponse()
        text = response.read()
        assert response.status in (200, 201), (path, response.status, text)
        return text, (response.getheader("ETag") or "").strip('"')

    def index(self) -> dict[str, str]:
        """Return the hash of each document of version 3."""
        paths = orjson.loads(self.send("GET", "/openapi/v3")[0])["paths"]
        return {
            folder: parse_qs(urlsplit(path["serverRelativeURL"]).query)["hash"][0]
            for folder, path in paths.items()
        }

    def documents(self, folders: set[str]) -> dict[str, dict]:
        documents = {
            folder: orjson.loads(self.send("GET", f"/openapi/v3/{folder}")[0]) for folder in sorted(folders)
        }
        return documents | {V2: orjson.loads(self.send("GET", "/openapi/v2")[0])}

    def protobufs(self, folders: Iterable[str]) -> dict[str, str]:
        return {
            folder: b64encode(self.send("GET", f"/openapi/v3/{folder}", accept=PROTOBUF)[0]).decode()
            for folder in folders
        }


def main() -> None:
    require_folder()
    with (
        tempfile.TemporaryDirectory(prefix="mockube-recorder-") as folder,
        control_plane(Path(folder), with_controllers=False) as plane,
    ):
        client = Client(plane)
        builtin = client.documents({*_settled(client)})
        _pack("builtin", builtin)
        definitions = list(yaml.safe_load_all((OPENAPI / "custom.yaml").read_text()))
        for definition in definitions:
            client.send(
                "POST",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                orjson.dumps(definition),
            )
        served = {
            f"apis/{definition['spec']['group']}/{version['name']}"
            for definition in definitions
            for version in definition["spec"]["versions"]
            if version["served"]
        }
        hashes = _settled(client, served)
        custom = client.documents(hashes.keys() - builtin.keys())
        custom[V2] = {
            part: {name: fact for name, fact in custom[V2][part].items() if name not in builtin[V2][part]}
            for part in ("paths", "definitions")
        }
        custom = {name: of for name, of in custom.items() if name.count("/") != 1}
        _pack("custom", custom)
        _pack("protobuf", client.protobufs([*(custom.keys() - {V2}), *IN_PROTOBUF]))
        hashes[f"{V2} with custom kinds"] = client.send("GET", "/openapi/v2")[1]
        (OPENAPI / "hashes.json").write_bytes(orjson.dumps(hashes, option=orjson.OPT_INDENT_2) + b"\n")


def _settled(client: Client, folders: AbstractSet[str] = frozenset()) -> dict[str, str]:
    """Return the hashes when they have these folders, and were the same many times in a row."""
    hashes: dict[str, str] = {}
    same = 0
    for _ in range(MAX_TRIES):
        found = client.index()
        same = same + 1 if found == hashes and folders <= found.keys() else 0
        hashes = found
        if same == SETTLING:
            return hashes
    raise RuntimeError(f"the documents still changed after {MAX_TRIES} requests")


def _pack(name: str, documents: dict[str, dict]) -> None:
    (OPENAPI / f"{name}.json.xz").write_bytes(lzma.compress(orjson.dumps(documents)))


if __name__ == "__main__":
    main()
