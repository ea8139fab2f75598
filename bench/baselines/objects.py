"""An object store over a directory, by HTTP as S3 speaks it, whose every request takes some milliseconds longer: for
baselines that read object stores. Bucket ms10 is the directory with 10 ms per request; /-/counts tells requests and
bytes since it was last asked.

    python -m baselines.objects DIRECTORY
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import sys
import urllib.parse
from email.utils import formatdate
from xml.sax.saxutils import escape


class Objects:
    def __init__(self, root: pathlib.Path):
        self._root = root
        self._requests = self._bytes = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of one connection, one after the other."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ", 2)
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
                await reader.readexactly(int(headers.get("content-length", 0)))
                status, extra, body = await self._answer(method, target, headers)
                extra.setdefault("Content-Length", str(len(body)))
                lines = [f"HTTP/1.1 {status}", *(f"{k}: {v}" for k, v in extra.items()), "", ""]
                writer.write("\r\n".join(lines).encode("latin-1"))
                if method != "HEAD":
                    writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, method: str, target: str, headers: dict[str, str]) -> tuple[str, dict[str, str], bytes]:
        url = urllib.parse.urlsplit(target)
        path = urllib.parse.unquote(url.path).lstrip("/")
        if path == "-/counts":
            counts = {"requests": self._requests, "bytes": self._bytes}
            self._requests = self._bytes = 0
            return "200 OK", {}, json.dumps(counts).encode()
        bucket, _, key = path.partition("/")
        self._requests += 1
        await asyncio.sleep(int(bucket.removeprefix("ms")) / 1e3)
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", {}, b""
        if not key:
            return "200 OK", {"Content-Type": "application/xml"}, self._list(urllib.parse.parse_qs(url.query))
        file = (self._root / key).resolve()
        if not file.is_relative_to(self._root) or not file.is_file():
            return "404 Not Found", {"Content-Type": "application/xml"}, b"<Error><Code>NoSuchKey</Code></Error>"
        size = file.stat().st_size
        about = {
            "ETag": f'"{size:x}"', "Last-Modified": formatdate(file.stat().st_mtime, usegmt=True),
            "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"
        }
        if method == "HEAD":
            return "200 OK", {**about, "Content-Length": str(size)}, b""
        begin, end, status = 0, size, "200 OK"
        if wanted := headers.get("range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin, end = (int(first),
                          min(int(last) + 1, size) if last else size) if first else (max(size - int(last), 0), size)
            about["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
            status = "206 Partial Content"
        with open(file, "rb") as f:
            body = os.pread(f.fileno(), end - begin, begin)
        self._bytes += len(body)
        return status, about, body

    def _list(self, query: dict[str, list[str]]) -> bytes:
        """ListObjectsV2, in one page."""
        prefix = query.get("prefix", [""])[0]
        delimiter = query.get("delimiter", [""])[0]
        after = query.get("start-after", [""])[0]
        keys, common = [], []
        for f in sorted(p for p in (self._root / prefix.rpartition("/")[0]).rglob("*") if p.is_file()):
            key = f.relative_to(self._root).as_posix()
            if not key.startswith(prefix) or key <= after:
                continue
            rest = key[len(prefix):]
            if delimiter and delimiter in rest:
                folder = prefix + rest.partition(delimiter)[0] + delimiter
                if folder not in common:
                    common.append(folder)
                continue
            keys.append(f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                        f"<ETag>&quot;{f.stat().st_size:x}&quot;</ETag><Size>{f.stat().st_size}</Size></Contents>")
        folders = "".join(f"<CommonPrefixes><Prefix>{escape(c)}</Prefix></CommonPrefixes>" for c in common)
        return (
            f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>b</Name><Prefix>{escape(prefix)}</Prefix>'
            f"<KeyCount>{len(keys) + len(common)}</KeyCount><MaxKeys>1000000</MaxKeys><IsTruncated>false</IsTruncated>"
            f"{''.join(keys)}{folders}</ListBucketResult>").encode()


async def main() -> None:
    # A core that the engines do not use, where there is one: it is the network.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    server = await asyncio.start_server(
        Objects(pathlib.Path(sys.argv[1]).resolve()).serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
