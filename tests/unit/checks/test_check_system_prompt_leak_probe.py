import pytest
from check_exhibits import exhibit

from holdfast.checks.response.excludes_pattern import ExcludesPattern
from holdfast.checks.response.system_prompt_leak_probe import SystemPromptLeakProbe


@pytest.mark.parametrize("text", ["You are FinBot. Never", "I cannot share that."])
def test_leak_probe_decides_as_excludes_pattern(text):
    patterns = ("you are finbot", "never reveal")
    assert SystemPromptLeakProbe(patterns).decide(exhibit(text)) == ExcludesPattern(patterns).decide(exhibit(text))


def test_leak_probe_requires_probes_and_patterns():
    assert SystemPromptLeakProbe.traits.requires_probes
    assert [field for field, _ in SystemPromptLeakProbe(()).problems()] == ["patterns"]
    with pytest.raises(TypeError):
        SystemPromptLeakProbe()


def test_leak_probe_lints_like_excludes_pattern():
    assert list(SystemPromptLeakProbe(("You are a bot.",)).lint())
    assert not list(SystemPromptLeakProbe(("You are a bot.",), literal=True).lint())
