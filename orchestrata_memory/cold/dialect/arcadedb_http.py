"""ArcadeDB's HTTP port, as far as the schema needs it. Blocking: call it on a thread."""

from __future__ import annotations

import json
from base64 import b64encode
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from orchestrata_memory.errors import (
    MemoryConfigurationError,
    MemoryStorageError,
    MemoryUnavailableError,
)

_PART = "the graph's HTTP port"
_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404


class ArcadeHttp:
    """Runs SQL over HTTP.

    Args:
        url: Such as ``http://127.0.0.1:2480``.
        username: Login name.
        password: Never shown.
        timeout: Seconds for one request; building an index over much data takes a while.
    """

    def __init__(self, url: str, username: str, password: str, *, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise MemoryConfigurationError("graph.http_url: needs the form http://host:port")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (2490 if self._secure else 2480)
        self._timeout = timeout
        login = b64encode(f"{username}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}

    def command(self, database: str, sql: str) -> None:
        """Run a statement that changes the schema."""
        self._post("command", database, sql)

    def query(self, database: str, sql: str) -> list[dict[str, Any]]:
        """Run a query."""
        return self._post("query", database, sql)

    def _post(self, endpoint: str, database: str, sql: str) -> list[dict[str, Any]]:
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout)
        body = json.dumps({"language": "sql", "command": sql})
        path = f"/api/v1/{endpoint}/{quote(database, safe='')}"
        try:
            connection.request("POST", path, body=body, headers=self._headers)
            response = connection.getresponse()
            payload = response.read()
        except (OSError, HTTPException) as error:
            raise MemoryUnavailableError(_PART, type(error).__name__) from error
        finally:
            connection.close()
        return _rows(response.status, payload, sql)


def _rows(status: int, payload: bytes, sql: str) -> list[dict[str, Any]]:
    if status in {_UNAUTHORIZED, _FORBIDDEN}:
        raise MemoryConfigurationError(
            "the graph's HTTP port refused the login: check graph.username and graph.password"
        )
    if status == _NOT_FOUND:
        raise MemoryConfigurationError("the graph has no such database: check graph.database")
    try:
        answer = json.loads(payload)
    except ValueError as error:
        raise MemoryStorageError(f"{_PART} did not answer with JSON") from error
    if status != _OK:
        why = answer.get("exception", status) if isinstance(answer, dict) else status
        raise MemoryStorageError(f"{_PART} refused {' '.join(sql.split()[:3])!r} ({why})")
    result = answer.get("result", [])
    return [row for row in result if isinstance(row, dict)]
