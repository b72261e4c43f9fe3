"""A kernel of its own, in user-mode-linux: with NFS's server and client, and cgroups of version 2.

The machine's kernel may lack them. ``run`` boots Debian's ``user-mode-linux`` on this machine's
own files, which it can read and not write, without a network but its loopback, and runs a program
there; what that finds is JSON.
"""

import ctypes
import errno
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

_BOOT = """#!/bin/sh
/usr/bin/mount -t proc proc /proc
/usr/bin/mount -t tmpfs tmpfs /srv
mkdir /srv/results && /usr/bin/mount -t hostfs -o {folder} none /srv/results
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C PYTHONDONTWRITEBYTECODE=1
export GLIBC_TUNABLES={tunables}
{plain}
python3 {program} /srv/results >/srv/results/printed 2>&1
echo o >/proc/sysrq-trigger
sleep 60
"""


# Programs do without wide registers where `_with_plain_registers` is in force: they are not kept.
# libgcrypt, with which munged encrypts, asks the processor itself, and reads there what not to use.
_PLAIN = """\
cp -a /etc /srv/etc && mkdir -p /srv/etc/gcrypt && /usr/bin/mount --bind /srv/etc /etc
printf '%s\\n' intel-avx intel-avx2 intel-vaes-vpclmul >/etc/gcrypt/hwf.deny"""
_NO_WIDE = "glibc.cpu.hwcaps=" + ",".join(
    f"-{name}"
    for name in (
        *("AVX", "AVX2", "AVX_Fast_Unaligned_Load", "FMA"),
        *("AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ"),
        *("XSAVE", "XSAVEC", "ERMS", "FSRM", "RTM"),
    )
)

# linux/prctl.h, linux/seccomp.h, linux/ptrace.h, linux/elf.h, and the number of ptrace on x86-64.
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_SYS_PTRACE, _GETREGSET, _NT_X86_XSTATE = 101, 0x4204, 0x202
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06


def _has_tiles() -> bool:
    return " amx_tile" in Path("/proc/cpuinfo").read_text()


def _with_plain_registers() -> None:
    """Let ptrace not tell of this process' extended registers; for what it starts, too.

    Where a processor has AMX they are larger than the room that Linux 6.1 in user mode has for
    them: it can read the first part of them, but no more write them, and every program dies. Told
    that there are none, it uses those that every x86-64 has.
    """
    program = [
        (_LOAD, 0, 0, 0),  # the system call's number
        (_JUMP_IF_EQUAL, 0, 5, _SYS_PTRACE),
        (_LOAD, 0, 0, 16),  # its first argument
        (_JUMP_IF_EQUAL, 0, 3, _GETREGSET),
        (_LOAD, 0, 0, 32),  # its third
        (_JUMP_IF_EQUAL, 0, 1, _NT_X86_XSTATE),
        (_RETURN, 0, 0, _ERRNO | errno.EINVAL),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    whole = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    for wanted in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, whole, 0, 0),
    ):
        if libc.prctl(*wanted) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def run(program: Path, folder: Path, seconds: float) -> dict[str, Any]:
    """Boot it, wait for the program's end, and return what that found; ``folder`` is ours and its.

    The program gets the folder as its argument, and leaves ``found.json`` there.
    """
    has_tiles = _has_tiles()
    tunables, plain = (_NO_WIDE, _PLAIN) if has_tiles else ("", "")
    boot = folder / "boot"
    boot.write_text(
        _BOOT.format(folder=folder, program=program, tunables=tunables, plain=plain),
        encoding="utf-8",
    )
    boot.chmod(0o755)
    kernel = ["/usr/bin/linux.uml", "mem=512M", f"uml_dir={folder}/", "umid=portal"]
    root = ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={boot}"]
    console = ["con=null", "con0=null,fd:1", "quiet"]
    # Without a network, and gone with us.
    apart = ["/usr/bin/unshare", "--net", "--pid", "--fork", "--kill-child"]
    with (folder / "console").open("w") as out:
        subprocess.run(
            [*apart, *kernel, *root, *console],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
            preexec_fn=_with_plain_registers if has_tiles else None,
        )
    printed = folder / "printed"
    found = folder / "found.json"
    words = printed.read_text("utf-8") if printed.exists() else (folder / "console").read_text()
    assert found.exists(), f"the kernel in user mode did not get through: {words}"
    result: dict[str, Any] = json.loads(found.read_text("utf-8"))
    return result
