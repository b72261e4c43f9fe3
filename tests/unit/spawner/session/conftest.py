"""The parts of a session by themselves: no JupyterHub, and a stand-in for Slurm."""

import logging
from typing import cast

import pytest

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.session.job import SessionJob
from tests.unit.spawner.slurm_stand_in import Ear, StandIn, connection_of


@pytest.fixture
def slurm(quick: None) -> StandIn:
    return StandIn()


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def connection(slurm: StandIn) -> SlurmConnection:
    return cast("SlurmConnection", connection_of(slurm))


@pytest.fixture
def job(connection: SlurmConnection, slurm: StandIn, ear: Ear) -> SessionJob:
    """The job of ada's session, which an operator may end."""
    slurm.operator = "slurm"
    return SessionJob(connection, "ada", "ada:", 60, ear, logging.getLogger("test"))
