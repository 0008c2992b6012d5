import time

import pytest
from check_exhibits import exhibit

from holdfast.checks.pii import FINDERS
from holdfast.checks.response.excludes_pii import ExcludesPii

PII = [
    ("email", "Write to jane.doe@example.com."),
    ("email", "a+b@mail.co.uk,"),
    ("phone", "Call (202) 555-0143 now"),
    ("phone", "555-123-4567"),
    ("phone", "+44 20 7946 0958"),
    ("phone", "+1-415-555-0132"),
    ("phone", "call me at 4155550132"),
    ("phone", "1-800-356-9377"),
    ("credit_card", "4111 1111 1111 1111"),
    ("credit_card", "card number 5555555555554444."),
    ("credit_card", "3782 822463 10005"),
    ("credit_card", "6011-1111-1111-1117"),
    ("iban", "IBAN DE89 3704 0044 0532 0130 00 and so"),
    ("iban", "GB82WEST12345698765432"),
    ("us_ssn", "SSN: 536-90-4399"),
    ("us_ssn", "social security number 536904399"),
    ("ip_address", "from 203.0.113.7 today"),
    ("ip_address", "8.8.8.8"),
    ("ip_address", "2001:db8::1"),
    ("api_key", "AKIAIOSFODNN7EXAMPLE"),
    ("api_key", "sk-proj-abcdefghij1234567890XYZ"),
    ("api_key", "ghp_" + "a1B2" * 9),
    ("secret", "-----BEGIN RSA PRIVATE KEY-----"),
    ("secret", "postgres://admin:hunter2@db.local/x"),
    ("secret", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl_-12"),
]
NOT_PII = [
    "The price is $1,234,567.89 today.",
    "Order 2025551234 has shipped.",
    "Order number 4111111111111111 has shipped.",
    "Order #123-45-6789 is ready.",
    "On 2024-01-15 10:30 we met.",
    "Version 1.2.3.4 is out; v10.20.30.40 too.",
    "pip install foo==1.2.3.4",
    "Date 12/31/2024, time 12:30:45.",
    "ISBN 978-3-16-148410-0",
    "The total is 1234567890 units.",
    "Revenue was 4,200,000,000 dollars.",
    "ratio 16:9, std::vector, a::b, add::bad",
    "router at 192.168.1.1 or 127.0.0.1 or 10.0.0.1",
    "git clone git@github.com:org/repo.git",
    "logo@2x.png and react@18.2.0 and @handle",
    "Tracking number 9400 1000 0000 0000 0000 00",
    "UUID 123e4567-e89b-12d3-a456-426614174000",
    "GPS 40.712776, -74.005974",
    "phone plan costs 30 dollars",
    "IPs go from 0.0.0.0 to 255.255.255.255",
    "The hash is 5d41402abc4b2a76b9719d911017c592",
    "ZIP 90210-1234",
    "SKU 1234-5678-9012",
    "1234 5678 9012 3456",
    "in 2023 2024 2025 2026 we grew",
    "pages 100-200-3000",
    "pi is 3.14159265358979",
    "sk-learn is a library, sk-short",
    "timestamp 1700000000 and 1700000000000",
    "https://example.com:8080/path",
    "2024-2025-2026-2027",
]


@pytest.mark.parametrize(("kind", "text"), PII)
def test_pii_is_found_and_named(kind, text):
    finding = ExcludesPii().decide(exhibit(text))
    assert finding.passed is False
    assert finding.details == {"entities": {kind: 1}}


@pytest.mark.parametrize("text", NOT_PII)
def test_prices_orders_dates_and_versions_are_not_pii(text):
    finding = ExcludesPii().decide(exhibit(text))
    assert finding.passed, finding.reason


def test_every_kind_has_an_example():
    assert {kind for kind, _ in PII} == set(FINDERS)


@pytest.mark.parametrize(
    "text", ["4111 1111 1111 1112", "DE89 3704 0044 0532 0130 01", "SSN 000-12-3456", "+1 000 000 0000"]
)
def test_what_breaks_the_rules_of_its_kind_is_not_pii(text):
    assert ExcludesPii().decide(exhibit(text)).passed


def test_reason_shows_only_masked_values():
    finding = ExcludesPii().decide(exhibit("Jane: jane.doe@example.com, 4111 1111 1111 1111"))
    assert finding.reason == "found email ja…, credit_card 41…"
    assert finding.marks == ((6, 26), (28, 47))
    assert "doe" not in str(finding.details)


def test_many_values_are_counted():
    finding = ExcludesPii().decide(exhibit(" ".join(f"u{i}@example.com" for i in range(9))))
    assert "and 6 more" in finding.reason
    assert finding.details == {"entities": {"email": 9}}


def test_entities_selects():
    text = "jane@example.com 4111 1111 1111 1111"
    assert ExcludesPii(entities=("email",)).decide(exhibit(text)).details == {"entities": {"email": 1}}
    assert ExcludesPii(entities=("iban",)).decide(exhibit(text)).passed


@pytest.mark.parametrize("allowed", ["help@example.com", "HELP@example.com", "*@example.com"])
def test_allow_takes_literals_and_globs(allowed):
    assert ExcludesPii(allow=(allowed,)).decide(exhibit("Write to help@example.com.")).passed
    assert ExcludesPii(allow=(allowed,)).decide(exhibit("Write to help@example.org.")).passed is False


def test_unknown_entity_is_a_problem_with_the_near_miss():
    ((field, message),) = ExcludesPii(entities=("emial",)).problems()
    assert field == "entities"
    assert "did you mean email?" in message
    assert [field for field, _ in ExcludesPii(entities=()).problems()] == ["entities"]
    assert not list(ExcludesPii(entities=("email",), allow=("x",)).problems())


@pytest.mark.parametrize("piece", ["1", "1 ", "a@", ":", "+1", "AB12 ", "x://a", "1.", "a@b."])
def test_search_time_grows_with_the_text_not_with_its_square(piece):
    began = time.perf_counter()
    ExcludesPii().decide(exhibit(piece * (100_000 // len(piece))))
    assert time.perf_counter() - began < 5
