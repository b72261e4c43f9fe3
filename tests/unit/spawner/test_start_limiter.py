from types import SimpleNamespace

from jupyterhub_gpu_slurm.start_limiter import rate_limited_scopes


def test_what_jupyterhub_noted_of_a_start_is_saved_before_anything_else_can_happen() -> None:
    happened: list[str] = []
    database = SimpleNamespace(commit=lambda: happened.append("saved"))
    waiting = rate_limited_scopes(SimpleNamespace(user=SimpleNamespace(db=database)))
    assert happened == ["saved"]
    waiting.close()
