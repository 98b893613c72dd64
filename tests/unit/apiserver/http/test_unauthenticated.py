"""Who has to go when too many connections wait that nobody known uses."""

from mockube.apiserver.http.unauthenticated import Strangers


def filled(most, *addresses):
    strangers, closed = Strangers(most), []
    for number, address in enumerate(addresses):
        strangers.add(number, address, lambda number=number: closed.append(number))
    return strangers, closed


def test_the_one_that_has_waited_longest_goes():
    strangers, closed = filled(3, *"aaaaa")
    assert (len(strangers), closed) == (3, [0, 1])


def test_of_the_address_that_has_most():
    strangers, closed = filled(4, *"abbbbcb")
    assert (len(strangers), closed) == (4, [1, 2, 3])


def test_who_is_discarded_is_not_closed():
    strangers, closed = filled(3, *"aaa")
    strangers.discard(0)
    strangers.discard(0)
    strangers.add(3, "a", lambda: closed.append(3))
    assert (len(strangers), closed) == (3, [])


def test_who_comes_back_waits_anew():
    strangers, closed = filled(2, *"aa")
    strangers.add(0, "a", lambda: closed.append(0))
    strangers.add(2, "a", lambda: closed.append(2))
    assert closed == [1]


def test_nobody_has_to_go_where_nobody_is():
    Strangers().evict()
