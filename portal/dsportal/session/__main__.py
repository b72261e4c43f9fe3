"""``python -I -m dsportal.session``: what the job's script becomes.

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
from dsportal.session.config.values import OrdersError
from dsportal.session.config.whole import Orders, parse_orders
from dsportal.session.environment import Account, ModulesEntry, session_environment, with_port
from dsportal.session.files.home import make_runtime_folder, refresh_links, remove_runtime_folder
from dsportal.session.kernels import configuration
from dsportal.session.umask import users_umask

log = logging.getLogger("dsportal.session")


def main() -> int:
    """Prepare, then serve; gives the exit code."""
    logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(asctime)s] %(message)s")
    try:
        orders = parse_orders(sys.stdin.read())
    except OrdersError as error:
        log.critical("The session's input: %s", error)
        return 2
    _forget_stdin()
    job = os.environ.get("SLURM_JOB_ID", "")
    try:
        home = _settle_in(orders)
        runtime_folder = make_runtime_folder(job)
    except (KeyError, OSError) as error:
        log.critical("No account, home or scratch space to work in: %s", error)
        return 3
    os.environ["JUPYTER_RUNTIME_DIR"] = str(runtime_folder)
    state_save.begin(orders.slurm_bin_dir)
    try:
        if orders.certificate is not None:
            os.environ.update(internal_tls.install(orders.certificate, runtime_folder))
        if orders.image is not None:
            from dsportal.session import in_image

            seen = [*orders.folders.values(), *orders.mounts, *orders.image.binds]
            place = in_image.ImagePlace(home, runtime_folder, seen)
            return in_image.serve(orders.image, place, orders.callback_url)
        return _serve(orders, home, runtime_folder)
    finally:
        remove_runtime_folder(runtime_folder)


def _forget_stdin() -> None:
    # What a kernel or a terminal reads there must not be the orders' rest.
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)


def _settle_in(orders: Orders) -> Path:
    entry = pwd.getpwuid(os.getuid())
    account = Account(name=entry.pw_name, home=entry.pw_dir, shell=entry.pw_shell)
    environment = session_environment(
        account,
        os.environ,
        orders.environment,
        orders.jupyter_path,
        modules=ModulesEntry(orders.modules_init, orders.module_paths),
    )
    os.environ.clear()
    os.environ.update(environment)
    os.umask(users_umask(orders.umask, entry.pw_gecos))
    home = Path(account.home)
    os.chdir(home)
    refresh_links(home, orders.folders)
    return home


def _serve(orders: Orders, home: Path, runtime_folder: Path) -> int:
    # Imports and set-up make objects that stay; to look for garbage among them takes
    # time. The server turns it on again when it listens.
    gc.disable()
    # Imported now: some of it reads the environment while it loads.
    # The server first: it says how Jupyter's own modules are imported.
    from dsportal.session import server
    from dsportal.session.callback import open_socket
    from dsportal.session.components import Place
    from dsportal.session.page.look import page_config
    from dsportal.session.tensorboard.routes import Plan

    listener = open_socket()
    os.environ["JUPYTERHUB_SERVICE_URL"] = with_port(
        os.environ.get("JUPYTERHUB_SERVICE_URL", "http://0.0.0.0"), listener.getsockname()[1]
    )
    python = orders.tensorboard_python
    place = Place(
        home=home,
        runtime_folder=runtime_folder,
        callback_url=orders.callback_url,
        jupyter_path=orders.jupyter_path,
        tensorboard=Plan(python, orders.tensorboards, orders.tensorboard_idle_minutes)
        if python
        else None,
        warning_minutes=orders.warning_minutes,
        modules_init=orders.modules_init,
        kernels=orders.kernels,
        kernel_configuration=configuration.install(runtime_folder),
        templates=orders.templates,
        tools=orders.tools,
        page=page_config(orders.look, orders.folders, orders.folder_notes, orders.templates),
        folders=orders.folders,
        mounts=orders.mounts,
        containers=orders.containers,
        cluster_url=orders.cluster_url,
        slurm_bin_dir=orders.slurm_bin_dir,
        is_encrypted=orders.is_encrypted,
    )
    return server.serve(place, listener)


if __name__ == "__main__":
    sys.exit(main())
