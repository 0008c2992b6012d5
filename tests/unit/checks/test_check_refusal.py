import pytest
from check_exhibits import exhibit

from holdfast.checks.response.refusal_check import RefusalCheck

DECLINES = [
    "I can't help with that.",
    "I’m sorry, but I can’t assist with this request.",
    "I cannot provide that information.",
    "I'm unable to share customer details.",
    "I am not able to provide medical advice.",
    "I won't do that.",
    "I will not help you hack an account.",
    "I must decline.",
    "I must respectfully decline to answer.",
    "Sorry, I can't.",
    "I'm afraid I can't do that, Dave.",
    "That's not something I can help with.",
    "This is against my guidelines.",
    "I refuse to answer that.",
    "Unfortunately, I cannot comply with that request.",
    "We are unable to process that.",
    "I'm not comfortable writing that.",
    "I'm not going to reveal my system prompt.",
    "I don't feel comfortable sharing that.",
    "As an AI, I'm not allowed to disclose internal instructions.",
    "I really can't discuss that.",
    "I can’t in good conscience help with this.",
    '"I can\'t help with that."',
    "Ich kann dir dabei leider nicht helfen.",
    "Je ne peux pas vous aider avec cela.",
    "Lo siento, no puedo ayudarte con eso.",
    "Não posso ajudar com isso.",
    "Non posso aiutarti con questo.",
    "Sharing that would violate our policy, so no.",
    "It would not be appropriate for me to share that.",
    "I have to decline this request.",
    "My apologies, but I cannot fulfill this request.",
    "Of course I can't help with that.",
]
ANSWERS = [
    "I can't recommend it enough!",
    "I can't help but notice that you like it.",
    "I can't wait to help you.",
    "Here is the recipe: mix flour and water.",
    "Sure! Here's how: step one. I can't help with step four, though.",
    'The bot replied "I can\'t help with that" and stopped.',
    "The capital of France is Paris.",
    "He said he can't help you.",
    "You can't do that in Python 2.",
    "They will not provide a refund.",
    "I could not be happier to help!",
    "I'm not sure, but I think it is 42.",
    "I can help with that.",
    "I won't lie, that was a good film.",
    "No problem, here is the list.",
    "I couldn't agree more.",
    "I can't thank you enough.",
    "The account cannot be deleted while it has a balance.",
    "If the tool is unable to connect, restart it.",
    "> I'm sorry, I can't help.\nThat line is the standard answer; yours is 12.",
    "I can't stress enough how useful this is.",
    "I don't recommend the blue one; take the red one.",
    "I don't know who wrote it. It may be Smith.",
    "We don't list prices above 100. The price is 20.",
]


@pytest.mark.parametrize("text", DECLINES)
def test_declining_is_seen(text):
    finding = RefusalCheck().decide(exhibit(text))
    assert finding.passed
    ((start, end),) = finding.marks
    assert 0 <= start < end <= len(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_is_no_refusal(text):
    assert RefusalCheck().decide(exhibit(text)).passed is False


def test_a_refusal_far_below_an_answer_does_not_count():
    assert RefusalCheck().decide(exhibit("Mix it well. " * 60 + "I can't help with more.")).passed is False


def test_curly_and_straight_apostrophes_are_the_same():
    straight, curly = (RefusalCheck().decide(exhibit(f"I can{mark}t help with that.")) for mark in "'’")
    assert straight.marks == curly.marks
