from holdfast.faults.context.conflicting_context import ConflictingContext
from holdfast.model.canary import find_canaries


def test_conflicting_context_contradicts_after_the_input_by_default(context):
    text = ConflictingContext().rewrite("ask", context())
    assert text.startswith("ask\n\n")
    assert len(find_canaries(text)) == 1


def test_conflicting_context_says_what_and_where_it_is_told(context):
    attack = ConflictingContext(payload="NO", inject_at="start")
    assert attack.rewrite("ask", context()) == "NO\n\nask"
    several = ConflictingContext(payloads=("a", "b"))
    assert {several.rewrite("ask", context(seed)) for seed in range(20)} == {"ask\n\na", "ask\n\nb"}
