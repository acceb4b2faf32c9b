"""Puts the operations together from the parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrata_memory.config.settings import MemoryEngineSettings
from orchestrata_memory.engine.background import TaskPool
from orchestrata_memory.engine.census_taking import CensusTaker
from orchestrata_memory.engine.changing import Changer
from orchestrata_memory.engine.doorway import Clock, Doorway
from orchestrata_memory.engine.migrating import Migrator
from orchestrata_memory.engine.model_check import ModelCheck
from orchestrata_memory.engine.notices import Notices
from orchestrata_memory.engine.operations.closing import Closing
from orchestrata_memory.engine.operations.gathering import Gatherer
from orchestrata_memory.engine.operations.injecting import Injecting
from orchestrata_memory.engine.operations.reading import Reading
from orchestrata_memory.engine.operations.searching import Searching
from orchestrata_memory.engine.operations.sharing import Sharing
from orchestrata_memory.engine.operations.summarizing import Summarizing
from orchestrata_memory.engine.operations.writing import Writing
from orchestrata_memory.engine.parts import Parts
from orchestrata_memory.engine.promoting import Promoter
from orchestrata_memory.engine.rights import ReadingRights
from orchestrata_memory.engine.storing import Inserter
from orchestrata_memory.engine.summary_maker import SummaryMaker
from orchestrata_memory.engine.tiers import Tiers
from orchestrata_memory.engine.upkeep import Upkeep
from orchestrata_memory.engine.vectorizing import Vectorizer
from orchestrata_memory.engine.warming import WarmUp
from orchestrata_memory.engine.writebehind import WriteBehind

_FAVOURS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """The operations and the background work of one engine."""

    writing: Writing
    reading: Reading
    searching: Searching
    sharing: Sharing
    summarizing: Summarizing
    injecting: Injecting
    closing: Closing
    worker: WriteBehind
    upkeep: Upkeep
    warm_up: WarmUp
    favours: TaskPool


def wire(
    parts: Parts,
    settings: MemoryEngineSettings,
    notices: Notices,
    *,
    ensure_running: Callable[[], None],
    clock: Clock,
) -> Wired:
    """Connect parts to operations."""
    hot, cold, governance = parts.hot, parts.cold, parts.governance
    tiers = Tiers(hot, cold, parts.index)
    delegations = parts.delegations
    rights = ReadingRights(tiers, delegations)
    doorway = Doorway(parts.audit, notices, ensure_running, clock)
    vectorizer = Vectorizer(parts.embedder, late_interaction=settings.embedding.late_interaction)
    model_check = ModelCheck(
        cold, parts.embedder.model_name, replace=settings.embedding.replace_model
    )
    changer = Changer(hot, cold, tiers, parts.index)
    promoter = Promoter(hot, cold, vectorizer)
    migrator = Migrator(hot, cold, notices, settings.worker)
    favours = TaskPool("after a search", _FAVOURS)
    gatherer = Gatherer(parts.find, tiers)
    counter_for = parts.counters.for_context
    writing = Writing(
        doorway=doorway,
        governance=governance,
        inserter=Inserter(hot, cold),
        changer=changer,
        rights=rights,
        notices=notices,
        limits=settings.limits,
        counter_for=counter_for,
        forget=parts.embedder.forget,
    )
    searching = Searching(
        doorway=doorway,
        search=parts.search,
        find=parts.find,
        rights=rights,
        tiers=tiers,
        hot=hot,
        promoter=promoter,
        favours=favours,
        notices=notices,
        promote=settings.search.promote,
    )
    maker = SummaryMaker(
        embedder=parts.embedder,
        counter_for=counter_for,
        abstractive=parts.abstractive,
        abstractive_by_default=settings.summary.abstractive,
        token_check=parts.token_check,
        half_life_days=settings.search.recency_half_life_days,
        notices=notices,
    )
    summarizing = Summarizing(
        doorway=doorway,
        governance=governance,
        gatherer=gatherer,
        tiers=tiers,
        maker=maker,
        writing=writing,
        notices=notices,
        content_bytes=settings.limits.content_bytes,
    )
    return Wired(
        writing=writing,
        reading=Reading(
            doorway=doorway,
            governance=governance,
            rights=rights,
            tiers=tiers,
            hot=hot,
            cold=cold,
            notices=notices,
        ),
        searching=searching,
        sharing=Sharing(
            doorway=doorway,
            governance=governance,
            changer=changer,
            delegations=delegations,
            rights=rights,
        ),
        summarizing=summarizing,
        injecting=Injecting(
            doorway=doorway,
            searching=searching,
            maker=maker,
            gatherer=gatherer,
            settings=settings,
        ),
        closing=Closing(doorway=doorway, governance=governance, migrator=migrator),
        worker=WriteBehind(
            hot, cold, vectorizer, parts.analyzer, settings.worker, model_check=model_check
        ),
        upkeep=Upkeep(
            hot=hot,
            cold=cold,
            vectorizer=vectorizer,
            migrator=migrator,
            delegations=delegations,
            census=CensusTaker(hot, cold, parts.index),
            worker=settings.worker,
            audit=settings.audit,
            clock=clock,
            model_check=model_check,
        ),
        warm_up=WarmUp(parts, language=settings.search.language),
        favours=favours,
    )
