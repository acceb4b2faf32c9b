"""The default model itself, on both backends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from orchestrata_memory.config.settings import EmbeddingSettings
from orchestrata_memory.embedding import locate
from orchestrata_memory.embedding.agreement import PROBES, REQUIRED_COSINE, least_cosine
from orchestrata_memory.embedding.factory import build_embedder
from orchestrata_memory.embedding.onnx import OnnxModel
from orchestrata_memory.embedding.sentence_transformers import SentenceTransformersModel
from orchestrata_memory.errors import MemoryConfigurationError

ODD_TEXTS = [
    "a",
    "!!!",
    "日本語のテキスト",
    "👨‍👩‍👧‍👦",
    "e\u0301",
    "<s> [CLS] [SEP]",
    "\u200b",
    "x" * 3000,
]


@pytest.fixture(scope="module")
def reference() -> SentenceTransformersModel:
    model = SentenceTransformersModel()
    model.load()
    return model


@pytest.fixture(scope="module")
def light() -> OnnxModel:
    model = OnnxModel()
    model.load()
    return model


@pytest.fixture(params=["reference", "light"])
def model(request):
    return request.getfixturevalue(request.param)


@pytest.mark.traces("REQ-010-036")
def test_the_default_model_gives_what_sentence_transformers_gives(reference):
    directory = locate.local_model_dir(reference.name, None)
    original = SentenceTransformer(str(directory), device="cpu")

    ours = reference.encode(PROBES, with_tokens=False)

    assert reference.dimension == 384
    theirs = original.encode(list(PROBES), normalize_embeddings=True)
    assert np.allclose([encoding.vector for encoding in ours], theirs, atol=1e-5)


@pytest.mark.traces("REQ-010-036")
def test_meaning_is_near_without_a_shared_word(model):
    question, answer, other = model.encode(
        [
            "Which pet does she own?",
            "Caroline adopted a puppy from the shelter.",
            "The invoice is due on Friday.",
        ],
        with_tokens=False,
    )

    assert question.vector @ answer.vector > question.vector @ other.vector + 0.1


def test_the_light_backend_agrees_with_the_reference(reference, light):
    agreement = least_cosine(
        reference.encode(PROBES, with_tokens=False), light.encode(PROBES, with_tokens=False)
    )

    assert REQUIRED_COSINE <= agreement < 1


def test_token_states_and_vector_come_together(model):
    [with_tokens] = model.encode(["Kubernetes restarted twice."], with_tokens=True)
    [without] = model.encode(["Kubernetes restarted twice."], with_tokens=False)

    assert with_tokens.pieces == ("ku", "##ber", "##net", "##es", "restarted", "twice", ".")
    assert with_tokens.tokens.shape == (7, 384)
    assert np.allclose(np.linalg.norm(with_tokens.tokens, axis=1), 1, atol=1e-4)
    assert np.allclose(with_tokens.vector, without.vector, atol=1e-5)
    assert without.tokens is None


def test_a_batch_gives_what_each_text_gives_alone(model):
    texts = [*ODD_TEXTS, *PROBES]

    together = model.encode(texts, with_tokens=True)

    for text, encoding in zip(texts, together, strict=True):
        [alone] = model.encode([text], with_tokens=True)
        assert encoding.vector @ alone.vector > 0.9999
        assert encoding.pieces == alone.pieces
        assert abs(np.linalg.norm(encoding.vector) - 1) < 1e-4


def test_no_part_of_a_long_text_is_cut_off(model):
    """A fact behind the first window still moves the vector towards a question about it."""
    filler = "The committee discussed the budget of the coming year at length. " * 60
    fact = "Caroline adopted a small brown puppy from the animal shelter. " * 20
    [question, plain, with_fact] = model.encode(
        ["Who adopted a puppy from the shelter?", filler, filler + fact], with_tokens=False
    )

    assert question.vector @ with_fact.vector > question.vector @ plain.vector + 0.1


def test_a_text_of_one_window_is_not_changed_by_windows(reference):
    """Just below and just above the limit the vectors hardly differ."""
    words = "storage " * 254
    [below, above] = reference.encode([words, words + "storage storage"], with_tokens=True)

    assert below.vector @ above.vector > 0.99
    assert len(above.pieces) == 256


def test_ten_thousand_words_are_encoded():
    model = OnnxModel(threads=2)
    [encoding] = model.encode(["ten thousand words of text " * 2000], with_tokens=True)

    assert encoding.vector.shape == (384,)
    assert len(encoding.pieces) == len(encoding.tokens) == 512


@pytest.mark.traces("REQ-010-036", "REQ-010-008")
async def test_the_service_serves_queries_by_the_light_backend_and_checks_it():
    service = build_embedder(EmbeddingSettings())
    await service.open()
    try:
        await service.embed_query("Which database did we choose?")
        assert not (await service.health()).details["document_model_loaded"]
        [encoding] = await service.embed(["We chose Postgres."])
        async with asyncio.timeout(30):
            while (await service.health()).details["query_agreement"] is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

        health = await service.health()
        assert encoding.vector.shape == (384,)
        assert health.details["query_backend"] == "onnx"
        assert health.details["query_agreement"] >= REQUIRED_COSINE
    finally:
        await service.close()


@pytest.mark.traces("REQ-010-038")
@pytest.mark.parametrize("kind", [SentenceTransformersModel, OnnxModel])
def test_a_directory_without_a_model_is_an_error_that_says_what_to_do(kind, tmp_path: Path):
    with pytest.raises(MemoryConfigurationError, match="model_path"):
        kind("mine", model_path=tmp_path).load()


@pytest.mark.traces("REQ-010-038")
async def test_a_configured_dimension_the_model_does_not_have_is_refused():
    service = build_embedder(EmbeddingSettings(backend="onnx", dimension=768))
    await service.open()
    try:
        with pytest.raises(MemoryConfigurationError, match="gives 384"):
            await service.embed(["text"])
    finally:
        await service.close()


def test_a_backend_that_is_not_there_is_an_error_at_once(monkeypatch):
    monkeypatch.setattr("orchestrata_memory.embedding.onnx.find_spec", lambda _name: None)

    with pytest.raises(MemoryConfigurationError, match=r"orchestrata-memory\[onnx\]"):
        build_embedder(EmbeddingSettings(backend="onnx"))
    with pytest.raises(MemoryConfigurationError, match="query_backend"):
        build_embedder(EmbeddingSettings(query_backend="onnx"))
    assert build_embedder(EmbeddingSettings()).query_backend == "sentence-transformers"


def test_importing_the_package_imports_no_library_of_models():
    code = (
        "import sys; import orchestrata_memory.embedding.factory; "
        "print([m for m in ('torch', 'onnxruntime', 'transformers', 'tokenizers') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "stated",
    [{"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}],
)
def test_an_export_that_pools_otherwise_is_refused(tmp_path: Path, stated):
    folder = locate.local_model_dir(locate.DEFAULT_MODEL, None)
    files = locate.onnx_files(locate.DEFAULT_MODEL, None)
    assert folder is not None
    assert files is not None
    for file in files:
        (tmp_path / file.name).symlink_to(file)
    OnnxModel("mine", model_path=tmp_path).load()
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(stated))

    with pytest.raises(MemoryConfigurationError, match=r"cls.*sentence-transformers"):
        OnnxModel("mine", model_path=tmp_path).load()
