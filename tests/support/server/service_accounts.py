"""Objects that tokens of service accounts refer to, a server that issues tokens, and keys to sign them."""

import base64

import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.authn.serviceaccount.claims import Account, Reference
from mockube.apiserver.authn.serviceaccount.keys import load
from mockube.apiserver.authn.serviceaccount.tokens import ServiceAccounts
from mockube.component_base.clock import SteppedClock

UNSUPPORTED_SERVER = "no token of this kind"
ISSUER = "https://issuer"
API = ("api",)
ACCOUNT = Account(namespace="ns", account=Reference("robot", "uid-robot"))
HOUR = 3600


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


EC = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65537, 2048)


class ServiceAccountTokens:
    """The objects that tokens refer to, and a server that issues tokens."""

    def __init__(self, key=EC, others=()):
        self.clock = SteppedClock()
        self.objects = {}
        self.put("serviceaccounts", "ns", "robot")
        self.accounts = ServiceAccounts(
            load(pem(key), others),
            issuers=(ISSUER, "https://old"),
            audiences=API,
            find=self.find,
            clock=self.clock,
            random=SeededRandom(),
        )

    def put(self, resource, namespace, name, **metadata):
        self.objects[resource, namespace, name] = {
            "metadata": {"name": name, "uid": f"uid-{name}"} | metadata
        }

    async def find(self, resource, namespace, name):
        return self.objects.get((resource, namespace, name))

    def issue(self, account=ACCOUNT, audiences=API, seconds=HOUR):
        return self.accounts.issue_token(account, audiences=audiences, seconds=seconds).text

    async def authenticate(self, token, audiences=API):
        return await self.accounts.authenticate_token(token, audiences)


def claims_of(token):
    part = token.split(".")[1]
    return orjson.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


async def refusal(tokens, token):
    """Return why a token is refused; "" if it is valid."""
    try:
        known = await tokens.authenticate(token)
    except BadToken as error:
        return str(error)
    return "" if known else UNSUPPORTED_SERVER
