"""Engines on the test servers, as the benches run them."""

from contextlib import asynccontextmanager

import pytest

from orchestrata_memory.bench.environment import RUNNER, environment
from tests.engine.conftest import engine_settings


@pytest.fixture
def settings(clean_redis, clean_graph, tmp_path):
    return engine_settings(clean_redis, clean_graph, tmp_path, governance={"volks": {}})


@pytest.fixture
def bench_environment(settings, tmp_path):
    """Opens an environment on the test servers."""

    @asynccontextmanager
    async def opened(**options):
        async with environment("configured", settings, data_dir=tmp_path, **options) as place:
            assert RUNNER in place.settings.governance.volks
            yield place

    return opened
