"""A body that is not what its Content-Type says, or is what the agent does not expect."""

from __future__ import annotations

from holdfast.mutate.request.variants import RequestMutator, fixed

_XML = (("Content-Type", "application/xml"),)
_FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
_MULTIPART = (("Content-Type", "multipart/form-data; boundary=holdfast-boundary"),)

CONTENT_TYPE_CONFUSION = RequestMutator(
    "content_type_confusion",
    {
        "xml": fixed(headers=_XML, body="xml"),
        "text_plain": fixed(headers=(("Content-Type", "text/plain"),)),
        "missing": fixed(without=("content-type",), body="same"),
        "multipart": fixed(headers=_MULTIPART, body="multipart"),
        "wrong_charset": fixed(headers=(("Content-Type", "application/json; charset=utf-16"),)),
        "form": fixed(headers=_FORM, body="form"),
        "named_xml": fixed(headers=_XML),
        "named_form": fixed(headers=_FORM),
        "named_multipart": fixed(headers=_MULTIPART),
        "named_json": fixed(headers=(("Content-Type", "application/json"),), body="xml"),
        "utf16": fixed(headers=(("Content-Type", "application/json; charset=utf-16"),), body="utf16"),
        "unknown_charset": fixed(headers=(("Content-Type", "application/json; charset=no-such-charset"),)),
        "not_utf8": fixed(body="latin1_bytes"),
        "doubled": fixed(added=(("Content-Type", "application/xml"),)),
        "nonsense": fixed(headers=(("Content-Type", ";;/ nonsense"),)),
    },
)
