"""The outbox: a stream read by one consumer group, and the dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis import exceptions as driver

from orchestrata_memory.errors import MemoryStorageError
from orchestrata_memory.hot import codec, keys
from orchestrata_memory.hot.base import (
    BadOutboxRecord,
    Confirmation,
    DeadLetter,
    OutboxKind,
    OutboxRecord,
)
from orchestrata_memory.hot.part import HotPart, chunks

GROUP = "writers"
_CONFIRM_CHUNK = 200
_REVIVE_CHUNK = 200
_LETTER_CHUNK = 50
"""Letters hold whole memories, so only some are fetched at once."""


class Outbox(HotPart):
    """Write-behind's side of the hot tier.

    Traces: REQ-010-010
    """

    async def take(
        self, consumer: str, *, count: int, block_seconds: float
    ) -> list[OutboxRecord | BadOutboxRecord]:
        """Next records; see `HotStore.take`. Waits at most half the operation's timeout.

        Not repeated when the connection breaks: what was delivered then waits for `take_over`.
        """
        arguments: list[str | int] = ["GROUP", GROUP, consumer, "COUNT", count]
        block_ms = int(min(block_seconds, self._longest_wait()) * 1000)
        if block_ms > 0:
            arguments += ("BLOCK", block_ms)
        answer = await self._of_group(
            lambda: self._redis.command(
                "XREADGROUP", *arguments, "STREAMS", keys.OUTBOX, ">", repeat=False
            )
        )
        return [
            _load(outbox_id, 0, fields)
            for _stream, records in answer or ()
            for outbox_id, fields in records
        ]

    async def take_over(
        self, consumer: str, *, idle_seconds: float, count: int
    ) -> list[OutboxRecord | BadOutboxRecord]:
        """Records left unconfirmed; see `HotStore.take_over`."""
        idle_ms = int(idle_seconds * 1000)
        answer = await self._of_group(
            lambda: self._redis.run("take_over", consumer, idle_ms, count, repeat=False)
        )
        return [
            _load(outbox_id, deliveries, codec.mapping(flat))
            for outbox_id, deliveries, flat in answer
        ]

    async def confirm(self, confirmations: Sequence[Confirmation]) -> list[str]:
        """Cold holds these; see `HotStore.confirm`. Idempotent.

        A copy that expired, and one that cold has overtaken, leave a marker too and are named.
        """
        calls = []
        for chunk in chunks(confirmations, _CONFIRM_CHUNK):
            arguments: list[str | int] = []
            for each in chunk:
                arguments += (each.outbox_id, each.key, each.version)
            calls.append(arguments)
        if not calls:
            return []
        answers = await self._redis.run_many("confirm", calls)
        return [key.decode() for answer in answers for key in answer]

    async def bury(self, outbox_id: str, problem: str) -> None:
        """Move a record to the dead letters; see `HotStore.bury`. Idempotent.

        A record whose key has a newer one on the outbox is dropped: it has nothing to add.
        """
        await self._redis.run("bury", outbox_id, problem)

    async def dead_letters(self, limit: int) -> list[DeadLetter]:
        """What was set aside, oldest first; see `HotStore.dead_letters`."""
        letters: list[DeadLetter] = []
        start = "-"
        while len(letters) < limit:
            count = min(_LETTER_CHUNK, limit - len(letters))
            found = await self._redis.command("XRANGE", keys.DEAD, start, "+", "COUNT", count)
            letters += [_letter(outbox_id, fields) for outbox_id, fields in found]
            if len(found) < count:
                break
            start = f"({letters[-1].outbox_id}"
        return letters

    async def revive(self) -> int:
        """Put every dead letter back on the outbox, oldest first; the number of records."""
        total = 0
        waiting = int(await self._redis.command("XLEN", keys.DEAD))
        while total < waiting:
            moved = int(await self._redis.run("revive", min(_REVIVE_CHUNK, waiting - total)))
            if moved == 0:
                break
            total += moved
        return total

    async def outbox_length(self) -> int:
        """Records on the outbox, taken ones included; dead letters not."""
        return int(await self._redis.command("XLEN", keys.OUTBOX))

    async def ensure_group(self) -> None:
        """Make the consumer group, at the stream's beginning; leave one that is there."""
        try:
            await self._redis.command("XGROUP", "CREATE", keys.OUTBOX, GROUP, "0", "MKSTREAM")
        except MemoryStorageError as error:
            if not _is(error, "BUSYGROUP"):
                raise

    async def _of_group(self, attempt: Any) -> Any:  # noqa: ANN401
        try:
            return await attempt()
        except MemoryStorageError as error:
            if not _is(error, "NOGROUP"):
                raise
        # Confirmed records are deleted, so a group made anew delivers just what is unconfirmed.
        await self.ensure_group()
        return await attempt()

    def _longest_wait(self) -> float:
        return self._redis.timeout_seconds / 2


def _is(error: MemoryStorageError, code: str) -> bool:
    """Whether the server answered with this code; group errors may come out of a script."""
    cause = error.__cause__
    return isinstance(cause, driver.ResponseError) and code in str(cause)


def _letter(outbox_id: bytes, fields: codec.Fields) -> DeadLetter:
    key, problem = (fields.get(name, b"").decode(errors="replace") for name in (b"key", b"problem"))
    return DeadLetter(outbox_id=outbox_id.decode(), key=key, problem=problem)


def _load(
    outbox_id: bytes, deliveries: int, fields: codec.Fields
) -> OutboxRecord | BadOutboxRecord:
    name = outbox_id.decode()
    try:
        kind = OutboxKind(fields[b"kind"].decode())
        key = fields[b"key"].decode()
        return OutboxRecord(
            outbox_id=name,
            kind=kind,
            key=key,
            version=int(fields[b"version"]),
            record=codec.load_record(key, fields) if kind is OutboxKind.PUT else None,
            delegation=codec.load_delegation(fields) if kind is OutboxKind.DELEGATION else None,
            deliveries=deliveries,
        )
    except codec.UnreadableRecordError as error:
        return BadOutboxRecord(outbox_id=name, problem=str(error))
    except KeyError as error:
        return BadOutboxRecord(outbox_id=name, problem=f"the field {error.args[0]!r} is missing")
    except ValueError:
        return BadOutboxRecord(outbox_id=name, problem="the kind, key or version is malformed")
