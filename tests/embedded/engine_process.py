"""An engine in a process of its own, to be killed: ``python engine_process.py DATA_DIR``.

Starts the embedded Redis, writes one key, says where it is, and hangs on until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import redis.asyncio

from orchestrata_memory.embedded import EmbeddedServers


async def main() -> None:
    servers = EmbeddedServers(Path(sys.argv[1]), graph=False)
    addresses = await servers.start()
    assert addresses.redis_url is not None
    async with redis.asyncio.Redis.from_url(addresses.redis_url) as client:
        await client.set("written", "before the kill")
    sys.stdout.write(addresses.redis_url + "\n")
    sys.stdout.flush()
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main())
