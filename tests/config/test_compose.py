"""docker-compose.yml is what it says: valid, and the servers the engine needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"


def check(path: Path) -> subprocess.CompletedProcess[str]:
    """Check a file against the Compose Specification's schema."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "check_jsonschema"),
            *("--builtin-schema", "vendor.compose-spec", str(path)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_fits_the_compose_specification() -> None:
    answer = check(COMPOSE)
    assert answer.returncode == 0, answer.stdout


def test_the_check_finds_a_mistake(tmp_path: Path) -> None:
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(COMPOSE.read_text().replace("healthcheck:", "healthchek:", 1))
    answer = check(broken)
    assert answer.returncode != 0
    assert "healthchek" in answer.stdout


def test_redis_keeps_every_write_and_evicts_nothing() -> None:
    command = yaml.safe_load(COMPOSE.read_text())["services"]["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "always"
    assert options["--maxmemory-policy"] == "noeviction"


def test_nothing_is_published_beyond_this_machine_and_all_data_is_kept() -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    for name, service in services.items():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name
        assert service["volumes"], name
        assert service["healthcheck"]["test"], name


@pytest.mark.skipif(shutil.which("docker") is None, reason="no docker command here")
def test_docker_itself_understands_it() -> None:
    compose = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if compose.returncode:
        pytest.skip("this docker has no compose command")
    answer = subprocess.run(
        ["docker", "compose", "--file", str(COMPOSE), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "REDIS_PASSWORD": "a", "NEO4J_PASSWORD": "b"},
    )
    assert answer.returncode == 0, answer.stderr
