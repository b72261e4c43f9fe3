"""Errors of ``portal image``, in words for the user.

::

    ImageError
    └── KeyRefused
"""


class ImageError(Exception):
    """There is no image now; the message says why, and what to do."""


class KeyRefused(ImageError):
    """The registry wants a key, or another one."""
