"""Configurations of OIDC issuers and tokens; a real kube-apiserver and this server are tested with them."""

import base64

import orjson
from jwt.algorithms import ECAlgorithm, RSAAlgorithm, get_default_algorithms

BASE = "https://127.0.0.1:19443"
LATER = 4102444800
"""The year 2100."""

CONFIGURATION = f"""
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: {BASE}/a
    audiences: [mine]
    certificateAuthority: AUTHORITY
  claimMappings:
    username: {{claim: sub, prefix: "a:"}}
    groups: {{claim: groups, prefix: "g:"}}
    uid: {{claim: uid}}
- issuer:
    url: {BASE}/b
    discoveryURL: {BASE}/elsewhere
    audiences: [mine, other]
    audienceMatchPolicy: MatchAny
    certificateAuthority: AUTHORITY
  claimValidationRules:
  - {{expression: "claims.level > 1", message: the level is too low}}
  - {{expression: "!has(claims.blocked) || !claims.blocked"}}
  claimMappings:
    username: {{expression: "'b:' + claims.org.name + '/' + claims.sub"}}
    groups: {{expression: "claims.?roles.orValue([])"}}
    uid: {{expression: "string(claims.level)"}}
    extra:
    - {{key: example.org/team, valueExpression: "claims.team"}}
    - {{key: example.org/dotted, valueExpression: "has(claims.dots.a__dot__b) ? claims.dots.a__dot__b : ''"}}
  userValidationRules:
  - {{expression: "!user.username.startsWith('b:system')", message: system users are reserved}}
  - {{expression: "!('system:masters' in user.groups)"}}
  - {{expression: "!('example.org/dotted' in user.extra) || user.extra['example.org/dotted'].size() == 1"}}
- issuer:
    url: {BASE}/c
    audiences: [mine]
    certificateAuthority: AUTHORITY
  claimValidationRules:
  - {{claim: hd, requiredValue: example.com}}
  claimMappings:
    username: {{claim: email, prefix: ""}}
- issuer:
    url: {BASE}/d
    audiences: [mine]
    certificateAuthority: AUTHORITY
  claimMappings:
    username: {{expression: "claims.name"}}
    groups: {{expression: "claims.groups"}}
"""

A = {"iss": f"{BASE}/a", "aud": "mine", "sub": "ann", "exp": LATER, "uid": "u1", "groups": ["x", "y"]}
B = {
    "iss": f"{BASE}/b",
    "aud": ["strange", "other"],
    "sub": "bob",
    "exp": LATER,
    "level": 7,
    "org": {"name": "org"},
    "team": "blue",
    "dots": {"a.b": "dotted"},
}
C = {
    "iss": f"{BASE}/c",
    "aud": "mine",
    "sub": "cid",
    "exp": LATER,
    "email": "c@example.com",
    "hd": "example.com",
}
D = {"iss": f"{BASE}/d", "aud": "mine", "sub": "dan", "exp": LATER, "name": "dan", "groups": "one"}


def without(claims, *names):
    return {name: value for name, value in claims.items() if name not in names}


CLAIMS = {
    "usual": A,
    "one group as text": A | {"groups": "x"},
    "no groups": without(A, "groups"),
    "groups null": A | {"groups": None},
    "groups of numbers": A | {"groups": [1]},
    "groups of null": A | {"groups": [None]},
    "groups an object": A | {"groups": {}},
    "no subject": without(A, "sub"),
    "subject a number": A | {"sub": 1},
    "no uid": without(A, "uid"),
    "uid a number": A | {"uid": 1},
    "token id": A | {"jti": "id"},
    "token id a number": A | {"jti": 1},
    "another audience": A | {"aud": "other"},
    "audiences, one of them right": A | {"aud": ["mine", "other"]},
    "no audience": without(A, "aud"),
    "audience a number": A | {"aud": 1},
    "expired": A | {"exp": 1},
    "no expiry": without(A, "exp"),
    "expiry a text": A | {"exp": str(LATER)},
    "expiry no number": A | {"exp": "soon"},
    "expiry a fraction": A | {"exp": LATER + 0.5},
    "expiry true": A | {"exp": True},
    "expiry null": A | {"exp": None},
    "expiry negative": A | {"exp": -1},
    "expiry beyond all years": A | {"exp": 1e30},
    "issued in the future": A | {"iat": LATER},
    "valid since long": A | {"nbf": 1},
    "valid from null": A | {"nbf": None},
    "valid from a text": A | {"nbf": "x"},
    "audience null": A | {"aud": None},
    "audiences, one a number": A | {"aud": ["mine", 1]},
    "empty audiences": A | {"aud": []},
    "empty subject": A | {"sub": ""},
    "subject of other letters": A | {"sub": "ä☃"},
    "the same group twice": A | {"groups": ["a", "a"]},
    "groups of lists": A | {"groups": [["a"]]},
    "token id empty": A | {"jti": ""},
    "token id a list": A | {"jti": ["a"]},
    "issued a text": A | {"iat": "x"},
    "nobody's issuer": A | {"iss": "https://nobody.example"},
    "issuer with a slash": A | {"iss": f"{BASE}/a/"},
    "no issuer": without(A, "iss"),
    "claim names without sources": without(A, "groups") | {"_claim_names": {"groups": "s"}},
    "claim sources without the name": without(A, "groups")
    | {"_claim_names": {"groups": "s"}, "_claim_sources": {"t": {}}},
    "claim names no map": without(A, "groups") | {"_claim_names": "x", "_claim_sources": {}},
    "aggregated claims": without(A, "groups")
    | {"_claim_names": {"groups": "s"}, "_claim_sources": {"s": {"JWT": "x"}}},
    "system groups": A | {"groups": ["system:authenticated"]},
    "expressions": B,
    "roles": B | {"roles": ["r1", "", "r2"]},
    "roles a text": B | {"roles": "r1"},
    "roles of numbers": B | {"roles": [1, "r"]},
    "roles a number": B | {"roles": 1},
    "roles null": B | {"roles": None},
    "level too low": B | {"level": 1},
    "level a text": B | {"level": "7"},
    "no level": without(B, "level"),
    "level a fraction": B | {"level": 1.5},
    "level large": B | {"level": 12345678901},
    "blocked": B | {"blocked": True},
    "blocked by a text": B | {"blocked": "yes"},
    "no organization": without(B, "org"),
    "organization's name a number": B | {"org": {"name": 1}},
    "teams": B | {"team": ["blue", "red"]},
    "teams of lists": B | {"team": [["a"]]},
    "no teams": B | {"team": []},
    "team null": B | {"team": None},
    "expired, with expressions": B | {"exp": 1},
    "no team": without(B, "team"),
    "empty team": B | {"team": ""},
    "team a number": B | {"team": 1},
    "team of objects": B | {"team": [{}]},
    "no dotted": B | {"dots": {}},
    "dots a text": B | {"dots": "x"},
    "a system user": B | {"org": {"name": "system"}},
    "masters": B | {"roles": ["system:masters"]},
    "neither audience": B | {"aud": ["strange"]},
    "email": C,
    "email verified": C | {"email_verified": True},
    "email not verified": C | {"email_verified": False},
    "email verified by a text": C | {"email_verified": "true"},
    "no email": without(C, "email"),
    "no required claim": without(C, "hd"),
    "another required value": C | {"hd": "example.org"},
    "required claim a number": C | {"hd": 1},
    "name by an expression": D,
    "empty name": D | {"name": ""},
    "name a number": D | {"name": 1},
    "name null": D | {"name": None},
    "no name": without(D, "name"),
    "groups by an expression, an object": D | {"groups": {"a": 1}},
    "groups by an expression, null": D | {"groups": None},
    "groups by an expression, true": D | {"groups": True},
    "no groups for an expression": without(D, "groups"),
}
HEADERS = {
    "algorithm PS384": {"alg": "PS384"},
    "algorithm RS512": {"alg": "RS512"},
    "algorithm ES256": {"alg": "ES256", "kid": "curve"},
    "algorithm of another key": {"alg": "ES256", "kid": "rsa"},
    "algorithm none": {"alg": "none"},
    "algorithm HS256": {"alg": "HS256"},
    "no algorithm": {"alg": None},
    "no key id": {"kid": None},
    "strange key id": {"kid": "strange"},
    "a type": {"typ": "JWT"},
    "critical": {"crit": ["x"], "x": 1},
    "key id a number": {"kid": 1},
    "key id empty": {"kid": ""},
    "key id of another algorithm": {"kid": "curve"},
    "compressed": {"zip": "DEF"},
    "a strange type": {"typ": "weird"},
    "a key without a type": {"jwk": {}},
    "a key that is a text": {"jwk": "x"},
    "no key": {"jwk": None},
    "nonce": {"nonce": "x"},
    "nonce a number": {"nonce": 1},
    "certificates no base 64": {"x5c": ["?"]},
    "certificates cut": {"x5c": ["AAA"]},
    "certificates a text": {"x5c": "AA=="},
    "certificates empty": {"x5c": []},
    "a place of keys": {"jku": "https://evil.example"},
}
"""Headers of tokens with the usual claims."""
TEXTS = {
    "two parts": lambda token: ".".join(token.split(".")[:2]),
    "four parts": lambda token: f"{token}.x",
    "signature cut": lambda token: token[:-4],
    "signature no base 64": lambda token: f"{token[:-4]}****",
    "signature of five characters": lambda token: f"{token.rpartition('.')[0]}.abcde",
    "signature of another": lambda token: f"{token.rpartition('.')[0]}.{'A' * 342}",
    "head no JSON": lambda token: f"bm9uZQ.{token.partition('.')[2]}",
    "payload no JSON": lambda token: f"{token.split('.')[0]}.bm9uZQ.{token.split('.')[2]}",
    "a JSON token": lambda _: orjson.dumps(
        {"payload": "e30", "protected": "e30", "signature": "e30"}
    ).decode(),
    "padding": lambda token: f"{token}==",
}


def encode_part(value):
    data = value if isinstance(value, bytes) else orjson.dumps(value)
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(keys, claims, header=None):
    """Sign claims with an RSA key, or with an EC key if the algorithm needs one."""
    head = {"alg": "RS256", "kid": "rsa"} | (header or {})
    head = {name: value for name, value in head.items() if value is not None}
    text = f"{encode_part(head)}.{encode_part(claims)}"
    algorithm = head.get("alg", "RS256")
    if algorithm in ("none", "HS256"):
        return f"{text}.{encode_part(b'x' * 32)}"
    key = keys["curve" if algorithm.startswith("ES") else "rsa"]
    return f"{text}.{encode_part(get_default_algorithms()[algorithm].sign(text.encode(), key))}"


def tokens(keys):
    """Return the tokens by the names of their cases."""
    usual = sign(keys, A)
    return (
        {name: sign(keys, claims) for name, claims in CLAIMS.items()}
        | {name: sign(keys, A, header) for name, header in HEADERS.items()}
        | {name: change(usual) for name, change in TEXTS.items()}
    )


def key_set(keys):
    rsa = RSAAlgorithm.to_jwk(keys["rsa"].public_key(), as_dict=True)
    curve = ECAlgorithm.to_jwk(keys["curve"].public_key(), as_dict=True)
    return {"keys": [rsa | {"kid": "rsa"}, curve | {"kid": "curve"}, {"kty": "oct", "k": "AA"}]}


def pages(keys):
    """Return the documents that the issuers publish, by path."""
    found = {
        f"/{name}/.well-known/openid-configuration": {"issuer": f"{BASE}/{name}", "jwks_uri": f"{BASE}/keys"}
        for name in "acd"
    }
    return found | {"/elsewhere": {"issuer": f"{BASE}/b", "jwks_uri": f"{BASE}/keys"}, "/keys": key_set(keys)}
