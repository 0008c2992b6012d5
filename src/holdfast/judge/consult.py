"""Asks models on behalf of checks, once a trial is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import HarnessError, HoldfastError, format_error_place
from holdfast.judge.advice_cache import AdviceCache
from holdfast.judge.judges import JudgeClient, Judges
from holdfast.model.codec import digest, encode_canonical
from holdfast.model.model_spec import ModelSpec
from holdfast.model.observation import Observation
from holdfast.model.spec import AgentSpec
from holdfast.model.world import Evidence
from holdfast.planes.llm.sources.model_client import ModelRefused, Question, ask_model, drop_rejected
from holdfast.planes.llm.sources.source import NoModel, UpstreamDown
from holdfast.protocols.check import Advice, Check, ConsultingCheck

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
        known = self._cache.get(key, own=judge.is_script)
        if known is not None and fits(known.text):
            return known
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
                        f"{who} could not be asked: {_describe_failure(failed)}", code=failed.code
                    ) from failed
                await self._sleep(_get_wait_s(failed, attempt))
                attempt += 1
            else:
                self._accepted[judge.identity] = (accepted, notes)
                return Advice(text, origin if judge.is_script else judge.shown, notes)

    def _adapt_question(self, judge: JudgeClient, question: Question) -> tuple[Question, tuple[str, ...]]:
        """Return the question without the settings that this model is known to reject."""
        known, notes = self._accepted.get(judge.identity, (question, ()))
        temperature = None if known.temperature is None else question.temperature
        return replace(question, temperature=temperature, json=known.json and question.json, apart=known.apart), notes


def _describe_failure(failed: UpstreamDown) -> str:
    if isinstance(failed, NoModel):
        return f"{failed.why}; or describe the model in models:"
    return str(failed)


def _is_retryable(failed: UpstreamDown) -> bool:
    """Whether a retry may help."""
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
