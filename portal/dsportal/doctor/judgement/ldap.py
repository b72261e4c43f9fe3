"""The few LDAP messages (RFC 4511) that show that a server lets its reader in.

Written here because nothing but the standard library is on every host.
"""

START_TLS = bytes.fromhex("301d02010177188016") + b"1.3.6.1.4.1.1466.20037"
"""An ExtendedRequest, message 1 (RFC 4511, 4.14.1)."""

RESULTS = {
    8: "wants encryption first",
    13: "wants encryption first",
    32: "does not know this name",
    34: "does not take this for a name",
    48: "does not allow this kind of login for this account",
    49: "does not accept name and password",
    52: "is not available",
    53: "refuses",
}


class MessageError(ValueError):
    """The reply is not an LDAP message."""


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def bind(name: str, password: str) -> bytes:
    """Write a simple bind (4.2); an empty name and password for an anonymous one."""
    request = (
        _element(0x02, b"\x03") + _element(0x04, name.encode()) + _element(0x80, password.encode())
    )
    return _element(0x30, _element(0x02, b"\x02") + _element(0x60, request))


def size_of(beginning: bytes) -> int | None:
    """Say how long a message is in all, of which this is the beginning; None for not yet known."""
    if len(beginning) < 2:
        return None
    if beginning[0] != 0x30:
        raise MessageError("the answer is not LDAP's")
    extra = beginning[1] & 0x7F if beginning[1] & 0x80 else 0
    if len(beginning) < 2 + extra:
        return None
    return 2 + extra + (int.from_bytes(beginning[2 : 2 + extra], "big") if extra else beginning[1])


def result(message: bytes) -> int:
    """Read the result code of an answer to a bind or an extended request (4.1.9)."""
    _, inside, _ = _first(message)
    _, _, rest = _first(inside)
    _, answer, _ = _first(rest)
    tag, code, _ = _first(answer)
    if tag != 0x0A:
        raise MessageError("the answer has no result")
    return int.from_bytes(code, "big")


def _first(content: bytes) -> tuple[int, bytes, bytes]:
    """Take the first element apart: its tag, what is in it, and what follows it."""
    if len(content) < 2:
        raise MessageError("the answer is cut off")
    extra = content[1] & 0x7F if content[1] & 0x80 else 0
    size = int.from_bytes(content[2 : 2 + extra], "big") if extra else content[1]
    start = 2 + extra
    if len(content) < start + size:
        raise MessageError("the answer is cut off")
    return content[0], content[start : start + size], content[start + size :]
