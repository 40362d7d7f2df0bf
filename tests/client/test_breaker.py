"""When a model is given up, rule by rule."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from uncanny.client.endpoint import (
    FAILURES,
    LONGEST_ALONE_S,
    TIMEOUTS,
    UNREACHED_FAILURES,
    UNREACHED_S,
    Breaker,
)
from uncanny.errors import ModelDownError, RequestRejectedError, TransientError

PATIENCE_S = 120.0
REJECTED = RequestRejectedError("no images here")
DOWN = TransientError("status 500", kind="server")
UNREACHED = TransientError("connection refused", kind="connection")


class Patient:
    """A breaker with a clock of its own."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.breaker = Breaker("any/model", PATIENCE_S, clock=lambda: self.now)

    def fails(
        self, error: TransientError | RequestRejectedError, times: int, every_s: float = 0.0, images: int = 2
    ) -> None:
        """So many failures, one image after the other failing first, and then in turn."""
        for number in range(times):
            self.breaker.failed(error, f"{number % images}.png")
            self.now += every_s


@pytest.fixture
def model() -> Patient:
    return Patient()


def test_a_burst_of_failures_is_no_reason_to_give_up(model: Patient) -> None:
    model.fails(DOWN, 500, every_s=0.1)


def test_few_failures_over_a_long_time_are_not_either(model: Patient) -> None:
    model.fails(DOWN, FAILURES, every_s=PATIENCE_S)


def test_few_failures_do_where_patience_covers_four_timeouts() -> None:
    for timeout_s, given_up in ((PATIENCE_S / TIMEOUTS, True), (PATIENCE_S / TIMEOUTS + 1, False)):
        now = 0.0
        breaker = Breaker("any/model", PATIENCE_S, timeout_s, clock=lambda: now)  # noqa: B023
        breaker.failed(DOWN, "0.png")
        breaker.failed(DOWN, "1.png")
        now += PATIENCE_S
        with pytest.raises(ModelDownError, match="2 times") if given_up else nullcontext():
            breaker.failed(DOWN, "0.png")


def test_only_failures_for_as_long_as_patience_lasts_end_it(model: Patient) -> None:
    model.fails(DOWN, FAILURES)
    model.now += PATIENCE_S
    with pytest.raises(ModelDownError, match="failed 10 times in a row over 120 s: status 500"):
        model.fails(DOWN, 1)


def test_one_answer_between_starts_the_count_anew(model: Patient) -> None:
    model.fails(DOWN, FAILURES)
    model.now += PATIENCE_S
    model.breaker.succeeded()
    model.fails(DOWN, FAILURES - 1, every_s=1)
    model.now += PATIENCE_S - FAILURES
    model.fails(DOWN, 1)


@pytest.mark.parametrize("answered", [True, False])
def test_a_server_that_fails_at_one_image_only_is_not_given_up(model: Patient, answered: bool) -> None:
    if answered:
        model.breaker.succeeded()
    model.fails(DOWN, FAILURES, every_s=PATIENCE_S / FAILURES - 0.1, images=1)
    assert not model.breaker.out_of_patience_with("0.png")
    model.fails(DOWN, 1_000, every_s=0.5, images=1)
    assert model.breaker.out_of_patience_with("0.png")
    assert not model.breaker.out_of_patience_with("1.png")


def test_patience_with_the_model_begins_with_the_second_image_that_fails(model: Patient) -> None:
    model.fails(DOWN, 1_000, every_s=1, images=1)
    model.breaker.failed(DOWN, "1.png")
    assert not model.breaker.out_of_patience_with("0.png")
    model.fails(DOWN, 50, every_s=PATIENCE_S / 51)
    model.now += PATIENCE_S
    with pytest.raises(ModelDownError, match="failed 52 times"):
        model.fails(DOWN, 1)


def test_one_image_whose_calls_hang_is_let_go_before_ten_of_them(model: Patient) -> None:
    hangs = TransientError("no answer", kind="timeout", overloaded=True)
    model.fails(hangs, FAILURES - 1, every_s=LONGEST_ALONE_S / (FAILURES - 1), images=1)
    assert model.breaker.out_of_patience_with("0.png")


def test_what_came_back_is_counted(model: Patient) -> None:
    model.breaker.succeeded()
    model.fails(REJECTED, 3)
    model.fails(DOWN, 3)
    assert model.breaker.answers == 4


def test_a_server_never_reached_is_given_up_soon(model: Patient) -> None:
    model.fails(UNREACHED, UNREACHED_FAILURES)
    model.now += UNREACHED_S
    with pytest.raises(ModelDownError, match="cannot be reached: connection refused") as caught:
        model.fails(UNREACHED, 1)
    assert "`base_url`" in str(caught.value)


def test_all_servers_that_were_never_reached_are_named_and_the_model_once(model: Patient) -> None:
    def unreached(place: str) -> TransientError:
        return TransientError(f"any/model: the connection to {place} failed", kind="connection")

    for place in ("a:1", "b:2") * UNREACHED_FAILURES:
        model.fails(unreached(place), 1)
    model.now += UNREACHED_S
    with pytest.raises(ModelDownError) as caught:
        model.fails(unreached("b:2"), 1)
    reasons = "the connection to a:1 failed; the connection to b:2 failed"
    assert caught.value.message == f"any/model cannot be reached: {reasons}"


def test_a_server_that_is_still_starting_gets_a_few_seconds(model: Patient) -> None:
    model.fails(UNREACHED, 200, every_s=UNREACHED_S / 201)


def test_a_server_that_answered_before_gets_all_patience_when_it_goes_away(model: Patient) -> None:
    model.breaker.succeeded()
    model.fails(UNREACHED, 100, every_s=1)
    model.now += PATIENCE_S - 99
    with pytest.raises(ModelDownError, match="failed 100 times"):
        model.fails(UNREACHED, 1)


def test_rejections_from_the_first_request_on_end_it(model: Patient) -> None:
    model.fails(REJECTED, FAILURES - 1)
    with pytest.raises(ModelDownError, match="rejected each of the first 10 requests: no images here"):
        model.fails(REJECTED, 1)


def test_rejections_after_an_answer_are_the_requests_own_fault(model: Patient) -> None:
    model.breaker.succeeded()
    model.fails(REJECTED, 1_000, every_s=1)


def test_one_rejection_after_a_crowded_start_is_not_ten_of_them(model: Patient) -> None:
    model.fails(DOWN, FAILURES + 5)
    model.fails(REJECTED, 1)


def test_a_rejection_shows_that_the_server_is_there(model: Patient) -> None:
    model.breaker.succeeded()
    model.fails(REJECTED, FAILURES)
    model.now += PATIENCE_S
    model.fails(DOWN, 1)
