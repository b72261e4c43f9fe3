"""Checks of Slurm and munge, by their own programs."""

from dsportal.doctor.expected import ExpectedSlurm
from dsportal.doctor.finding import Finding, failed, ok
from dsportal.doctor.judgement import slurm as judgement
from dsportal.doctor.programs import ProgramAnswer, ask


def _ask(slurm: ExpectedSlurm, *words: str) -> ProgramAnswer:
    return ask(f"{slurm.bin_dir}/scontrol", *words, environment={"SLURM_CONF": slurm.conf})


def controller(slurm: ExpectedSlurm) -> Finding:
    """Ask whether slurmctld answers."""
    answer = _ask(slurm, "ping")
    if answer.status is None or not answer.said:
        return judgement.judge_refusal(answer.last_words)
    return judgement.judge_ping(answer.said)


def settings(slurm: ExpectedSlurm) -> Finding:
    """Ask whether slurm.conf is the controller's."""
    answer = _ask(slurm, "show", "config")
    if answer.status != 0:
        return judgement.judge_refusal(answer.last_words)
    return judgement.judge_settings(answer.said)


def node(name: str, slurm: ExpectedSlurm) -> Finding:
    """Ask how the controller sees a node of this host."""
    answer = _ask(slurm, "show", "node", name, "--oneliner")
    if answer.status != 0:
        return judgement.judge_refusal(answer.last_words)
    return judgement.judge_node(answer.said)


def munge(slurm: ExpectedSlurm) -> Finding:
    """Have a credential made and read."""
    step = "start munged; its key must be munge's alone, and the same on every host"
    made = ask("munge", "--no-input", f"--socket={slurm.munge_socket}", seconds=4)
    if made.status != 0:
        return failed(made.last_words, step)
    read = ask("unmunge", f"--socket={slurm.munge_socket}", seconds=4, stdin=made.said)
    if read.status != 0:
        return failed(read.last_words, step)
    return ok("makes and reads credentials")
