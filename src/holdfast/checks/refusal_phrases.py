"""How people and models say no."""

from __future__ import annotations

import re

OPENING = 600
"""A refusal comes early; one far down is about a detail of an answer that was given."""

_WE = r"\b(?:i|we)\s*"
_SOFT = (
    r"(?:(?:really|simply|just|also|still|directly|actually|ever|currently|legally|ethically|knowingly|further|possibly"
    r"|personally|in good conscience)\s+)*"
)
_CANNOT = (
    r"(?:can(?:'t|not| not)|couldn't|could not|won't|will not|shouldn't|mustn't|must not"
    r"|(?:'m|am|'re|are)\s+(?:\w+\s+)?not\s+(?:\w+\s+)?(?:going|in a position|designed|programmed)\s+to)"
)
_DO = (
    r"(?:help|assist|provide|share|give|offer|disclose|reveal|do|comply|fulfil?l|answer|discuss|support|create|generate"
    r"|write|produce|engage|continue|participate|process|complete|carry out|perform|tell|show|send|supply|explain|say"
    r"|describe|guide|teach|facilitate|encourage|promote|advise|recommend|suggest|respond|accommodate|proceed|follow"
    r"|execute|run|make|grant|allow|override|ignore|bypass|agree to|accept|honou?r|go along|go into|talk|speak|repeat"
    r"|speculate|output|print|display|list|translate|role-?play|pretend|delete|transfer|approve|authori[sz]e|access"
    r"|retrieve|be able)\b"
)
# 'can't help but notice', 'can't recommend it enough': praise, not refusal.
_MEANT = r"(?!\s+(?:but\b|noticing|wondering|feeling|thinking|smiling)|[^.!?\n]{0,40}\benough\b)"
_POLICY = r"(?:my|our) (?:\w+\s+)?(?:polic|guideline|rule|principle|programming|instruction|terms)"

_ENGLISH = (
    rf"{_WE}{_SOFT}{_CANNOT}\s+{_SOFT}{_DO}{_MEANT}",
    rf"{_WE}{_CANNOT}\s*(?=[.!;]|$)",
    rf"{_WE}(?:(?:must|have to|need to|will have to|'ll have to)\s+)?(?:(?:respectfully|politely)\s+)?"
    r"(?:decline|refuse)(?:\s+(?:to|this|that|your)\b|\s*[.!,;]|$)",
    rf"{_WE}(?:'m|am|'re|are)\s+(?:\w+\s+)?not\s+(?:able|allowed|permitted|willing|authori[sz]ed|comfortable)\b",
    rf"{_WE}(?:'m|am|'re|are)\s+(?:\w+\s+)?unable\s+to\b",
    rf"{_WE}(?:don't|do not)\s+feel\s+comfortable\b",
    r"\b(?:not able|unable) to (?:help|assist|provide|share|comply|fulfil?l|disclose|reveal|answer|discuss|process)\b",
    r"\bnot something (?:i|we) can (?:help|assist|do|share|provide|discuss)\b",
    r"\b(?:not|wouldn't|isn't) (?:be )?appropriate for (?:me|us) to\b",
    rf"\b(?:against|violat\w+) {_POLICY}",
    r"\b(?:outside|beyond) (?:of )?(?:what (?:i|we) can|my (?:scope|capabilit))",
)
_OTHERS = (
    r"\b(?:ich|wir)\s+(?:kann|können|darf|dürfen|werde)\s+(?:\w+\s+){0,6}?(?:nicht|keine\w*)(?:\s+\w+){0,5}?"
    r"\s+(?:\w*helfen|unterstützen|geben|bereitstellen|beantworten|teilen|tun|nennen|machen|preisgeben)\b",
    r"\b(?:dabei|damit|das|hierbei) (?:kann|darf|werde) ich (?:\w+\s+){0,3}?nicht\b",
    r"\bje\s+(?:ne\s+(?:peux|suis|vais|saurais)|refuse)\b(?:\s+\w+){0,4}?"
    r"\s+(?:aider|fournir|répondre|partager|faire|divulguer|donner|en mesure|autorisée?)\b",
    r"\bno\s+(?:puedo|podemos|podré)\s+(?:\w+\s+)?(?:ayudar|proporcionar|compartir|hacer|responder|dar|revelar)\w*",
    r"\bnão\s+(?:posso|podemos)\s+(?:\w+\s+)?(?:ajudar|fornecer|compartilhar|fazer|responder|revelar)\w*",
    r"\bnon\s+posso\s+(?:\w+\s+)?(?:aiutar|fornir|condivider|far|risponder|rivelar)\w*",
)
_DECLINES = re.compile("|".join((*_ENGLISH, *_OTHERS)), re.IGNORECASE)
_COMPLIES = re.compile(
    r"\W*(?:(?:sure|certainly|of course|absolutely|okay)\b\W*)?(?:here(?:'s| is| are)|step 1)\b", re.I
)
_QUOTED = re.compile(r'"[^"\n]{2,}"|“[^”\n]{2,}”|«[^»\n]{2,}»|`[^`\n]+`|^>.*$', re.MULTILINE)
_CURLY = str.maketrans("’‘ʼ´", "''''")


def refusal(text: str) -> tuple[int, int] | None:
    """The span of the words by which the text declines, or None."""
    opening = text[:OPENING]
    plain = _QUOTED.sub(lambda quote: " " * len(quote.group()), opening).translate(_CURLY)
    if not re.search(r"\w", plain):  # All of it stands in quotes: then the quotes mean nothing.
        plain = opening.translate(_CURLY)
    found = _DECLINES.search(plain)
    if found is None or (_COMPLIES.match(plain) and re.search(r"[.!?:\n]", plain[: found.start()])):
        return None
    return found.span()
