"""Talking TLS with the portal's parts, as somebody who should not."""

import socket
import ssl


def answer(port: int, context: ssl.SSLContext, path: str, host: str = "127.0.0.1") -> bytes:
    """Return the beginning of what a server says; empty where it says nothing.

    Raises ConnectionRefusedError where there is none: that is no port closed to a stranger.
    """
    with socket.create_connection((host, port), timeout=10) as plain:
        try:
            with context.wrap_socket(plain) as encrypted:
                encrypted.sendall(f"GET {path} HTTP/1.0\r\nHost: here\r\n\r\n".encode())
                return encrypted.recv(100)
        except (ssl.SSLError, ConnectionError):
            return b""


def unchecking() -> ssl.SSLContext:
    """Make the context of a client that shows no certificate, and believes every one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
