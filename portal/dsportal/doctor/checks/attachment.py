"""A Slurm that the site runs itself, asked before a portal is put on top."""

from dsportal.doctor.finding import Line
from dsportal.doctor.judgement import attachment as judgement
from dsportal.doctor.judgement import slurm
from dsportal.doctor.programs import ask

# A controller that is down keeps its programs waiting for 18 s.
_SECONDS = 25.0


def asked(conf: str, bin_dir: str, operator: str) -> list[Line]:
    """Ask Slurm for its settings and GPUs."""
    answers = [
        ask(f"{bin_dir}/{name}", *words, seconds=_SECONDS, environment={"SLURM_CONF": conf})
        for name, *words in (
            ("scontrol", "show", "config"),
            ("sinfo", "--noheader", "--all", "--format=%G"),
        )
    ]
    for answer in answers:
        if answer.status != 0:
            return [Line("slurmctld", slurm.judge_refusal(answer.last_words))]
    config, gres = (answer.said for answer in answers)
    return judgement.judge(config, gres, operator=operator)
