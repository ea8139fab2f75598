"""Prometheus metrics of the process."""

from ._engine import call


def serve_metrics(addr: str = "127.0.0.1:0") -> str:
    """Serve Prometheus metrics of everything that is opened from now on, until the process ends. Returns their URL.

    addr is host:port. Without a host, only this machine can reach them; port 0 selects a free port. Call it before
    stores are opened: requests of stores that are already open are not counted. Another call for the same address
    returns the same URL; for another address it is a UsageError. Metrics and a Grafana dashboard:
    docs/reference/metrics.md.
    """
    url: str = call("serve_metrics", addr=addr)
    return url
