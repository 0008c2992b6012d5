"""A run in plain HTML: what `report.html` shows before its script runs, and a notebook's output.

The verdict, its reasons and the causes can be read without scripts. Every text of the run is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

from holdfast.model.run import Run
from holdfast.report import cases, wording
from holdfast.report.page.run import build_run
from holdfast.report.safe import to_one_line
from holdfast.report.terminal.matrix import build_grid

CAUSES, OPEN, PLACES, CASES, TEXT = 100, 2, 8, 200, 600
"""Limits: causes, expanded causes, cells per cause, cases, and characters of a text."""
ROWS = 100
"""Rules, and cases, that a notebook shows."""


class Markup(str):
    """HTML. Everything that is not of this type is text, and is escaped."""

    __slots__ = ()


_SPACE = Markup(" ")


def tag(name: str, *content: str | None, **attributes: str | bool) -> Markup:
    """Return an element; attributes that are None or empty are left out, `kind` is its class."""
    attributes = {("class" if key == "kind" else key): value for key, value in attributes.items() if value}
    attributes_text = "".join(
        f" {key}" if value is True else f' {key}="{escape(str(value))}"' for key, value in attributes.items()
    )
    inner = "".join(one if isinstance(one, Markup) else escape(to_one_line(one)) for one in content if one)
    return Markup(f"<{name}{attributes_text}>{inner}</{name}>")


def format_title(document: Mapping[str, Any]) -> str:
    """Return the title of the browser tab."""
    return to_one_line(f"{document['verdict']} · {document['name'] or document['spec_path']}")


def render_static_page(document: Mapping[str, Any], causes: Mapping[str, Any]) -> Markup:
    """Return the page without scripts: verdict, score, parts, causes and cases."""
    return _join(
        tag("header", *_render_head(document), kind="top"),
        _render_causes(document, causes),
        *(_render_failed_part(part) for part in document.get("failed", ())),
        _render_map(document),
        _render_cases(document),
        tag("noscript", tag("p", "The matrix and the trials need JavaScript.")) if document["has_matrix"] else None,
        _render_foot(document),
    )


def _join(*parts: str | None) -> Markup:
    return Markup("\n".join(part for part in parts if part))


def _render_list(name: str, items: Iterable[str | None], kind: str) -> Markup | None:
    entries = [tag("li", item) for item in items if item]
    return tag(name, *entries, kind=kind) if entries else None


def _render_head(document: Mapping[str, Any]) -> Iterable[str | None]:
    run = document["run"]
    yield tag("p", " · ".join(filter(None, (run["part"], f"run {run['id']}" if run["id"] else ""))), kind="eyebrow")
    yield tag("h1", tag("bdi", document["name"] or document["spec_path"]))
    if text := document.get("description"):
        yield tag("p", tag("bdi", text))
    yield _render_verdict(document)
    if text := document.get("counted"):
        yield tag("p", tag("strong", text.replace("   ", " · ")), kind="counted")
    if document["number"] is not None:
        yield tag("p", _get_score_name(document), _SPACE, tag("strong", wording.format_number(document["number"])))
    facts = (document.get(name) for name in ("interval", "judged", "one_sample", "flaky", "attacks", "used"))
    yield _render_list("ul", (text.replace("   ", " · ") for text in facts if text), "judged")
    for one in document.get("warnings", ()):
        yield tag("p", tag("strong", "Warning"), _SPACE, tag("bdi", one["text"]), kind="warning")
    if document.get("weights"):
        yield _render_parts(document["weights"])


def _get_score_name(document: Mapping[str, Any]) -> str:
    return "Overall" if document.get("weights") else "Resilience" if document["has_matrix"] else "Score"


def _render_verdict(document: Mapping[str, Any]) -> Markup:
    word = document["verdict"]
    sign = tag("span", wording.VERDICT_SIGNS.get(word, "!"), kind="sign", **{"aria-hidden": "true"})
    unended = [] if document["complete"] or document.get("hunt") else ["Interrupted. The results so far:"]
    reasons = _render_list("ul", (tag("bdi", reason) for reason in (*unended, *document["reasons"])), "reasons")
    return tag("div", tag("p", sign, word, kind="word"), reasons, kind=f"verdict {word.lower()}")


def _render_parts(parts: Sequence[Mapping[str, Any]]) -> Markup:
    names = ("verdict", "part", "score", "share", "weight", "result")
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    return tag("table", tag("thead", head), tag("tbody", *map(_render_part, parts)), kind="parts-table")


def _render_part(part: Mapping[str, Any]) -> Markup:
    name = tag("a", part["part"], href=part["page"]) if part["page"] else part["part"]
    share = f"{part['share'] * 100:.0f} %" if part["share"] else "–"
    return tag(
        "tr",
        tag("td", _render_badge(part["verdict"] or "not run")),
        tag("th", name, scope="row"),
        tag("td", part["number"], kind="number"),
        tag("td", share, kind="number", **{"data-head": "share"}),
        tag("td", f"{part['weight']:g}" if part["weight"] else "–", kind="number", **{"data-head": "weight"}),
        tag("td", tag("bdi", part["skipped"] or part["said"]), kind="said"),
    )


def _render_badge(word: str) -> Markup:
    sign = wording.VERDICT_SIGNS.get(word.upper(), wording.SIGNS.get(word, ""))
    return tag("span", f"{sign} {word}", kind=f"badge {word.lower().replace('/', '')}")


def _render_failed_part(part: Mapping[str, Any]) -> Markup:
    """Return one part of several: its causes, then its matrix."""
    matrix = part["matrix"]
    rows = ([row["rule"], *(tag("td", text) for _, text in row["cells"])] for row in matrix["rows"])
    table = _render_table(("rule", *matrix["heads"]), rows, "part-matrix") if matrix["rows"] else None
    return tag("section", tag("h2", part["part"]), _render_causes(part, part), table, kind="failed-part")


def _render_causes(document: Mapping[str, Any], causes_document: Mapping[str, Any]) -> Markup | None:
    causes = causes_document.get("causes", ())
    if not causes:
        return None
    blocks = (_render_cause(document, cause, number < OPEN) for number, cause in enumerate(causes[:CAUSES]))
    more = causes_document["total"] - CAUSES
    return tag(
        "section",
        tag("h2", "Failures"),
        _render_list("ol", blocks, "causes"),
        tag("p", f"and {more} more", kind="status") if more > 0 else None,
        kind="did-not-hold",
    )


def _render_cause(document: Mapping[str, Any], cause: Mapping[str, Any], opened: bool) -> Markup:
    places = [*cause["cases"][:PLACES], *(_get_column_name(document, cell) for cell in cause["cells"][:PLACES])]
    noun, single = cause["noun"], cause["count"] == 1 and places
    where_named = f"{noun} {places[0]}" if cause["cases"] else "".join(places[:1])
    count = f"in {where_named}" if single else wording.format_count(cause["count"], noun)
    remarks = tag("i", cause["remarks"]) if cause["remarks"] else None
    where = tag("span", count, kind="count")
    what = tag("span", tag("b", tag("bdi", cause["rule"] or cause["reason"])), _SPACE, where, remarks, kind="what")
    why = tag("span", tag("bdi", _shorten_text(cause["reason"])), kind="why") if cause["rule"] else None
    more = cause["count"] - len(places)
    facts = {
        "rule": cause["description"],
        "also": cause["also"],
        "asked": _shorten_text(cause["asked"]),
        "answered": "nothing" if cause["answered"] == "" else _shorten_text(cause["answered"] or ""),
        "fault": cause["fault"],
        "faults": cause["faults"],
        "known as": "; ".join(cause["standards"]),
        "next": cause["next"],
        f"{noun}s": ", ".join(places) + (f" and {more} more" if more > 0 else "") if cause["count"] > 1 else "",
        "at": cause["where"],
        "reproduce": cause["again"],
    }
    rows = (tag("div", tag("dt", name), tag("dd", tag("bdi", text))) for name, text in facts.items() if text)
    summary = tag("summary", _render_badge(cause["outcome"]), what, why)
    return tag("details", summary, tag("dl", *rows, kind="facts"), kind="cause", open=opened)


def _get_column_name(document: Mapping[str, Any], cell: Sequence[int]) -> str:
    return str(document["columns"][cell[1]]["name"])


def _shorten_text(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]} …"


def _render_map(document: Mapping[str, Any]) -> Markup | None:
    """Return the calls in order with what they feed, as text; scripts replace it by a picture."""
    fault_map = document.get("map")
    if not fault_map:
        return None
    lists = [
        (tag("p", f"asked: {one.get('asked', '')}"), _render_list("ol", map(_render_call, one.get("sites", ())), ""))
        for one in fault_map["prompts"]
    ]
    return tag(
        "section", tag("h2", "Map"), tag("p", fault_map.get("coverage", "")), *(part for pair in lists for part in pair)
    )


def _render_call(site: Mapping[str, Any]) -> Markup:
    feeds = ", ".join(f"{link['kind']} {link['to']}" for link in site.get("links", ()))
    return tag("bdi", site["name"] + (" (write)" if site.get("write") else "") + (f" → {feeds}" if feeds else ""))


def _render_cases(document: Mapping[str, Any]) -> Markup | None:
    case_rows = document["cases"]
    if not case_rows:
        return None
    more = len(case_rows) + document["cases_left_out"] - CASES
    rows = (
        tag("li", *_render_case(one), kind="case-row")
        for one in sorted(case_rows, key=lambda one: one["status"] == "pass")[:CASES]
    )
    return tag(
        "section",
        tag("h2", f"{document['noun'].capitalize()}s"),
        tag("ol", *rows, kind="cases-list"),
        tag("p", f"and {more} more", kind="status") if more > 0 else None,
    )


def _render_case(one: Mapping[str, Any]) -> Iterable[str | None]:
    yield _render_badge(one["status"])
    yield tag("span", cases.format_composite(one["composite"]), kind="composite")
    reason = tag("p", tag("bdi", _shorten_text(one["reason"]))) if one["reason"] else None
    yield tag("span", tag("bdi", one["name"]), tag("i", "flaky") if one["flaky"] else None, reason, kind="what")


def _render_foot(document: Mapping[str, Any]) -> Markup:
    run = document["run"]
    facts = {
        "spec": document["spec_path"],
        "seed": document["seed"],
        "trials": str(run.get("trials") or ""),
        "isolation": document.get("isolation", ""),
        "started": run["started"],
        "took": f"{run['duration_s']:.1f} s",
        "version": document.get("version", ""),
    }
    rows = (tag("div", tag("dt", name), tag("dd", tag("bdi", text))) for name, text in facts.items() if text)
    return tag("footer", _render_list("ul", (tag("bdi", note) for note in document["notes"]), ""), tag("dl", *rows))


def render_fragment(run: Run) -> str:
    """Return a notebook's output: verdict, reasons, cases and matrix. No style, no script."""
    document = build_run(run)
    score = f"· {wording.format_number(document['number'])} " if document["number"] is not None else ""
    word = document["verdict"]
    title = tag("strong", f"{wording.VERDICT_SIGNS.get(word, '!')} {word}")
    rows, rules = document["cases"], document["rules"] if document["has_matrix"] else []
    more = max(0, len(rules) - ROWS) + max(0, len(rows) - ROWS)
    return tag(
        "div",
        tag("p", title, _SPACE, tag("bdi", document["name"]), _SPACE, f"{score}· run {run.id}"),
        _render_list("ul", (tag("bdi", reason) for reason in document["reasons"]), ""),
        _render_table(("case", "status", "composite", "because"), map(_render_case_cells, rows[:ROWS]))
        if rows
        else None,
        _render_matrix(run) if rules else None,
        tag("p", f"{more} more not shown; the report has them") if more else None,
        kind="holdfast-run",
    )


def _render_table(heads: Iterable[str], rows: Iterable[Sequence[str]], kind: str = "") -> Markup:
    head = tag("tr", *(tag("th", tag("bdi", name), scope="col") for name in heads))
    body = (tag("tr", tag("th", tag("bdi", name), scope="row"), *cells) for name, *cells in rows)
    return tag("table", tag("thead", head), tag("tbody", *body), kind=kind)


def _render_case_cells(one: Mapping[str, Any]) -> list[str]:
    status = f"{wording.SIGNS[one['status']]} {one['status']}"
    return [
        one["name"],
        *(tag("td", text) for text in (status, cases.format_composite(one["composite"]), one["reason"])),
    ]


def _render_matrix(run: Run) -> Markup:
    grid = build_grid(run)
    rows = []
    for rule in islice(grid.rules, ROWS):
        faces = [grid.get_face(rule, head) for head in grid.heads]
        cells = (tag("td", f"{face.text} {face.outcome}".strip(), title=face.outcome) for face in faces)
        rows.append([rule, tag("td", grid.rules[rule]), *cells])
    return _render_table(("rule", "severity", *grid.heads), rows)
