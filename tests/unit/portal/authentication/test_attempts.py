"""How often somebody may try to log in; the clock is a number."""

import re

import bootstrap

from dsportal.authentication.attempts import ADDRESS, NAME, PAIR, Attempts

HOME, AWAY = "192.0.2.7", "198.51.100.9"


def fail(attempts: Attempts, times: int, name: str, address: str, now: float = 0.0) -> float:
    """Fail so often, as fast as it is allowed; give the moment after the last wait."""
    for _ in range(times):
        while (wait := attempts.begin(name, address, now)) > 0:
            now += wait
        attempts.failed(name, address, now)
    return now


def wait_of(attempts: Attempts, name: str, address: str, now: float) -> float:
    wait = attempts.begin(name, address, now)
    if wait <= 0:
        attempts.withdraw(name, address, now)
    return wait


def test_a_few_typing_errors_cost_nothing() -> None:
    assert fail(Attempts(), PAIR.free, "ada", HOME) == 0


def test_the_pause_doubles_with_each_further_failure_up_to_a_minute() -> None:
    attempts = Attempts()
    now = fail(attempts, PAIR.free, "ada", HOME)
    waits = []
    for _ in range(9):
        wait = wait_of(attempts, "ada", HOME, now)
        waits.append(wait)
        now = fail(attempts, 1, "ada", HOME, now)
    assert waits == sorted(waits)
    assert waits[0] <= 3
    assert 30 < waits[-1] <= 60


def test_many_attempts_at_once_are_no_more_than_one_after_the_other() -> None:
    attempts = Attempts()
    let_in = [wait for wait in (attempts.begin("ada", HOME, 0) for _ in range(100)) if wait <= 0]
    assert len(let_in) == PAIR.free


def test_a_refused_attempt_makes_the_wait_no_longer() -> None:
    attempts = Attempts()
    now = fail(attempts, PAIR.free + 3, "ada", HOME)
    waits = {attempts.begin("ada", HOME, now) for _ in range(10)}
    assert len(waits) == 1


def test_those_who_have_not_failed_yet_are_told_apart_from_those_who_have() -> None:
    attempts = Attempts()
    for number in range(ADDRESS.free):
        assert attempts.begin(f"user{number}", HOME, 0) == 0
    assert attempts.begin("ada", HOME, 0) > 0
    assert attempts.may_begin_after_others("ada", HOME, 0)
    for number in range(ADDRESS.free):
        attempts.failed(f"user{number}", HOME, 1)
    assert attempts.begin("ada", HOME, 1) > 0
    assert not attempts.may_begin_after_others("ada", HOME, 1)


def test_whoever_succeeds_has_no_more_attempts_under_way_than_others() -> None:
    attempts, under_way = Attempts(), 0
    for _ in range(20):
        while attempts.begin("mallory", HOME, 0) == 0:
            under_way += 1
        assert under_way == PAIR.free
        attempts.succeeded("mallory", HOME, 0)
        under_way -= 1
    for _ in range(under_way):
        attempts.failed("mallory", HOME, 0)
    assert fail(attempts, 1, "mallory", HOME) == 0
    assert wait_of(attempts, "mallory", HOME, 0) > 0


def test_two_attempts_of_a_user_leave_no_trace_where_both_succeed() -> None:
    attempts = Attempts()
    for _ in range(2 * ADDRESS.free):
        for _ in range(2):
            assert attempts.begin("ada", HOME, 0) == 0
        for _ in range(2):
            attempts.succeeded("ada", HOME, 0)
        attempts._at_home.clear()
    assert fail(attempts, ADDRESS.free - 1, "", HOME) == 0
    assert not attempts._under_way


def test_failures_of_an_address_fade_while_others_log_in_from_there() -> None:
    attempts = Attempts()
    # One in ten mistypes once; somebody comes every three seconds, half of what may be forgotten.
    for number in range(2000):
        now = 3.0 * number
        name = f"user{number}"
        assert attempts.begin(name, HOME, now) == 0, number
        if number % 10:
            attempts.succeeded(name, HOME, now + 0.5)


def test_a_success_lets_nobody_else_wait() -> None:
    attempts = Attempts()
    now = 0.0
    for number in range(ADDRESS.free + 3):
        now = fail(attempts, 1, f"user{number}", HOME, now)
    waited = wait_of(attempts, "ada", HOME, now)
    now += waited
    assert attempts.begin("ada", HOME, now) == 0
    attempts.succeeded("ada", HOME, now + 5)
    assert wait_of(attempts, "ben", HOME, now + waited + 1) == 0


def test_the_right_password_ends_the_count() -> None:
    attempts = Attempts()
    now = fail(attempts, PAIR.free + 2, "ada", HOME) + 60
    assert attempts.begin("ada", HOME, now) == 0
    attempts.succeeded("ada", HOME, now)
    assert fail(attempts, PAIR.free, "ada", HOME, now) == now


def test_an_attacker_elsewhere_does_not_hold_up_who_has_logged_in_here() -> None:
    attempts = Attempts()
    attempts.begin("ada", HOME, 0)
    attempts.succeeded("ada", HOME, 0)
    now = 0.0
    for number in range(60):
        now = fail(attempts, 1, "ada", f"203.0.113.{number}", now)
    assert wait_of(attempts, "ada", HOME, now) == 0
    assert wait_of(attempts, "ada", AWAY, now) > 0


def test_nobody_waits_longer_than_a_minute_whatever_an_attacker_does() -> None:
    attempts = Attempts()
    now = 0.0
    for number in range(300):
        now = fail(attempts, 1, "ada", f"203.0.113.{number % 7}", now)
    assert 0 < wait_of(attempts, "ada", AWAY, now) <= NAME.longest_seconds
    assert 0 < wait_of(attempts, "ada", "203.0.113.1", now) <= 60


def test_one_address_with_many_names_is_slowed_down_too() -> None:
    attempts = Attempts()
    now = fail(attempts, 1, "first", AWAY)
    for number in range(ADDRESS.free + 5):
        now = fail(attempts, 1, f"user{number}", AWAY, now)
    assert now > 0
    assert 0 < wait_of(attempts, "ada", AWAY, now) <= ADDRESS.longest_seconds
    assert wait_of(attempts, "ada", HOME, now) == 0


def test_a_success_with_an_own_account_does_not_free_the_address() -> None:
    attempts = Attempts()
    now = 0.0
    for number in range(ADDRESS.free + 10):
        now = fail(attempts, 1, f"user{number}", AWAY, now)
    while (wait := attempts.begin("mallory", AWAY, now)) > 0:
        now += wait
    attempts.succeeded("mallory", AWAY, now)
    assert wait_of(attempts, "ada", AWAY, now) > 0


def test_failures_are_forgotten_with_time() -> None:
    attempts = Attempts()
    now = fail(attempts, PAIR.free + 8, "ada", HOME)
    later = now + 20 * PAIR.forget_seconds
    assert fail(attempts, PAIR.free, "ada", HOME, later) == later


def test_what_is_no_name_counts_for_the_address() -> None:
    attempts = Attempts()
    assert fail(attempts, ADDRESS.free + 3, "", AWAY) > 0


def test_the_memory_is_bounded() -> None:
    attempts = Attempts(most_kept=100)
    for number in range(1000):
        attempts.begin(f"user{number}", f"2001:db8:{number:x}::/64", 0)
        attempts.succeeded(f"user{number}", f"2001:db8:{number:x}::/64", 0)
    assert len(attempts._tallies) <= 100
    assert len(attempts._at_home) <= 100


def policy(name: str) -> int:
    """Return what the supplied directory is told (role directory)."""
    text = (bootstrap.DEPLOY / "ansible/roles/directory/templates/people.ldif.j2").read_text()
    return int(re.findall(rf"^{name}: (\d+)$", text, re.M)[0])


def test_the_login_page_alone_never_locks_somebody_in_the_directory() -> None:
    attempts, let_through = Attempts(), 0
    attempts.begin("user1", "home", -10_000)
    attempts.succeeded("user1", "home", -10_000)
    # From ever new addresses, and from one where the user has logged in, four times a second.
    for quarter in range(policy("pwdFailureCountInterval") * 4):
        for address in (f"address-{quarter}", "home"):
            let_through += attempts.begin("user1", address, quarter / 4) == 0
    assert let_through < policy("pwdMaxFailure")


def test_nobody_chooses_how_long_a_guess_takes_the_directory() -> None:
    """Who may set a hash says with how many rounds: 2, slapo-ppolicy(5), takes passwords only."""
    assert policy("pwdCheckQuality") == 2
