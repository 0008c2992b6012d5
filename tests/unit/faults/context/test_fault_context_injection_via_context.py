from holdfast.faults.context.injection_via_context import InjectionViaContext
from holdfast.model.canary import find_canaries


def test_injection_via_context_comes_in_a_quoted_document_before_the_input(context):
    text = InjectionViaContext(payload="EVIL").rewrite("ask", context())
    assert text == "Context (retrieved document):\n<document>\nEVIL\n</document>\n\nask"


def test_injection_via_context_goes_where_it_is_told(context):
    text = InjectionViaContext(payloads=("EVIL",), inject_at="end").rewrite("ask", context())
    assert text.startswith("ask\n\nContext")


def test_injection_via_context_ships_documents_with_canaries(context):
    assert len(find_canaries(InjectionViaContext().rewrite("ask", context()))) == 1
