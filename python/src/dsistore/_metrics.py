"""Prometheus metrics of the process."""

from ._engine import call


def serve_metrics(addr: str = "127.0.0.1:0") -> str:
    """Serve Prometheus metrics of what is opened from now on, for as long as the process lives, and return their URL.

    addr is host:port. Without a host only this machine reaches them; port 0 takes a free one. Call it before stores are
    opened: of a store that is open already requests are not counted. Another call for the same address returns the same
    URL; for another address it is a UsageError. What they are, and a Grafana dashboard: docs/reference/metrics.md.
    """
    url: str = call("serve_metrics", addr=addr)
    return url
