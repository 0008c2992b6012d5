import pytest
from check_exhibits import exhibit

from error_code import has_code
from holdfast.checks.response.similarity import Similarity
from holdfast.errors import HarnessError

EXPECTED = "The capital of France is Paris."
OTHER = "The capital of France is Lyon."


def test_same_answer_in_other_words_passes_and_says_the_method():
    finding = Similarity(EXPECTED).decide(exhibit("Paris is the capital of France."))
    assert finding.passed
    assert finding.details["method"] == "lexical"
    assert "lexical" in finding.reason


def test_changed_name_fails_with_the_reason():
    finding = Similarity(EXPECTED).decide(exhibit(OTHER))
    assert finding.passed is False
    assert (finding.code, finding.key) == ("answer-differs", ("name",))
    assert finding.details["differs"]


def test_default_threshold_and_both_spellings():
    text = exhibit("Paris is the capital of France.")
    assert Similarity(EXPECTED).decide(text).details["threshold"] == 0.75
    assert Similarity(EXPECTED, threshold=0.8).decide(text).details["threshold"] == 0.8
    assert Similarity(EXPECTED, similarity_threshold=0.9).decide(text).details["threshold"] == 0.9
    assert Similarity(EXPECTED, threshold=1.0).decide(exhibit(OTHER)).passed is False


def test_zero_is_a_threshold_too():
    assert Similarity(EXPECTED, threshold=0.0).decide(exhibit("nothing like it")).passed


def test_both_thresholds_at_once_are_a_problem():
    rule = Similarity(EXPECTED, similarity_threshold=0.7, threshold=0.8)
    assert [field for field, _ in rule.problems()] == ["threshold"]


def test_empty_expected_is_a_problem():
    assert [field for field, _ in Similarity(" ").problems()] == ["expected"]


def test_semantic_without_its_extra_is_a_problem_with_the_pip_line(monkeypatch):
    monkeypatch.setattr("holdfast.likeness.compare.find_spec", lambda name: None)
    ((field, message),) = Similarity(EXPECTED, method="semantic").problems()
    assert field == "method"
    assert "pip install numpy safetensors tokenizers wordllama" in message
    assert not list(Similarity(EXPECTED).problems())


def test_semantic_sees_a_meaning_that_words_do_not_share():
    expected, answer = "The patient is wealthy.", "The patient is rich."
    lexical = Similarity(expected).decide(exhibit(answer)).details["similarity"]
    semantic = Similarity(expected, method="semantic").decide(exhibit(answer))
    assert semantic.details["similarity"] > lexical
    assert semantic.details["method"] == "semantic"


def test_semantic_never_imports_the_package_it_reads_from():
    import sys

    Similarity(EXPECTED, method="semantic").decide(exhibit("Paris, in France."))
    assert "wordllama" not in sys.modules


@pytest.mark.parametrize(
    ("settings", "field"),
    [({"method": "model"}, "model"), ({"model": "m"}, "model"), ({"votes": 3, "method": "semantic"}, "votes")],
)
def test_a_model_belongs_to_its_method(settings, field):
    assert [found for found, _ in Similarity(EXPECTED, **settings).problems()] == [field]
    assert not list(Similarity(EXPECTED, method="model", model="m", votes=3).problems())


def test_a_model_that_was_not_asked_is_an_error():
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        Similarity(EXPECTED, method="model", model="m").decide(exhibit(EXPECTED))
