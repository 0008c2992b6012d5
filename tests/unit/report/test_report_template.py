"""Templates: what tags mean, what is escaped; compiled once, and a folder that cannot be written changes nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.report import template, template_code
from holdfast.report.template import FOLDER, PageTemplate


@pytest.fixture(autouse=True)
def writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def rendered(folder: Path, source: str, **names: Any) -> str:
    (folder / "page.html").write_text(source)
    return "".join(PageTemplate("page.html", folder).pieces(**{"n": 3, **names}))


def test_data_is_escaped_for_text_and_attributes(tmp_path: Path) -> None:
    hostile = """</b><script>'a' & "b"</script>"""
    expected = "<b>&lt;/b&gt;&lt;script&gt;&#39;a&#39; &amp; &#34;b&#34;&lt;/script&gt;</b>"
    assert rendered(tmp_path, "<b>{{ data }}</b>", data=hostile) == expected


def test_our_own_text_is_put_in_as_it_is(tmp_path: Path) -> None:
    assert rendered(tmp_path, "{{= style }}", style="a > b {}") == "a > b {}"


def test_only_scripts_styles_and_packed_data_of_ours_are_not_escaped() -> None:
    found = {tag.group(2).strip() for file in FOLDER.glob("*.html") for tag in as_it_is(file.read_text("utf-8"))}
    assert found == {"script", "style", "piece"}


def as_it_is(text: str) -> list[Any]:
    return [tag for tag in template_code._TAG.finditer(text) if tag.group(1)]


def test_conditions_and_loops(tmp_path: Path) -> None:
    source = "{% for k, v in m.items() %}{% if v %}{{ k }}{% else %}-{% endif %}{% endfor %}{% if n > 9 %}!{% endif %}"
    assert rendered(tmp_path, source, m={"a": 1, "b": 0, "c": 2}) == "a-c"


def test_one_template_in_another(tmp_path: Path) -> None:
    (tmp_path / "row.html").write_text("<td>{{ cell }}</td>\n")
    source = "{% for cell in (1, 2) %}{% include row.html %}{% endfor %}"
    assert rendered(tmp_path, source) == "<td>1</td><td>2</td>"


def test_a_line_of_a_statement_alone_leaves_no_line(tmp_path: Path) -> None:
    source = "<ul>\n  {% for x in (1, 2) %}\n  <li>{{ x }}</li>\n  {% endfor %}\n</ul>\n"
    assert rendered(tmp_path, source) == "<ul>\n  <li>1</li>\n  <li>2</li>\n</ul>"


def test_a_name_that_is_not_given_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NameError, match="missing"):
        rendered(tmp_path, "{{ missing }}")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("{% if n %}", "line 1: {% if %} is not closed"),
        ("<p>\n{% if n %}\n{% for x in (1, 2) %}\n{{ x }}", "line 3: {% for %} is not closed"),
        ("<p>\n\n  {% endif %}\n", "line 3: {% endif %} stands where no tag is open"),
        ("\n{% while n %}{% endif %}", "line 2: there is no tag {% while %}"),
        ("{% if n %}\n  {% if n %}\n  {% endfor %}\n{% endif %}", "line 3: {% endfor %} stands in {% if %} of line 2"),
        ("{% for x in () %}\n{{ x }}\n{% endif %}", "line 3: {% endif %} stands in {% for %} of line 1"),
        ("{% for x in () %}{{ x }}\n{% else %}none{% endfor %}", "line 2: {% else %} stands in {% for %} of line 1"),
        ("{% for x in () %}\n{% elif n %}{% endfor %}", "line 2: {% elif %} stands in {% for %} of line 1"),
        ("{% if n %}{% else %}\n{% else %}{% endif %}", "line 2: {% else %} stands in {% else %} of line 1"),
        ("<p>\n{# not for readers #}", "line 2: {# begins no tag"),
        ("<p>\n{{ n }\n{{ n }}", "line 2: {{ begins no tag"),
        ("<p>\n{% if n }\n{% endif %}", "line 2: {% begins no tag"),
    ],
)
def test_a_tag_that_is_unknown_open_or_misplaced_is_named_with_its_line(
    tmp_path: Path, source: str, found: str
) -> None:
    with pytest.raises(ValueError, match=rf"^page\.html, {re.escape(found)}"):
        rendered(tmp_path, source)


def test_a_template_closes_what_it_opens_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "row.html").write_text("<td>\n{% endif %}")
    with pytest.raises(ValueError, match=r"^row\.html, line 2: "):
        rendered(tmp_path, "{% if n %}{% include row.html %}")


@pytest.mark.parametrize(
    "source", ["{{ n }}{% for n in (1, 2) %}{{ n }}{% endfor %}", "{% for str in () %}{% endfor %}"]
)
def test_a_loop_takes_no_name_that_the_page_is_given(tmp_path: Path, source: str) -> None:
    with pytest.raises(
        ValueError, match=r"^page\.html: a loop takes the name (n|str), which is in use: name it otherwise"
    ):
        rendered(tmp_path, source)


def test_a_loop_takes_no_such_name_where_an_expression_holds_on_to_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="takes the name n,"):
        rendered(tmp_path, "{% for n in (1, 2) %}{{ [n for _ in (1, 2)] }}{% endfor %}")


def test_the_second_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendered(tmp_path, "{{ n }} cells") == "3 cells"
    assert len(list((tmp_path / "__pycache__").iterdir())) == 1

    def compiled(*given: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(template_code, "compiled", compiled)
    assert rendered(tmp_path, "{{ n }} cells") == "3 cells"


def test_byte_code_of_another_python_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered(tmp_path, "{{ n }} cells")
    (kept,) = (tmp_path / "__pycache__").iterdir()
    before = kept.read_bytes()
    monkeypatch.setattr(template, "MAGIC_NUMBER", b"else")
    assert rendered(tmp_path, "{{ n }} cells") == "3 cells"
    assert kept.read_bytes() != before


def test_another_source_is_compiled_anew(tmp_path: Path) -> None:
    rendered(tmp_path, "{{ n }} cells")
    assert rendered(tmp_path, "{{ n }} trials") == "3 trials"
    assert rendered(tmp_path, "{{ n }} trials") == "3 trials"


@pytest.mark.parametrize("size", [0, 5, 25, 60, 150])
def test_what_is_torn_is_compiled_anew(tmp_path: Path, size: int) -> None:
    rendered(tmp_path, "{{ n }} cells")
    (kept,) = (tmp_path / "__pycache__").iterdir()
    kept.write_bytes(kept.read_bytes()[:size])
    assert rendered(tmp_path, "{{ n }} cells") == "3 cells"


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").write_text("")
    assert rendered(tmp_path, "{{ n }} cells") == "3 cells"


def test_nothing_is_written_where_python_writes_no_byte_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(tmp_path, "{{ n }} cells") == "3 cells"
    assert not (tmp_path / "__pycache__").exists()
