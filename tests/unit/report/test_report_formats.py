from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from report_sample import cell, large, sample, trial, whole

from error_code import has_code
from holdfast import plugins
from holdfast.errors import PluginError, UsageError
from holdfast.model.run import Run
from holdfast.report.formats import files
from holdfast.report.formats.files import get_suffix
from holdfast.report.formats.json import Json
from holdfast.report.formats.markdown import Markdown, escape_inline
from holdfast.report.page.html import Html, bundle_text
from holdfast.report.page.values import MAX_TEXT
from page_documents import documents


def page() -> str:
    return whole(Html(), sample()).decode()


# -- JSON ---------------------------------------------------------------------------------------
def test_json_score_is_null_when_nothing_counted() -> None:
    run = sample()
    run = msgspec.structs.replace(run, score=msgspec.structs.replace(run.score, value=None, interval=None))
    document = json.loads(whole(Json(), run))
    assert document["score"] is None
    assert document["parts"]["contract"]["interval"] is None


# -- Markdown -----------------------------------------------------------------------------------
def test_markdown_escapes_whatever_could_be_markup() -> None:
    text = whole(Markdown(), sample()).decode()
    assert "<script" not in text
    assert "<img" not in text
    assert "holds-<b>" not in text
    assert not re.search(r"\x1b|\u202e|\x00", text)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")} == {6}


@pytest.mark.parametrize(
    "hostile", ["@everyone", "a#1", "[x](y)", "`c`", "a|b", "<b>", "http://x.y", "www.x.y", "a\n# h"]
)
def test_markdown_inline_text_keeps_no_structure(hostile: str) -> None:
    shown = escape_inline(hostile)
    left = re.sub(r"&#\d+;", "", shown)
    assert not re.search(r"[@#`|<>\[\]():]|www\.|\n", left)


def test_markdown_mentions_stand_only_where_they_do_nothing() -> None:
    text = whole(Markdown(), sample()).decode()
    assert "@" in text
    assert "@" not in re.sub(r"<pre>.*?</pre>", "", text, flags=re.S)


def test_markdown_of_a_large_run_stays_small() -> None:
    assert len(whole(Markdown(), large(100, 50))) < 100_000


# -- HTML ---------------------------------------------------------------------------------------
class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_html_lets_nothing_executable_through() -> None:
    tags = Tags()
    tags.feed(page())
    assert [attrs.get("type") for tag, attrs in tags.seen if tag == "script"] == ["application/octet-stream", None]
    assert not {"img", "iframe", "object", "embed", "link", "base"} & {tag for tag, _ in tags.seen}
    assert not [name for _, attrs in tags.seen for name in attrs if name.startswith("on") or name in ("src", "style")]
    assert all((attrs.get("href") or "#").startswith("#") for _, attrs in tags.seen)


def test_html_policy_forbids_everything_but_its_own_script_and_style() -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page())
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    for source, tag in (("script-src", "script"), ("style-src", "style")):
        text = page().split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        assert f"{source} 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy[1]


def test_the_bundle_never_uses_markup_sinks() -> None:
    script = bundle_text("page.js")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|import\(", script)
    assert "</" not in script


@pytest.mark.slow
def test_html_of_ten_thousand_cells_is_under_three_megabytes() -> None:
    assert len(whole(Html(), large(200, 50))) <= 3_000_000


def test_html_marks_count_as_browsers_count() -> None:
    run = msgspec.structs.replace(
        sample(), cells=[cell("max-latency", "no-chaos", "fail", trial("1", "fail", "\U0001f600 bad", marks=((2, 5),)))]
    )
    assert documents(whole(Html(), run).decode())["run/cell/2/0"]["trials"][0]["marks"] == [[3, 6]]


def test_html_cuts_very_long_answers_and_says_so() -> None:
    run = msgspec.structs.replace(
        sample(), cells=[cell("max-latency", "no-chaos", "fail", trial("1", "fail", "x" * (MAX_TEXT + 7)))]
    )
    assert (
        "[cut here: 7 more characters"
        in documents(whole(Html(), run).decode())["run/trial/1"]["turns"][0]["text"][-100:]
    )


# -- files --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["a.html", "a.json", "a.xml", "a.md", "A.JSON"])
def test_suffix_picks_the_reporter_and_folders_are_made(tmp_path: Path, name: str) -> None:
    files.write(sample(), tmp_path / "new" / name)
    assert [p.name for p in (tmp_path / "new").iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.junit"])
def test_unknown_suffix_is_refused_with_the_valid_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        files.write(sample(), tmp_path / name)
    assert {".html", ".json", ".xml", ".md"} <= set(refused.value.hint.replace(",", " ").split())
    assert not list(tmp_path.iterdir())


def test_a_path_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        files.write(sample(), tmp_path / "folder.json")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.json"]


class Two:
    """A reporter of two files."""

    suffix = ".two"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.two": (b"first", b" piece"), "aside.txt": iter([b"second"])}


class Broken:
    """A reporter that breaks off."""

    suffix = ".bro"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.bro": iter([b"half", "text"])}  # type: ignore[list-item]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes reporters known, as entry points of an installed package do."""

    def install(**reporters: Any) -> None:
        found = {name: SimpleNamespace(load=lambda made=made: made) for name, made in reporters.items()}
        points = {"reporters": found}
        plugins.find.cache_clear()
        monkeypatch.setattr(plugins, "_list_entry_points", lambda family: points.get(family, {}))

    yield install
    plugins.find.cache_clear()


def test_a_plug_in_answers_to_its_suffix_and_its_other_files_lie_alongside(
    tmp_path: Path, installed: Callable[..., None]
) -> None:
    installed(pair=Two)
    files.write(sample(), tmp_path / "run.two")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"run.two": b"first piece", "aside.txt": b"second"}
    ours = [files.get_reporter(name).suffix for name in plugins.BUILT_IN["reporters"]]
    assert files.list_suffixes() == [*dict.fromkeys(ours), ".two"]
    assert {".html", ".json", ".xml", ".md", ".sarif"} <= set(ours)
    assert files.get_suffix("pair") == ".two"


def test_what_is_not_bytes_is_the_plug_ins_fault_and_leaves_no_half_file(
    tmp_path: Path, installed: Callable[..., None]
) -> None:
    installed(bro=Broken)
    with pytest.raises(PluginError) as refused:
        files.write(sample(), tmp_path / "run.bro")
    assert refused.value.code == "plugin-broken"
    assert not list(tmp_path.iterdir())


def test_a_plug_in_without_a_suffix_is_named_and_does_not_stand_in_the_way_of_ours(
    tmp_path: Path, installed: Callable[..., None]
) -> None:
    installed(bare=type("Bare", (), {"render": Two.render}))
    files.write(sample(), tmp_path / "run.json")
    with pytest.raises(PluginError, check=has_code("plugin-broken")):
        files.write(sample(), tmp_path / "run.bare")


def test_a_plug_in_with_a_suffix_of_ours_is_reported_and_chosen_by_its_name(
    tmp_path: Path, installed: Callable[..., None]
) -> None:
    installed(mine=type("Mine", (), {"suffix": ".json", "render": Two.render}), broken=type("NoSuffix", (), {}))
    shadowed = files.warn_shadowed(Path("run.json"))
    assert shadowed is not None
    assert (shadowed.code, "mine" in shadowed.text) == ("reporter-shadowed", True)
    assert files.warn_shadowed(Path("run.html")) is None
    files.write(sample(), tmp_path / "run.json", files.get_reporter("mine"))
    assert (tmp_path / "run.json").read_bytes() == b"first piece"


# Reporters are found by suffix.


@pytest.mark.parametrize("name", sorted(plugins.BUILT_IN["reporters"]))
def test_the_suffix_that_is_known_is_the_reporters_own(name: str) -> None:
    found = plugins.find("reporters", name)
    assert found is not None
    assert get_suffix(name) == found.suffix
