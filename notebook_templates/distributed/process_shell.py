"""The shell around each process of a program of the user's; files are given as its words.

The process gets what torchrun would tell it. If the job goes on by itself, the shell notes in a
file that it got Slurm's signal: a program that then ends with 0, or by that signal, has work left.
"""

import shlex

TIME_IS_UP = "time_is_up"
"""The name of that file."""
# What a shell says of a program that USR1 has ended: 128, and the signal's number.
_ENDED_BY_USR1 = 138

# What torchrun tells each process, from what srun does: most programs for several GPUs read it.
# srun throws away what is still on its way as soon as it has ended one process with a signal
# (client_io_handler_abort in its step_launch.c), and it ends all when the first fails: a failure is
# told a moment later, so that its words arrive.
_AS_TORCHRUN = (
    "export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID "
    "LOCAL_WORLD_SIZE=${SLURM_STEP_TASKS_PER_NODE%%[(,]*} MASTER_ADDR=$SLURM_LAUNCH_NODE_IPADDR "
    "MASTER_PORT=$((61000 + (SLURM_JOB_ID * 61 + SLURM_STEP_ID % 61) % 4499)); "
)
# With cgroups Slurm signals only what slurmstepd itself has started: the shell passes signals on,
# and outlives them.
_PASSES_ON = (
    "told= program=; for signal in USR1 TERM INT; do "
    'trap "told=$signal; kill -$signal \\$program 2> /dev/null" $signal; done; '
)
# A program in the background would ignore INT and QUIT, and read nothing.
_STARTS = (
    '(trap - INT QUIT; exec "$@") <&0 & program=$!; '
    '[ -z "$told" ] || kill -$told $program 2> /dev/null; '
)
# A signal ends the waiting, not always the program. What has ended is still known to the shell.
_WAITS = (
    "while wait $program; kill -0 $program 2> /dev/null; do :; done; "
    "wait $program; status=$?; [ $status -eq 0 ] || sleep 2; exit $status"
)


def around(time_is_up: str = "") -> str:
    """Return the words that start each process; the program's own follow."""
    noted = f"told=USR1; : > {time_is_up}; kill -USR1 $program 2> /dev/null"
    notes = f"trap {shlex.quote(noted)} USR1; " if time_is_up else ""
    shell = _AS_TORCHRUN + _PASSES_ON + notes + _STARTS + _WAITS
    return f"bash -c {shlex.quote(shell)} bash "


def finishing(summary: str, time_is_up: str = "") -> str:
    """Return the line that writes a summary if the program came to its end."""
    unless = f"[ -e {time_is_up} ] || " if time_is_up else ""
    return f"""[ $status -ne 0 ] || {unless}echo '{{"exit_code": 0}}' > {summary}"""


def has_stopped() -> str:
    """Return the condition that the program ended as one does whose time is up."""
    return f"{{ [ $status -eq 0 ] || [ $status -eq {_ENDED_BY_USR1} ]; }}"
