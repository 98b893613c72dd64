"""Defaults of authentication.k8s.io: how long a token lasts that is asked for without saying it."""

from typing import Final

from apiserver.defaults.table import of

DEFAULTS: Final = of("io.k8s.api.authentication.v1", {"TokenRequestSpec": {"expirationSeconds": 3600}})
