"""The data that the page requests, by address: each request is answered with plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote

from holdfast.errors import HoldfastError, SpecError, UsageError, UserError
from holdfast.model.run import PartResult
from holdfast.report.page.causes import build_causes, build_failed_part
from holdfast.report.page.cells import build_cell, build_matrix, find_cell
from holdfast.report.page.run import build_overall, build_run
from holdfast.report.page.trial import build_running_trial, build_trial
from holdfast.report.page.values import encode_json
from holdfast.runner.past.history import SEVERAL, read_past_run
from holdfast.runner.whole import read_overall
from holdfast.store.run_folders import get_run_folder
from holdfast.store.rundir import RunDir
from holdfast.web.address import AddressQuery, is_trial_id, split_id
from holdfast.web.compare_document import compare_document
from holdfast.web.listing import build_listing, build_run_row, build_trend
from holdfast.web.notes import read_text
from holdfast.web.opened_runs import NotFound, OpenedRun, Project
from holdfast.web.search import LEAST, search
from holdfast.web.web_reply import WebReply, build_json_reply, build_refusal

FIELDS = 20
UNDECIDED = {"verdict": "", "reasons": (), "resume": ""}
"""For a running run: there is no verdict yet."""
NOT_ALLOWED = "you have no permission to read it: check its owner and mode (ls -ld)"
NO_PAGE = "the address is not one of the viewer's"


class Api:
    """The requests about a project. Its methods read files: call them in a thread."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._documents: dict[str, Callable[[AddressQuery], Any]] = {
            "runs": lambda query: build_listing(project, query),
            "trend": lambda query: build_trend(project, query),
            "compare": self._compare,
            "search": self._search,
            "notes": lambda query: project.notes.read_all(),
        }
        self._of_run: dict[str, Callable[[str, AddressQuery], WebReply]] = {
            "matrix": self._build_matrix,
            "cell": self._build_cell,
            "causes": lambda id, query: self._cache_reply(
                id, "causes", lambda opened: build_causes(opened.outcome.run)
            ),
        }

    def get(self, target: str) -> WebReply:
        """Answer a request; an error in it or in a run is also an answer."""
        path, _, text = target.partition("?")
        try:
            words = [unquote(word, errors="strict") for word in path.split("/") if word]
            query = AddressQuery(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS, errors="strict"))
        except ValueError:
            return build_refusal(400, "the address cannot be read", "open it from the list of runs")
        return self._guard(lambda: self._answer(words, query))

    def has_run(self, run: str) -> bool:
        """Return whether there is such a run."""
        try:
            self._project.opened.find_folder(run)
        except NotFound:
            return False
        return True

    def save_note(self, target: str, body: bytes) -> WebReply:
        """Store a mark and a note."""
        words = [word for word in target.partition("?")[0].split("/") if word]
        return self._guard(lambda: self._save_note(words, body))

    def _guard(self, answer: Callable[[], WebReply]) -> WebReply:
        try:
            return answer()
        except SpecError as wrong:
            first = next((f"{one.path}: {one.message}" for one in wrong.problems if one.severity == "error"), "")
            return build_refusal(
                409, f"{wrong}: {first}" if first else str(wrong), "holdfast validate explains the problems of a file"
            )
        except UserError as wrong:
            status = 404 if isinstance(wrong, NotFound) else 400 if isinstance(wrong, UsageError) else 409
            return build_refusal(status, str(wrong), wrong.hint)
        except HoldfastError as broken:
            return build_refusal(409, str(broken), "its files are not those of a run")
        except OSError as broken:
            denied = isinstance(broken, PermissionError)
            hint = NOT_ALLOWED if denied else "see whether the file is still there"
            return build_refusal(409, f"{broken.strerror}: {broken.filename}", hint)

    def _save_note(self, words: list[str], body: bytes) -> WebReply:
        id, rest = split_id(words[1:]) if words[:1] == ["notes"] else ("", [])
        on_trial = len(rest) == 2 and rest[0] == "trial" and is_trial_id(rest[1])
        if not id or (rest and not on_trial):
            raise NotFound(NO_PAGE, hint="notes belong to a run or to one of its trials")
        self._project.opened.find_folder(id)
        return build_json_reply(self._project.notes.save("/".join((id, *rest)), read_text(body)))

    def _answer(self, words: list[str], query: AddressQuery) -> WebReply:
        if len(words) == 1 and words[0] in self._documents:
            return build_json_reply(self._documents[words[0]](query))
        if len(words) > 1 and words[0] == "runs":
            id, rest = split_id(words[1:])
            if id and not rest:
                return self._build_run(id)
            if id and len(rest) == 1 and rest[0] in self._of_run:
                return self._of_run[rest[0]](id, query)
            if id and len(rest) == 2 and rest[0] == "trial" and is_trial_id(rest[1]):
                return self._build_trial(id, rest[1])
        raise NotFound(NO_PAGE, hint="open it from the list of runs")

    def _build_run(self, id: str) -> WebReply:
        run = self._project.opened.find_folder(id)
        row = self._build_row(id)
        if run.read_manifest().parts:
            overall = read_overall(run)
            whole = build_overall(overall) if overall is not None else {**UNDECIDED, "complete": False}
            failed = (
                [self._build_failed_part(part) for part in overall.parts if part.exit_code and part.run]
                if overall
                else []
            )
            return build_json_reply({"run": row, **whole, "failed": failed, "parts": row["parts"]})

        def build(opened: OpenedRun) -> dict[str, Any]:
            document = {"run": row, **build_run(opened.outcome.run)}
            return {**document, **UNDECIDED} if opened.live is not None else document

        return build_json_reply(self._project.opened.use(id, build))

    def _build_failed_part(self, part: PartResult) -> dict[str, Any]:
        """Return the causes and the matrix of a failed part."""
        return self._project.opened.use(part.run, lambda opened: build_failed_part(part, opened.outcome.run))

    def _build_row(self, id: str) -> dict[str, Any]:
        known = self._project.list.get_known()
        past = known.by_id.get(id)
        if past is None or not past.ended:  # it may have ended since the list was made
            past = read_past_run(self._project.opened.find_folder(id))
        notes = self._project.notes.read_all()
        row = build_run_row(past, self._project.runs, notes)
        row["parts"] = [build_run_row(part, self._project.runs, notes) for part in known.list_parts(id)]
        return row

    def _compare(self, query: AddressQuery) -> dict[str, Any]:
        project, a, b = self._project, query.get_text("a"), query.get_text("b")
        rows = {"a": self._build_row(a), "b": self._build_row(b)}
        return {**rows, **compare_document(project.opened, a, b, project.environ)}

    def _search(self, query: AddressQuery) -> dict[str, Any]:
        project, text, run = self._project, query.get_text("q").strip(), query.get_text("run")
        if len(text) < LEAST:
            raise UsageError(
                "the search text is too short", hint=f"type {LEAST} letters or more", code="argument-invalid"
            )
        limit, notes = query.get_number("limit", 100, 500), project.notes.read_all()
        if run:
            folder = project.opened.find_folder(run)
            own_notes = {key: note for key, note in notes.items() if key.partition("/trial/")[0] == run}
            return search(folder.parts or (folder,), text, limit=limit, notes=own_notes)
        ids = (past.id for past in project.list.get_known().runs if past.part != SEVERAL)
        return search((RunDir(get_run_folder(project.runs, id)) for id in ids), text, limit=limit, notes=notes)

    def _build_matrix(self, id: str, query: AddressQuery) -> WebReply:
        return self._cache_reply(
            id, "matrix", lambda opened: build_matrix(opened.outcome.run, live=opened.live is not None)
        )

    def _build_cell(self, id: str, query: AddressQuery) -> WebReply:
        rule, column = query.get_text("rule"), query.get_text("column")

        def build(opened: OpenedRun) -> dict[str, Any]:
            run = opened.outcome.run
            row = find_cell(run, rule, column)
            if row is None:
                raise NotFound(
                    f"run {run.id} has no rule {rule!r} in {column!r}", hint="open it from the matrix of the run"
                )
            return build_cell(run, row)

        return build_json_reply(self._project.opened.use(id, build))

    def _build_trial(self, id: str, trial: str) -> WebReply:
        def build(opened: OpenedRun) -> dict[str, Any]:
            cells = opened.outcome.cells
            try:
                document = cells.read_trial(trial)
            except KeyError:
                trial_now = opened.live.get_pending(trial) if opened.live is not None else None
                if opened.live is not None and trial_now is not None:
                    return build_running_trial(
                        opened.outcome.run, trial_now, opened.live.read_calls(trial), cells.format_command(trial)
                    )
                raise NotFound(f"run {id} has no trial {trial}", hint="open it from a cell of the run") from None
            return build_trial(opened.outcome.run, document, cells.format_command(trial))

        return build_json_reply(self._project.opened.use(id, build))

    def _cache_reply(self, id: str, name: str, make: Callable[[OpenedRun], Any]) -> WebReply:
        """Derive something from a run, once until its files change."""

        def encode(opened: OpenedRun) -> WebReply:
            body = opened.made.get(name)
            if body is None:
                body = opened.made[name] = encode_json(make(opened))
            return WebReply(200, body)

        return self._project.opened.use(id, encode)
