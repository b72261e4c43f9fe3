import pytest

from jupyterhub_gpu_slurm.reconciler.reconciliation import KnownSession, Orphan, plan, users_to_ask

A, B = "a" * 32, "b" * 32


def known(
    username: str = "user1",
    session_id: str = A,
    job_id: int | None = 7,
    server_name: str = "",
    is_interrupted: bool = False,
) -> KnownSession:
    return KnownSession(username, server_name, session_id, job_id, is_interrupted)


@pytest.mark.parametrize(
    ("marked", "sessions", "expected"),
    [
        ({}, [], set()),
        ({}, [known()], set()),
        ({"user1": {7}}, [known()], set()),
        ({"user1": {7, 8}}, [known()], {"user1"}),
        ({"user1": {7}}, [known("user2")], {"user1"}),
        ({"user1": {7}}, [known(job_id=None)], {"user1"}),
        # Its job may have ended: but whoever waits for it is not to be forgotten.
        ({}, [known(is_interrupted=True)], {"user1"}),
    ],
)
def test_only_who_has_strange_jobs_is_asked(
    marked: dict[str, set[int]], sessions: list[KnownSession], expected: set[str]
) -> None:
    assert users_to_ask(marked, sessions) == expected


def test_what_the_hub_knows_is_left_alone() -> None:
    todo = plan({"user1": {7: A}}, [known()])
    assert todo.orphans == ()
    assert todo.interrupted == ()


def test_a_session_without_a_number_yet_is_no_orphan() -> None:
    assert plan({"user1": {7: A}}, [known(job_id=None)]).orphans == ()


def test_a_session_that_nobody_knows_is_an_orphan_with_all_its_jobs() -> None:
    todo = plan({"user1": {9: B, 7: A, 8: B}}, [known()])
    assert todo.orphans == (Orphan("user1", B, (8, 9)),)


def test_the_session_of_another_user_does_not_count_as_known() -> None:
    assert plan({"user2": {8: A}}, [known()]).orphans == (Orphan("user2", A, (8,)),)


def test_an_interrupted_start_goes_on_while_its_job_is_there() -> None:
    alive = known(is_interrupted=True, server_name="second")
    gone = known(session_id=B, is_interrupted=True)
    assert plan({"user1": {7: A}}, [alive, gone]).interrupted == (alive,)
