"""The request that renews the Leases of many simulated nodes, as the manager sends it and the API server serves it."""

from typing import Final

from msgspec import Struct

PATH: Final = "/mockube/lease-renewals"
MAX_NAMES: Final = 1000
"""The maximum of Leases that one request renews."""


class Renewals(Struct, rename="camel", forbid_unknown_fields=True):
    names: list[str]
    renew_time: str
