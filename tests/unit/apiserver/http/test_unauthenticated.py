"""Which connection is closed when too many are unauthenticated."""

from mockube.apiserver.http.unauthenticated import UnauthenticatedConnections


def filled(maximum, *addresses):
    connections, closed = UnauthenticatedConnections(maximum), []
    for number, address in enumerate(addresses):
        connections.add(number, address, lambda number=number: closed.append(number))
    return connections, closed


def test_the_one_that_has_waited_longest_goes():
    connections, closed = filled(3, *"aaaaa")
    assert (len(connections), closed) == (3, [0, 1])


def test_of_the_address_that_has_most():
    connections, closed = filled(4, *"abbbbcb")
    assert (len(connections), closed) == (4, [1, 2, 3])


def test_who_is_discarded_is_not_closed():
    connections, closed = filled(3, *"aaa")
    connections.discard(0)
    connections.discard(0)
    connections.add(3, "a", lambda: closed.append(3))
    assert (len(connections), closed) == (3, [])


def test_who_comes_back_waits_anew():
    connections, closed = filled(2, *"aa")
    connections.add(0, "a", lambda: closed.append(0))
    connections.add(2, "a", lambda: closed.append(2))
    assert closed == [1]


def test_nobody_has_to_go_where_nobody_is():
    UnauthenticatedConnections().evict()
