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


def busy(maximum, *requests):
    """Return a limit with as many connections as it allows, some with a request, what is closed, and how often their use is asked for."""
    connections, closed, looks = ConnectionLimit(maximum), [], []
    for number in range(maximum):
        connections.add(
            number, "a", lambda number=number: closed.append(number), lambda: looks.append(1) or 0.0
        )
    for number in requests:
        connections.note_request(number, has_request=True)
    looks.clear()
    return connections, closed, looks


def test_connection_with_a_request_is_evicted_last():
    connections, closed, _ = busy(4, 0, 2)
    for _ in range(4):
        connections.evict()
    assert closed == [1, 3, 0, 2]
    assert len(connections) == 0


def test_connection_whose_request_has_ended_is_the_youngest_idle_one():
    connections, closed, _ = busy(3, 0, 1)
    connections.note_request(0, has_request=False)
    for _ in range(3):
        connections.evict()
    assert closed == [2, 0, 1]


def test_request_of_a_connection_that_does_not_count_is_ignored():
    connections, closed, _ = busy(2)
    connections.discard(0)
    for has_request in (True, False):
        connections.note_request(0, has_request=has_request)
        connections.note_request(1, has_request=False)
    connections.evict()
    assert (closed, len(connections)) == ([1], 0)


def test_eviction_looks_at_no_connection_with_a_request():
    connections, closed, looks = busy(100, *range(100))
    for _ in range(50):
        connections.evict()
    assert (closed, looks) == ([*range(50)], [])
