"""Acting as somebody else: what headers ask for, what must be allowed, and who comes out of it."""

import pytest

from apimachinery.status import BadRequest, Forbidden
from apiserver.authn.impersonation import impersonate, read
from apiserver.authz.chain import Authorization, Decision
from apiserver.rest.call import User

REAL = User(name="real")


class Permits:
    """Allows what it was told to; remembers what it was asked."""

    def __init__(self, *refused):
        self.refused = refused
        self.asked = []

    async def decide(self, attributes, /):
        where = "/".join(filter(None, (attributes.resource, attributes.subresource)))
        self.asked.append((where, attributes.namespace, attributes.name))
        return (Decision.NO_OPINION, "so it is") if where in self.refused else (Decision.ALLOW, "")


def test_without_headers_everybody_is_himself():
    assert read([]) is None


@pytest.mark.parametrize(
    "headers",
    [[("impersonate-group", "g")], [("impersonate-uid", "1")], [("impersonate-extra-scope", "a")]],
    ids=["group", "uid", "extra"],
)
def test_who_wants_a_part_must_want_a_user(headers):
    with pytest.raises(BadRequest, match="without impersonating a user"):
        read(headers)


@pytest.mark.parametrize(
    ("headers", "asked", "groups"),
    [
        pytest.param(
            [("impersonate-user", "bob")], [("users", "", "bob")], ("system:authenticated",), id="a user"
        ),
        pytest.param(
            [("impersonate-user", "bob"), ("impersonate-group", "a"), ("impersonate-group", "b")],
            [("users", "", "bob"), ("groups", "", "a"), ("groups", "", "b")],
            ("a", "b", "system:authenticated"),
            id="groups",
        ),
        pytest.param(
            [("impersonate-user", "system:serviceaccount:ns:robot")],
            [("serviceaccounts", "ns", "robot")],
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            id="a service account",
        ),
        pytest.param(
            [("impersonate-user", "system:anonymous")],
            [("users", "", "system:anonymous")],
            ("system:unauthenticated",),
            id="nobody",
        ),
        pytest.param(
            [("impersonate-user", "bob"), ("impersonate-group", "system:unauthenticated")],
            [("users", "", "bob"), ("groups", "", "system:unauthenticated")],
            ("system:unauthenticated",),
            id="somebody unknown",
        ),
        pytest.param(
            [
                ("impersonate-user", "bob"),
                ("impersonate-extra-acme.com%2fscope", "view"),
                ("impersonate-uid", "7"),
            ],
            [("users", "", "bob"), ("userextras/acme.com/scope", "", "view"), ("uids", "", "7")],
            ("system:authenticated",),
            id="extra and uid",
        ),
    ],
)
async def test_each_part_needs_a_permission(headers, asked, groups):
    permits = Permits()
    user = await impersonate(Authorization((permits,)), REAL, read(headers))
    assert permits.asked == asked
    assert (user.name, tuple(user.groups)) == (headers[0][1], groups)


async def test_extra_and_uid_become_the_users():
    wanted = read([("impersonate-user", "bob"), ("impersonate-uid", "7"), ("impersonate-extra-a", "1")])
    user = await impersonate(Authorization(), REAL, wanted)
    assert (user.uid, user.extra) == ("7", {"a": ["1"]})


async def test_one_refusal_is_enough():
    wanted = read([("impersonate-user", "bob"), ("impersonate-group", "system:masters")])
    with pytest.raises(Forbidden) as refused:
        await impersonate(Authorization((Permits("groups"),)), REAL, wanted)
    assert str(refused.value) == (
        'groups "system:masters" is forbidden: User "real" cannot impersonate resource "groups" '
        'in API group "" at the cluster scope: so it is'
    )
