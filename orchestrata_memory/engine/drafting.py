"""From checked arguments to a new record or the next version of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrata_memory.config.settings import LimitSettings
from orchestrata_memory.models import MemoryClassification, MemoryContext, MemoryRecord
from orchestrata_memory.models.hashing import content_hash
from orchestrata_memory.models.validation import (
    check_classification,
    check_content,
    check_metadata,
    check_tags,
)
from orchestrata_memory.tokens.base import ITokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a caller asked to be stored or changed, checked; None: not given."""

    content: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    classification: MemoryClassification | None = None

    @classmethod
    def checked(
        cls,
        limits: LimitSettings,
        *,
        content: str | None,
        tags: list[str] | None,
        metadata: dict[str, Any] | None,
        classification: MemoryClassification | None,
    ) -> Draft:
        """Check what is given.

        Raises:
            MemoryValidationError: An argument breaks a rule.
        """
        return cls(
            content=None if content is None else check_content(content, limits.content_bytes),
            tags=None if tags is None else check_tags(tags, limits.tags),
            metadata=None if metadata is None else check_metadata(metadata, limits.metadata_bytes),
            classification=None if classification is None else check_classification(classification),
        )

    def first_version(
        self, key: str, context: MemoryContext, counter: ITokenCounter, now: datetime
    ) -> MemoryRecord:
        """The record of a new memory of the caller's session."""
        content = self.content or ""
        return MemoryRecord(
            key=key,
            content=content,
            volk_id=context.volk_id,
            session_id=context.session_id,
            task_id=context.task_id,
            project_id=context.project_id,
            portfolio_id=context.portfolio_id,
            created_at=now,
            updated_at=now,
            content_hash=content_hash(content),
            tags=self.tags or (),
            metadata=self.metadata or {},
            classification=self.classification or MemoryClassification.PRIVATE,
            token_count=counter.count(content),
        )

    def next_version(
        self, record: MemoryRecord, counter: ITokenCounter, now: datetime
    ) -> MemoryRecord:
        """The next version of a record; only what is given changes."""
        changes: dict[str, Any] = {"version": record.version + 1, "updated_at": now}
        if self.content is not None and self.content != record.content:
            changes["content"] = self.content
            changes["content_hash"] = content_hash(self.content)
            changes["token_count"] = counter.count(self.content)
        if self.tags is not None:
            changes["tags"] = self.tags
        if self.metadata is not None:
            changes["metadata"] = self.metadata
        if self.classification is not None:
            changes["classification"] = self.classification
        return record.changed(**changes)


def same_memory(existing: MemoryRecord, wanted: MemoryRecord) -> bool:
    """Whether storing `wanted` would say again what `existing` says."""
    return (
        existing.volk_id == wanted.volk_id
        and existing.session_id == wanted.session_id
        and existing.content_hash == wanted.content_hash
        and existing.tags == wanted.tags
        and existing.metadata == wanted.metadata
        and existing.classification is wanted.classification
    )
