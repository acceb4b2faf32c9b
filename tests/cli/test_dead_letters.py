"""What the graph refused is seen and revived from the command line."""

import asyncio
from pathlib import Path

import pytest

from orchestrata_memory.cli.exits import ExitCode
from orchestrata_memory.config.settings import EmbeddedSettings, RedisSettings
from orchestrata_memory.embedded import EmbeddedServers
from orchestrata_memory.hot.store import RedisHotStore
from tests.hot.making import store

pytestmark = pytest.mark.servers


async def bury_one(data_dir: Path, key: str) -> None:
    """A memory that the graph refused."""
    servers = EmbeddedServers(data_dir, EmbeddedSettings(linger_seconds=120), graph=False)
    async with servers:
        hot = RedisHotStore(RedisSettings(), url=servers.addresses.redis_url, outbox_limit=1000)
        await hot.open()
        await store(hot, key=key, content="canary content")
        [taken] = await hot.take("w", count=10, block_seconds=0)
        await hot.bury(taken.outbox_id, "the graph refused it")
        await hot.close()


def test_dead_letters_are_shown_without_content_and_revived(memory):
    data_dir = Path(memory.keywords["env"]["ORCHESTRATA_MEMORY_DATA_DIR"])
    none = memory("dead-letters", "--json")
    asyncio.run(bury_one(data_dir, "refused"))

    shown = memory("dead-letters")
    revived = memory("dead-letters", "--revive", "--json")
    after = memory("dead-letters", "--json")

    assert none.code == ExitCode.NOTHING
    assert none.json == {"count": 0, "dead_letters": [], "revived": 0}
    assert shown.code == ExitCode.OK
    assert "refused" in shown.out
    assert "the graph refused it" in shown.out
    assert "canary" not in shown.out + revived.out
    assert revived.json["revived"] == 1
    [letter] = revived.json["dead_letters"]
    assert letter["key"] == "refused"
    assert after.json["count"] == 0
