"""How many may connect, and how fast a client may send."""

from gateway.admission.limits import Admission, Budgets, TokenBucket


def test_a_burst_is_allowed_and_then_refused() -> None:
    """As many messages as the burst pass at once, the next one has to wait."""
    bucket = TokenBucket(rate_per_s=10, burst=3, now_s=5.0)
    assert [bucket.take(5.0) for _ in range(4)] == [0, 0, 0, 100]


def test_a_client_that_waits_as_told_gets_through() -> None:
    """The wait that a refusal names is enough, and refusals cost nothing."""
    bucket = TokenBucket(rate_per_s=10, burst=1, now_s=0.0)
    bucket.take(0.0)
    assert bucket.take(0.04) == 60
    assert bucket.take(0.1) == 0


def test_a_long_silence_saves_up_no_more_than_the_burst() -> None:
    """After an hour of silence a client may send its burst, not an hour's worth."""
    bucket = TokenBucket(rate_per_s=10, burst=2, now_s=0.0)
    assert [bucket.take(3_600.0) for _ in range(3)] == [0, 0, 100]


def test_connections_are_counted_in_all_and_by_address() -> None:
    """Who is refused is not counted, who leaves makes room."""
    admission = Admission(most=3, most_per_address=2)
    assert [admission.enter("a"), admission.enter("a")] == [None, None]
    assert admission.enter("a") == "2 connections an address are allowed"
    assert admission.enter("b") is None
    assert admission.enter("c") == "this gateway has 3 connections, it takes no more"
    admission.leave("a")
    assert admission.enter("c") is None


def test_each_address_has_a_budget_of_its_own() -> None:
    """One that asks too often costs no other anything."""
    budgets = Budgets(rate_per_s=10, burst=2)
    assert [budgets.take("a", 0.0) for _ in range(3)] == [0, 0, 100]
    assert budgets.take("b", 0.0) == 0


def test_whether_a_budget_is_spent_costs_nothing_to_ask() -> None:
    """And an address that was never seen has one."""
    budgets = Budgets(rate_per_s=10, burst=1)
    assert not budgets.is_spent("a", 0.0)
    assert budgets.take("a", 0.0) == 0
    assert budgets.is_spent("a", 0.05)
    assert not budgets.is_spent("b", 0.05)
    assert not budgets.is_spent("a", 0.1)
    assert budgets.take("a", 0.1) == 0
