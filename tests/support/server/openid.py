"""OpenID Connect tokens as issuers sign them, and the keys that issuers publish."""

import base64

import orjson
from jwt.algorithms import RSAAlgorithm

_ALGORITHM = RSAAlgorithm(RSAAlgorithm.SHA256)


def key_set(**keys):
    """Return a JSON Web Key Set of the public halves of RSA keys, by their ids."""
    public = {name: RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) for name, key in keys.items()}
    return {"keys": [one | {"kid": name} for name, one in public.items()]}


def part(value):
    data = value if isinstance(value, bytes) else orjson.dumps(value)
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(key, claims, kid="k"):
    text = f"{part({'alg': 'RS256', 'kid': kid})}.{part(claims)}"
    return f"{text}.{part(_ALGORITHM.sign(text.encode(), key))}"
