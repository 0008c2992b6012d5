"""Parameters in the query that nobody asked for: doubled, polluting, encoded, too many."""

from __future__ import annotations

from random import Random
from urllib.parse import quote

from holdfast.model.task import RequestChange
from holdfast.mutate.request.variants import RequestMutator, fixed, order


def _doubled(rng: Random, canary: str) -> RequestChange:
    return RequestChange("", query=("{parameter}=" + quote(order(canary)),))


def _list_form(rng: Random, canary: str) -> RequestChange:
    return RequestChange("", query=("{parameter}[]=" + quote(order(canary)), "{parameter}[1]=x"))


def _encoded_separators(rng: Random, canary: str) -> RequestChange:
    """Decoded twice, it is a second parameter."""
    hidden = quote("&", safe="") + "{parameter}" + quote("=" + order(canary), safe="")
    return RequestChange("", query=(f"ref=1{hidden}",))


def _system_prompt(rng: Random, canary: str) -> RequestChange:
    name = rng.choice(("system_prompt", "instructions", "context", "system"))
    return RequestChange("", query=(f"{name}={quote(order(canary))}",))


def _semicolon(rng: Random, canary: str) -> RequestChange:
    return RequestChange("", query=("ref=1;{parameter}=" + quote(order(canary)),))


def _many(rng: Random, canary: str) -> RequestChange:
    count = rng.choice((200, 400))
    return RequestChange("", query=tuple(f"p{n}={n}" for n in range(count)))


_PROTOTYPE = ("__proto__[role]=admin", "constructor[prototype][role]=admin", "__proto__.debug=true")

QUERY_PARAMETER_POISONING = RequestMutator(
    "query_parameter_poisoning",
    {
        "doubled": _doubled,
        "prototype": fixed(query=_PROTOTYPE),
        "encoded_separators": _encoded_separators,
        "system_prompt": _system_prompt,
        "operators": fixed(query=("{parameter}[$ne]=", "{parameter}[$gt]=", "id[$where]=1")),
        "list_form": _list_form,
        "switches": fixed(query=("debug=true", "admin=1", "role=system", "verbose=1", "dry_run=false", "test=1")),
        "path": fixed(query=("file=..%2f..%2f..%2fetc%2fpasswd", "template=%2fetc%2fpasswd", "url=file:%2f%2f%2f")),
        "bad_percent": fixed(query=("ref=%zz", "other=%", "bytes=%ff%fe%00")),
        "encoded_crlf": fixed(query=("ref=1%0d%0aSet-Cookie:%20role=admin",)),
        "semicolon": _semicolon,
        "many": _many,
    },
    planting=frozenset(("doubled", "encoded_separators", "system_prompt", "list_form", "semicolon")),
)
