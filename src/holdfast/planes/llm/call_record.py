"""The record of one model call: what the agent received, what the call cost, and its entry in the trace."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.model.codec import digest
from holdfast.model.completion import Completion, Usage
from holdfast.model.model_spec import ModelSpec
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, Cost, TraceEvent
from holdfast.planes.llm.prices import estimate_cost
from holdfast.planes.llm.reply_sender import SentReply
from holdfast.planes.llm.sources.source import Query
from holdfast.protocols.fault import Call
from holdfast.protocols.trial import TrialContext


class CallRecord:
    """The record of one call: the reply that the agent received, as far as known, and how long upstream was silent."""

    def __init__(
        self, context: TrialContext, query: Query, models: Mapping[str, ModelSpec], call: Call, retry: int
    ) -> None:
        self._context = context
        self._query = query
        self._models = models
        self._call = call
        self.retry = retry
        self.completion: Completion | None = None
        """The reply that the agent received, as far as it could be read."""
        self.status: int | None = None
        self.trouble = ""
        self.usage: Usage | None = None
        """The usage of a reply that passed unread."""
        self.since: float | None = None
        """When the wait for upstream's next bytes began; None if Holdfast is not waiting."""
        self.billed = True
        self.script = ""
        self._ts = context.sink.now()
        self._told = False

    @property
    def age_ms(self) -> float:
        """Time since the call arrived."""
        return (self._context.sink.now() - self._ts) * 1000

    def start_wait(self) -> None:
        """Start the wait for upstream."""
        self.since = self._context.sink.now()

    def record_sent(self, sent: SentReply) -> None:
        """Record the reply that was sent to the agent."""
        self.status, self.trouble = sent.status, sent.trouble

    def report(self, event: TraceEvent) -> None:
        """Record the call, once: an answer that arrives after its trial changes nothing."""
        if not self._told:
            self._told = True
            self._context.sink.add(event)

    def build_event(self, what: str = "") -> TraceEvent:
        """Return the call as the trace records it; `what` names the request if it is not a model call."""
        context, call, completion = self._context, self._call, self.completion
        usage = completion.usage if completion is not None else self.usage
        since = self.since if self.trouble == "client_gone" else None
        return TraceEvent(
            ts=self._ts,
            event_type="llm_call",
            tool=what or call.target,
            plane=call.plane,
            n=call.n,
            retry=self.retry,
            duration_ms=self.age_ms,
            status=self.status,
            error_type=self.trouble,
            input=shorten(_read_last_message(self._query), TEXT_KEPT),
            output=shorten(completion.display_text if completion is not None else "", TEXT_KEPT),
            digest=self._query.digest or digest(self._query.body),
            cost=self._estimate_cost(usage, self._query.model),
            script=self.script,
            fault=context.injector.join_modes_met(call.plane, call.target, call.n),
            offers_tools=self._query.codec is not None
            and (self._query.request is None or bool(self._query.request.tools)),
            waited_ms=0.0 if since is None else (context.sink.now() - since) * 1000,
        )

    def _estimate_cost(self, usage: Usage | None, model: str) -> Cost | None:
        if usage is None:
            return None
        usd = estimate_cost(model, usage, self._models)
        return Cost(model, usage.input_tokens, usage.output_tokens, usd, self.billed, usage.cached_input)


def _read_last_message(query: Query) -> str:
    """Return the latest message to the model."""
    request = query.request
    if request is None or not request.messages:
        return ""
    last = request.messages[-1]
    return "\n".join([result.text for result in last.results]) or last.text if last.results else last.text
