"""Where a real Neo4j comes from: ``NEO4J_URI``, else Docker, else a start script next door."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.servers.graph import GivenNeo4j, GraphServer, LocalNeo4j

ROOT = Path(__file__).parents[2]
IMAGE = "neo4j:5.26"
JAVA_NEEDED = 17


class NoNeo4jError(RuntimeError):
    """There is no Neo4j to test with; the message says what would help."""


def obtain_neo4j(folder: Path) -> GraphServer:
    """A Neo4j, not started yet.

    Raises:
        NoNeo4jError: None can be had.
    """
    uri = os.environ.get("NEO4J_URI")
    if uri:
        return _given(uri)
    container = _container()
    if container is not None:
        return container
    return LocalNeo4j(folder, _start_script())


def _given(uri: str) -> GraphServer:
    server = GivenNeo4j(
        uri,
        os.environ.get("NEO4J_USER", "neo4j"),
        os.environ.get("NEO4J_PASSWORD", ""),
        os.environ.get("NEO4J_DATABASE", "neo4j"),
    )
    if not server.answers():
        raise NoNeo4jError(f"NEO4J_URI is set, but {uri} does not answer `RETURN 1`")
    if server.count_nodes() and os.environ.get("NEO4J_TEST_WIPE") != "1":
        raise NoNeo4jError(
            f"the tests delete every node, and {uri} is not empty: use an empty database, or set "
            "NEO4J_TEST_WIPE=1 to lose what it holds"
        )
    return server


def _container() -> GraphServer | None:
    if not _docker_answers():
        return None
    from tests.servers.container import ContainerNeo4j  # noqa: PLC0415 - slow, and rarely needed

    return ContainerNeo4j(IMAGE)


def _docker_answers() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        probe = subprocess.run(
            [docker, "version", "--format", "{{.Server.Version}}"],
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def _start_script() -> Path:
    shared = os.environ.get("ORCHESTRATA_SHARED")
    script = (Path(shared) if shared else ROOT.parent / "shared") / "neo4j" / "start"
    if not script.is_file():
        raise NoNeo4jError(
            "set NEO4J_URI (with NEO4J_USER, NEO4J_PASSWORD), or run a Docker daemon, or put a "
            "start script at ../shared/neo4j/start (ORCHESTRATA_SHARED names another folder)"
        )
    version = _java_version()
    if version < JAVA_NEEDED:
        raise NoNeo4jError(
            f"{script} needs Java {JAVA_NEEDED} or newer on PATH, found {version or 'none'}: "
            "run `apt-get install openjdk-17-jre-headless`"
        )
    return script


def _java_version() -> int:
    java = shutil.which("java")
    if java is None:
        return 0
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found.group(1)) if found else 0
