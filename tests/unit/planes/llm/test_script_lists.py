"""What a scripted model answers besides completions."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upstream_kit import passed, query, script

from golden_words import Golden
from holdfast.planes.llm.sources.script_lists import embed_text

RULES = "  - {match: {model: small}, text: x}\n  - {match: {model: 'big-*'}, text: y}\n"


def near(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_script_embeddings_are_the_same_every_time_and_near_for_like_texts(tmp_path: Path) -> None:
    asked = query(
        {"model": "text-embedding-3-small", "input": ["tea price", "price of tea", "rain"]}, path="/v1/embeddings"
    )
    status, body = passed(script(tmp_path, RULES), asked)
    assert (status, body) == passed(script(tmp_path, RULES), asked)
    tea, also, rain = [item["embedding"] for item in body["data"]]
    assert len(tea) == 1536
    assert near(tea, also) > 0.7 > 0.3 > near(tea, rain)


def test_script_embeddings_come_as_base64_where_asked(tmp_path: Path) -> None:
    data = {"model": "m", "input": "tea", "dimensions": 8, "encoding_format": "base64"}
    _, body = passed(script(tmp_path, RULES), query(data, path="/embeddings"))
    values = struct.unpack("<8f", base64.b64decode(body["data"][0]["embedding"]))
    assert list(values) == pytest.approx(embed_text("tea", 8), abs=1e-6)


@pytest.mark.parametrize("given", [[1, 2, 3], [[1, 2, 3]]])
def test_script_embeddings_take_tokens(tmp_path: Path, given: list[object]) -> None:
    _, body = passed(script(tmp_path, RULES), query({"model": "m", "input": given}, path="/embeddings"))
    assert len(body["data"]) == 1


@pytest.mark.parametrize(
    ("provider", "path", "data", "at"),
    [
        ("google", "/v1beta/models/e:embedContent", {"content": {"parts": [{"text": "tea"}]}}, ("embedding", "values")),
        (
            "google",
            "/v1beta/models/e:batchEmbedContents",
            {"requests": [{"content": {"parts": [{"text": "tea"}]}}]},
            ("embeddings", 0, "values"),
        ),
        ("ollama", "/api/embed", {"model": "e", "input": "tea"}, ("embeddings", 0)),
        ("ollama", "/api/embeddings", {"model": "e", "prompt": "tea"}, ("embedding",)),
    ],
)
def test_script_embeddings_have_the_shape_of_each_provider(
    tmp_path: Path, provider: str, path: str, data: object, at: tuple[str | int, ...]
) -> None:
    status, found = passed(script(tmp_path, RULES), query(data, provider=provider, path=path))
    for step in at:
        found = found[step]
    assert (status, found) == (200, embed_text("tea", 768))


@pytest.mark.parametrize(
    ("provider", "path", "entry"),
    [
        ("openai", "/v1/models", ("data", "id", "small")),
        ("anthropic", "/v1/models?limit=20", ("data", "id", "small")),
        ("google", "/v1beta/models", ("models", "name", "models/small")),
        ("ollama", "/api/tags", ("models", "name", "small")),
        ("ollama", "/v1/models", ("data", "id", "small")),
    ],
)
def test_script_lists_the_models_it_stands_for(
    tmp_path: Path, provider: str, path: str, entry: tuple[str, str, str]
) -> None:
    asked = query(None, provider=provider, method="GET", path=path)
    status, body = passed(script(tmp_path, RULES, names=("gpt-4o",)), asked)
    listed, field, name = entry
    assert status == 200
    assert [model[field] for model in body[listed]] == [name.replace("small", "gpt-4o"), name]


def test_script_knows_one_of_its_models_and_no_other(tmp_path: Path) -> None:
    model = script(tmp_path, RULES)
    assert passed(model, query(None, method="GET", path="/v1/models/small"))[1]["id"] == "small"
    assert passed(model, query(None, method="GET", path="/v1/models/other"))[0] == 404


def test_script_has_nothing_for_other_requests(tmp_path: Path, golden: Golden) -> None:
    status, body = passed(script(tmp_path, RULES), query({}, path="/v1/files"))
    assert status == 404
    golden(body["error"]["message"])


@given(st.text(max_size=50), st.integers(1, 300))
def test_script_vector_has_length_one(text: str, size: int) -> None:
    assert near(embed_text(text, size), embed_text(text, size)) == pytest.approx(1.0) or not any(embed_text(text, size))
