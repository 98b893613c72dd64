"""Which connection is closed if there are too many unauthenticated ones."""

from mockube.component_base.connection_limit import ConnectionLimit


def with_connections(maximum, *addresses):
    connections, closed = ConnectionLimit(maximum), []
    for number, address in enumerate(addresses):
        connections.add(number, address, lambda number=number: closed.append(number))
    return connections, closed


def test_oldest_unauthenticated_connection_is_evicted():
    connections, closed = with_connections(3, *"aaaaa")
    assert (len(connections), closed) == (3, [0, 1])


def test_address_with_most_connections_is_evicted_first():
    connections, closed = with_connections(4, *"abbbbcb")
    assert (len(connections), closed) == (4, [1, 2, 3])


def test_discarded_connection_is_not_closed():
    connections, closed = with_connections(3, *"aaa")
    connections.discard(0)
    connections.discard(0)
    connections.add(3, "a", lambda: closed.append(3))
    assert (len(connections), closed) == (3, [])


def test_re_added_connection_is_youngest():
    connections, closed = with_connections(2, *"aa")
    connections.add(0, "a", lambda: closed.append(0))
    connections.add(2, "a", lambda: closed.append(2))
    assert closed == [1]


def test_evict_without_connections_does_nothing():
    ConnectionLimit(1).evict()


def test_connection_that_was_used_is_younger():
    connections, closed, used_at = ConnectionLimit(3), [], [0.0]
    for number in range(6):
        find_use = (lambda: used_at[0]) if number == 0 else (lambda number=number: float(number))
        used_at[0] = float(number)
        connections.add(number, "a", lambda number=number: closed.append(number), find_use)
    assert closed == [1, 2, 3]


def test_oldest_connection_is_evicted_if_all_are_used():
    connections, closed, now = ConnectionLimit(2), [], iter(range(100))
    for number in range(4):
        connections.add(number, "a", lambda number=number: closed.append(number), lambda: next(now))
    assert closed == [0, 1]
