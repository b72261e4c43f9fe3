"""``python -I -m dsportal.session``: the process of a session, which its job's script becomes.

``-I`` keeps the user's folders and variables from Python; this file keeps them from
the rest.
"""

import gc
import logging
import os
import pwd
import sys
from pathlib import Path

from dsportal.session import internal_tls, state_save
from dsportal.session.environment import Account, ModulesEntry, session_environment, with_port
from dsportal.session.files.home import make_runtime_folder, refresh_links, remove_runtime_folder
from dsportal.session.kernels import configuration
from dsportal.session.own_environments.entry import command_variables, module_paths, own_folders
from dsportal.session.tracking import mlflow_variables
from dsportal.session.umask import users_umask
from dsportal.session_schema import InputError, SessionInput, parse

log = logging.getLogger("dsportal.session")


def main() -> int:
    """Prepare, then serve; gives the exit code."""
    logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(asctime)s] %(message)s")
    try:
        told = parse(sys.stdin.read())
    except InputError as error:
        log.critical("The session's input: %s", error)
        return 2
    _forget_stdin()
    job = os.environ.get("SLURM_JOB_ID", "")
    try:
        home = _settle_in(told)
        runtime_folder = make_runtime_folder(job)
    except (KeyError, OSError) as error:
        log.critical("No account, home or scratch space to work in: %s", error)
        return 3
    os.environ["JUPYTER_RUNTIME_DIR"] = str(runtime_folder)
    state_save.begin(told.slurm_bin_dir)
    try:
        if told.certificate is not None:
            os.environ.update(internal_tls.install(told.certificate, runtime_folder))
        if told.image is not None:
            from dsportal.session import in_image

            seen = [*told.folders.values(), *told.mounts, *told.image.binds]
            place = in_image.ImageContext(home, runtime_folder, seen)
            return in_image.serve(told.image, place, told.callback_url)
        return _serve(told, home, runtime_folder)
    finally:
        remove_runtime_folder(runtime_folder)


def _forget_stdin() -> None:
    # What a kernel or a terminal reads there must not be the orders' rest.
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)


def _settle_in(told: SessionInput) -> Path:
    entry = pwd.getpwuid(os.getuid())
    account = Account(name=entry.pw_name, home=entry.pw_dir, shell=entry.pw_shell)
    own = own_folders(told.environments_folders, account.home, account.name)
    environment = session_environment(
        account,
        os.environ,
        told.variables,
        told.jupyter_path,
        modules=ModulesEntry(told.modules_init, (*told.module_paths, *module_paths(own))),
        programs=command_variables(own, told.environments_conda),
        defaults=mlflow_variables(told.mlflow_folder, account.home, account.name),
        slurm_bin_dir=told.slurm_bin_dir,
    )
    os.environ.clear()
    os.environ.update(environment)
    os.umask(users_umask(told.umask, entry.pw_gecos))
    home = Path(account.home)
    os.chdir(home)
    refresh_links(home, told.folders)
    return home


def _serve(told: SessionInput, home: Path, runtime_folder: Path) -> int:
    # Imports and set-up make objects that stay; to look for garbage among them takes
    # time. The server turns it on again when it listens.
    gc.disable()
    # Imported now: some of it reads the environment while it loads.
    # The server first: it says how Jupyter's own modules are imported.
    from dsportal.session import server
    from dsportal.session.callback import open_socket
    from dsportal.session.components import SessionContext
    from dsportal.session.page.look import page_config

    listener = open_socket()
    os.environ["JUPYTERHUB_SERVICE_URL"] = with_port(
        os.environ.get("JUPYTERHUB_SERVICE_URL", "http://0.0.0.0"), listener.getsockname()[1]
    )
    place = SessionContext(
        home,
        runtime_folder,
        told,
        page={
            **page_config(told.look, told.folders, told.folder_notes, told.templates),
            "portalJob": os.environ.get("PORTAL_JOB_ID", ""),
            "portalShares": told.shares_folder,
        },
        kernel_configuration=configuration.install(runtime_folder),
    )
    return server.serve(place, listener)


if __name__ == "__main__":
    sys.exit(main())
