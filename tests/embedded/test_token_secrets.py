"""A token Secret gets a service account token that the API server accepts."""

import base64
import ssl
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

SECRET = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: builder}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: builder-token, annotations: {kubernetes.io/service-account.name: builder}}
"""


def test_token_secret_authenticates_until_account_is_deleted(cluster):
    cluster.apply(SECRET)
    secret = cluster.wait("Secret", "builder-token", lambda tree: "token" in (tree.get("data") or {}))
    data = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert data["namespace"] == "default"
    server = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    asked = Request(f"{server}/api/v1/nodes", headers={"Authorization": f"Bearer {data['token']}"})
    with pytest.raises(HTTPError) as refused:
        urlopen(asked, context=ssl.create_default_context(cadata=data["ca.crt"]))
    with refused.value as answer:
        assert answer.code == 403
        assert "system:serviceaccount:default:builder" in answer.read().decode()
    cluster.delete("ServiceAccount", "builder")
    cluster.wait_gone("Secret", "builder-token")
