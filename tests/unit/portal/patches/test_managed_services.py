from jupyterhub.services import service

from dsportal.hub.patches import managed_services


def test_a_service_that_has_ended_is_started_again_soon() -> None:
    managed_services.look_after_services()
    assert service._ServiceSpawner(cmd=["true"]).poll_interval == 2
