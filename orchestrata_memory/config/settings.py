"""The engine's settings, as under ``runtime.memory_engine`` of a configuration file.

Durations are seconds, sizes bytes, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

import Stemmer
from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from orchestrata_memory.config.checked import Settings
from orchestrata_memory.config.problems import SettingProblem, refusal
from orchestrata_memory.models import SYSTEM_VOLK, InjectionStrategy

DAY = int(timedelta(days=1).total_seconds())


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError("names the home folder of nobody known here") from error


UserPath = Annotated[Path, AfterValidator(_expanded)]
"""A path in which ``~`` is the user's home folder."""

Seconds = Annotated[float, Field(gt=0)]

SHIPPED_ROLES = ("system_admin", "team_lead")
"""The roles that the rules as shipped ask for."""


class RedisSettings(Settings):
    """The hot tier's server. No URL: the embedded default."""

    url: SecretStr | None = None
    sentinel_master: str | None = None
    ttl_seconds: int = Field(default=DAY, ge=1)
    failed_migration_ttl_seconds: int = Field(default=7 * DAY, ge=1)
    operation_timeout_seconds: Seconds = 5.0
    max_connections: int = Field(default=64, ge=4)

    @model_validator(mode="after")
    def _nothing_is_said_of_a_server_that_is_not_used(self) -> Self:
        if self.url is None and self.sentinel_master is not None:
            raise refusal(_unused("sentinel_master", "url"))
        return self


class GraphSettings(Settings):
    """The cold tier's server. No URI: the embedded default.

    Attributes:
        document_cache_mb: Room for what searches have read of the graph, so that it need not be
            sent again: some 20,000 short memories; 0 keeps nothing.
    """

    uri: str | None = None
    dialect: Literal["auto", "neo4j", "arcadedb"] = "auto"
    username: str = "neo4j"
    password: SecretStr | None = None
    database: str | None = None
    http_url: str | None = None
    operation_timeout_seconds: Seconds = 30.0
    max_connections: int = Field(default=32, ge=2)
    document_cache_mb: int = Field(default=96, ge=0)

    @model_validator(mode="after")
    def _nothing_is_said_of_a_server_that_is_not_used(self) -> Self:
        # A login may stand in the environment whether or not it is needed.
        said = {
            "dialect": self.dialect == "neo4j",
            "database": self.database is not None,
            "http_url": self.http_url is not None,
        }
        if self.uri is None and any(said.values()):
            raise refusal(*(_unused(name, "uri") for name, given in said.items() if given))
        return self


class EmbeddedSettings(Settings):
    """The embedded servers.

    Attributes:
        graph_heap_mb: Upper bound of ArcadeDB's heap, MiB; None: a quarter of what the machine or
            container has. 100,000 memories need some 1,000.
    """

    data_dir: UserPath | None = None
    linger_seconds: float = Field(default=0.0, ge=0)
    fsync: Literal["always", "everysec"] = "always"
    graph_heap_mb: int | None = Field(default=None, ge=128)


class EmbeddingSettings(Settings):
    """The embedding model.

    Attributes:
        query_backend: ``auto`` serves queries by ONNX where it is installed and agrees with the
            model (cosine at least 0.999).
        threads: Threads of one forward pass on the CPU; one leaves the event loop room to breathe.
        replace_model: Embed everything in the graph anew where its vectors come from another model;
            otherwise that is an error at start.
        late_interaction: Keep token vectors and use them to rank the best candidates.
    """

    model: str = "all-MiniLM-L6-v2"
    model_path: UserPath | None = None
    dimension: int = Field(default=384, ge=2)
    backend: Literal["sentence-transformers", "onnx", "hashing"] = "sentence-transformers"
    query_backend: Literal["auto", "same", "onnx"] = "auto"
    cache_embeddings: bool = True
    cache_size: int = Field(default=10_000, ge=1)
    batch_size: int = Field(default=32, ge=1)
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = Field(default=1, ge=1)
    replace_model: bool = False
    late_interaction: bool = True


class GovernanceSettings(Settings):
    """The rules, and the directory of Volks when the kernel offers none.

    Attributes:
        volks: Alias to roles of every registered Volk. Without `rule_files` there are no other
            roles than `SHIPPED_ROLES`.
        rule_files: A deployment's own rules, loaded after the package's.
    """

    volks: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    rule_files: tuple[UserPath, ...] = ()

    @model_validator(mode="after")
    def _volks_can_be_registered(self) -> Self:
        if problems := [*self._reserved(), *self._unknown_roles()]:
            raise refusal(*problems)
        return self

    def _reserved(self) -> Iterator[SettingProblem]:
        if SYSTEM_VOLK in self.volks:
            what = f"{SYSTEM_VOLK} is the engine itself and cannot be registered"
            yield SettingProblem(where=("volks", SYSTEM_VOLK), what=what)

    def _unknown_roles(self) -> Iterator[SettingProblem]:
        if self.rule_files:
            return
        names = ", ".join(SHIPPED_ROLES)
        what = f"there is no such role; the rules know {names} (others need rule_files)"
        for volk, roles in self.volks.items():
            for place, role in enumerate(roles):
                if role not in SHIPPED_ROLES:
                    yield SettingProblem(where=("volks", volk, str(place)), what=what)


class LimitSettings(Settings):
    """Bounds of what a caller may store."""

    content_bytes: int = Field(default=64 * 1024, ge=1)
    metadata_bytes: int = Field(default=16 * 1024, ge=2)
    tags: int = Field(default=64, ge=0)


class WorkerSettings(Settings):
    """Write-behind, retries and upkeep."""

    batch_size: int = Field(default=200, ge=1)
    outbox_limit: int = Field(default=50_000, ge=1)
    max_deliveries: int = Field(default=5, ge=1)
    takeover_idle_seconds: Seconds = 30.0
    retry_initial_seconds: Seconds = 0.2
    retry_max_seconds: Seconds = 15.0
    sweep_interval_seconds: Seconds = 60.0
    drain_timeout_seconds: Seconds = 60.0
    migration_timeout_seconds: Seconds = 60.0


class AuditSettings(Settings):
    """The audit trail.

    Attributes:
        file: Append-only file used while Redis is away; None: under the data directory.
        retention_days: How long cold keeps records; 0 keeps them for good.
    """

    file: UserPath | None = None
    retention_days: int = Field(default=365, ge=0)


class SearchSettings(Settings):
    """Ranking.

    Attributes:
        language: Snowball stemmer's name, such as ``english`` or ``german``.
        recency_half_life_days: Age at which recency counts half, in searches and summaries.
        promote: Copy matched cold entries into the searcher's open session.
    """

    language: str = "english"
    recency_half_life_days: float = Field(default=30.0, gt=0)
    promote: bool = True

    @field_validator("language")
    @classmethod
    def _has_a_stemmer(cls, language: str) -> str:
        if language not in (known := Stemmer.algorithms()):
            raise ValueError(f"there is no such stemmer; choose one of {', '.join(known)}")
        return language


class SummarySettings(Settings):
    """Abstractive summaries; extractive ones need no setting."""

    abstractive: bool = False
    deadline_seconds: Seconds = 20.0
    model: str = "claude-haiku-4-5"
    anthropic_api_key: SecretStr | None = None


class MemoryEngineSettings(Settings):
    """Everything under ``runtime.memory_engine``."""

    injection_budget_tokens: int = Field(default=4096, ge=16)
    injection_strategy: InjectionStrategy = InjectionStrategy.RELEVANCE
    injection_enabled: bool = True
    redis: RedisSettings = RedisSettings()
    graph: GraphSettings = GraphSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    governance: GovernanceSettings = GovernanceSettings()
    limits: LimitSettings = LimitSettings()
    worker: WorkerSettings = WorkerSettings()
    audit: AuditSettings = AuditSettings()
    search: SearchSettings = SearchSettings()
    summary: SummarySettings = SummarySettings()


def _unused(name: str, address: str) -> SettingProblem:
    what = (
        f"it is about a server of your own, but {address} is not set, so the embedded one is used: "
        f"set {address}, or leave this out"
    )
    return SettingProblem(where=(name,), what=what)
