"""Configuration of sessions: settings in, `dsportal.session_schema` out."""

from dsportal.look import appearance
from dsportal.session_schema import (
    Containers,
    Kernel,
    KernelImage,
    SessionImage,
    SessionInput,
    WebTool,
    taken_from,
    to_json,
)
from dsportal.settings import containers as settings_of_containers
from dsportal.settings.whole import Settings

_OF_ONE_SESSION: dict[str, object] = {"environment": {}, "certificate": None, "image": None}


def session_input(settings: Settings) -> dict[str, object]:
    """Return what all sessions are told; the spawner adds what is one session's own."""
    session = settings.session
    told = to_json(
        taken_from(
            SessionInput,
            session,
            **_OF_ONE_SESSION,
            templates=session.templates if session.templates in session.folders else "",
            kernels={name: taken_from(Kernel, one) for name, one in settings.kernels.items()},
            tools={name: taken_from(WebTool, one) for name, one in settings.tools.items()},
            containers=_containers(settings.containers),
            look=appearance(settings.look).for_sessions(),
            follows_system_theme=settings.look.follows_system,
            cluster_url=settings.hub.internal(settings.cluster.url),
            slurm_bin_dir=settings.slurm.bin_dir,
            is_encrypted=settings.hub.is_encrypted,
        )
    )
    return {name: value for name, value in told.items() if name not in _OF_ONE_SESSION}


def session_images(containers: settings_of_containers.ContainerSettings) -> dict[str, object]:
    """Return the images in which sessions may run, by name, as a session is told of one."""
    return {
        name: to_json(
            SessionImage(
                image.title, containers.file_of(image), containers.apptainer, containers.binds
            )
        )
        for name, image in containers.images.items()
        if image.session
    }


def _containers(containers: settings_of_containers.ContainerSettings) -> Containers:
    return Containers(
        containers.apptainer,
        {
            name: KernelImage(image.title, containers.file_of(image))
            for name, image in containers.images.items()
            if image.kernels
        },
        containers.own_images,
        containers.binds,
    )
