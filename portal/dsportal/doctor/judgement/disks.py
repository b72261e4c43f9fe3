"""Free space of a file system."""

from dsportal.doctor.finding import Finding, failed, ok, warning

GIB = 1024**3


def judge(path: str, free_bytes: int, all_bytes: int, free_files: int, all_files: int) -> Finding:
    """Say whether there is room, for bytes and for files.

    A large disk may be fuller than a small one. Some file systems count no files: 0 of 0.
    """
    part = free_bytes / all_bytes if all_bytes else 1.0
    words = f"{free_bytes / GIB:.1f} GiB free ({part:.0%})"
    step = f"delete what is not needed (du -xh {path} | sort -h)"
    if all_files and free_files < all_files * 0.02:
        return failed(f"room for {free_files} more files only", step)
    if part < 0.03 and free_bytes < 5 * GIB:
        return failed(words, step)
    if part < 0.10 and free_bytes < 20 * GIB:
        return warning(words, step)
    return ok(words)
