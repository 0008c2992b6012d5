"""Asks models on behalf of checks, once a trial is over, and caches their replies."""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from stat import S_ISREG
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import HarnessError, HoldfastError, format_error_place
from holdfast.judge.judges import JudgeClient, Judges
from holdfast.model.codec import create_decoder, digest, encode, encode_canonical
from holdfast.model.model_spec import ModelSpec
from holdfast.model.observation import Observation
from holdfast.model.spec import AgentSpec
from holdfast.model.world import Evidence
from holdfast.planes.llm.sources.model_client import ModelRefused, Question, ask_model, drop_rejected
from holdfast.planes.llm.sources.source import NoModel, UpstreamDown
from holdfast.protocols.check import Advice, Check, ConsultingCheck

FILES_KEPT = 20_000
SIZE_KEPT = 64_000
"""Maximum number of bytes of a stored reply: a rating has a few hundred."""
REMEMBERED = 1_000
"""Maximum number of replies in memory."""
_advice = create_decoder(Advice)


class AdviceCache:
    """A folder of replies.

    An agent without a sandbox could write there, so a file that appeared after this cache was opened is ignored unless
    the cache itself wrote it. The file's ctime shows that, and no program can set it back.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened_ns = time.time_ns()
        self._own: OrderedDict[str, Advice] = OrderedDict()
        self._counter = 0

    def get(self, key: str, *, own: bool = False) -> Advice | None:
        """Return the reply stored under a key of hex digits; None if there is none that can be trusted.

        `own` accepts only replies stored since this cache was opened.
        """
        if own or key in self._own:
            return self._own.get(key)
        try:
            fd = os.open(self._folder / f"{key}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return _advice.decode(os.read(fd, SIZE_KEPT)) if self._is_trusted(os.fstat(fd)) else None
        except (msgspec.MsgspecError, ValueError, OSError):
            return None  # truncated or not Holdfast's: the model is asked again
        finally:
            os.close(fd)

    def _is_trusted(self, status: os.stat_result) -> bool:
        # An agent without a sandbox runs as the same user and could write a favourable verdict into the cache. It can
        # set a file's mtime back, but not its ctime.
        own = S_ISREG(status.st_mode) and status.st_uid == os.getuid()
        return own and status.st_size <= SIZE_KEPT and status.st_ctime_ns < self._opened_ns

    def put(self, key: str, advice: Advice) -> None:
        """Store a reply; if the disk refuses it, only in memory."""
        self._own[key] = advice
        if len(self._own) > REMEMBERED:
            self._own.popitem(last=False)
        data = encode(advice)
        if len(data) <= SIZE_KEPT:
            try:
                self._write(key, data)
            except OSError:
                return  # without a cache nothing else is lost

    def _write(self, key: str, data: bytes) -> None:
        if not self._counter:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._prune()
        self._counter += 1
        temporary = self._folder / f"{key}.{os.getpid()}-{self._counter}.new"
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(data)
            temporary.replace(self._folder / f"{key}.json")
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _prune(self) -> None:
        """Make room: removes the oldest tenth, and half-written files of a killed run."""
        with os.scandir(self._folder) as entries:
            plain = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            files = [(entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in plain]
        stale = time.time() - 3_600
        gone = [path for at, path in files if path.endswith(".new") and at < stale]
        if len(files) > FILES_KEPT * 9 // 10:
            gone += [path for _, path in sorted(files)[: len(files) - FILES_KEPT * 8 // 10]]
        for path in gone:
            Path(path).unlink(missing_ok=True)


AT_ONCE = 8
"""Maximum number of concurrent questions."""
ANSWER_S = 180.0
"""Timeout of one answer."""
LONGEST_WAIT_S = 30.0
"""Maximum wait between two attempts, whatever the server asks for."""
_LATER = (408, 409, 425, 429)

SleepFor = Callable[[float], Awaitable[None]]


class ModelRole(Struct, frozen=True):
    """The role in which a model is asked."""

    shown: str
    json: bool = True
    """Whether it answers with a JSON object."""


JUDGE = ModelRole("the judge")
PLAYER = ModelRole("the model", json=False)


class Consultation:
    """Asks models for the checks of a run: an `Ask` with a cache, retries and limited concurrency."""

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        environ: Mapping[str, str],
        root: Path,
        cache: AdviceCache,
        *,
        retries: int = 2,
        sleep: SleepFor = asyncio.sleep,
        role: ModelRole = JUDGE,
    ) -> None:
        """`models` have their references resolved; scripts are below `root`."""
        self._judges = Judges(models, environ, root)
        self._cache = cache
        self._retries = retries
        self._sleep = sleep
        self._role = role
        self._accepted: dict[str, tuple[Question, tuple[str, ...]]] = {}
        """For each model: the form of a question that it accepts, and the note about it."""
        self._room = asyncio.Semaphore(AT_ONCE)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(
        self,
        model: str,
        system: str,
        prompt: str,
        *,
        temperature: float | None,
        vote: int,
        fits: Callable[[str], bool],
    ) -> Advice:
        judge = self._judges.find(model)
        entry = judge.meaning.entry
        if temperature is None:
            temperature = (entry.temperature if entry is not None else None) or 0.0
        question = Question(judge.meaning.name, system, prompt, temperature, json=self._role.json)
        # The cache key has everything that the reply depends on: who answers, the question, and which of several votes
        # it is. Votes differ on purpose, so each has its own entry.
        key = digest(encode_canonical([judge.identity, question, vote]), 16)
        # A script counts the `times` of its rules over all votes of a judgement, so they share one conversation.
        conversation = digest(encode_canonical([judge.identity, question]), 16)
        lock = self._locks.setdefault(key, asyncio.Lock())  # one trial asks, and others with the same question wait
        async with lock:
            return await self._get_reply(judge, question, key, conversation, fits)

    async def close(self) -> None:
        await self._judges.close()

    async def _get_reply(
        self, judge: JudgeClient, question: Question, key: str, conversation: str, fits: Callable[[str], bool]
    ) -> Advice:
        # A vote of an earlier run would leave its rule unused for the next vote.
        cached = self._cache.get(key, own=judge.is_script)
        if cached is not None and fits(cached.text):
            return cached
        async with self._room:
            advice = await self._ask_with_retries(judge, question, conversation)
        if fits(advice.text):
            self._cache.put(key, advice)
        return advice

    async def _ask_with_retries(self, judge: JudgeClient, question: Question, conversation: str) -> Advice:
        """Return the reply, after as many attempts as allowed; settings that a model rejects are left out."""
        accepted, notes = self._adapt_question(judge, question)
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(ANSWER_S):
                    text, origin = await ask_model(judge.source, judge.meaning.provider, accepted, conversation)
            except TimeoutError as late:
                who = f"{self._role.shown} {judge.shown}"
                raise HarnessError(f"{who} gave no answer within {ANSWER_S:g} s", code="model-unavailable") from late
            except UpstreamDown as failed:
                less = drop_rejected(accepted, failed) if isinstance(failed, ModelRefused) else None
                if less is not None:
                    accepted, notes = less[0], (*notes, less[1])
                    continue
                if attempt >= self._retries or not _is_retryable(failed):
                    who = f"{self._role.shown} {judge.shown}"
                    raise HarnessError(
                        f"{who} could not be called: {_describe_failure(failed)}", code=failed.code
                    ) from failed
                await self._sleep(_get_wait_s(failed, attempt))
                attempt += 1
            else:
                self._accepted[judge.identity] = (accepted, notes)
                return Advice(text, origin if judge.is_script else judge.shown, notes)

    def _adapt_question(self, judge: JudgeClient, question: Question) -> tuple[Question, tuple[str, ...]]:
        """Return the question without the settings that this model is known to reject."""
        accepted, notes = self._accepted.get(judge.identity, (question, ()))
        temperature = None if accepted.temperature is None else question.temperature
        return replace(
            question, temperature=temperature, json=accepted.json and question.json, apart=accepted.apart
        ), notes


def _describe_failure(failed: UpstreamDown) -> str:
    if isinstance(failed, NoModel):
        return f"{failed.why}; or describe the model in models:"
    return str(failed)


def _is_retryable(failed: UpstreamDown) -> bool:
    """Return whether a retry may help."""
    if isinstance(failed, ModelRefused):
        return failed.status in _LATER or failed.status >= 500
    return not isinstance(failed, NoModel) and failed.kind in ("refused", "timeout", "closed", "dns")


def _get_wait_s(failed: UpstreamDown, attempt: int) -> float:
    retry_after_s = failed.retry_after_s if isinstance(failed, ModelRefused) else None
    return min(LONGEST_WAIT_S, 0.5 * 2**attempt if retry_after_s is None else retry_after_s)


# -- for each trial -------------------------------------------------------------------------------
async def consult_model(
    check: Check, observation: Observation, control: Observation | None, evidence: Evidence | None, ask: Consultation
) -> Evidence:
    """Return the model's reply for a check; if it failed, the reason, as an error of that rule only."""
    if evidence is not None and evidence.error:
        return evidence
    try:
        assert isinstance(check, ConsultingCheck)
        return await check.consult(observation, control, evidence or Evidence(), ask)
    except Exception as broken:  # a bug in Holdfast or in a plug-in is an error of one rule, not of the run
        if isinstance(broken, HoldfastError):
            return Evidence(error=str(broken))
        return Evidence(error=f"{type(broken).__name__}: {broken}{format_error_place(broken)}")


def add_printed_answers(agent: AgentSpec, observation: Observation) -> Observation:
    """Return the observation with everything that the agent printed: for a command the answer is output, too."""
    if not agent.launched or agent.type == "http" or agent.answer_file is not None:
        return observation
    printed: Iterable[str] = (*(turn.text or "" for turn in observation.turns), observation.output)
    return replace(observation, output="\n".join(part for part in printed if part))
