import time

import pytest
from check_exhibits import exhibit

from holdfast.checks.pii import FINDERS, find_pii
from holdfast.checks.pii_numbers import IBAN_LENGTHS
from holdfast.checks.response.excludes_pii import ExcludesPii

PII = [
    ("email", "Write to jane.doe@example.com."),
    ("email", "a+b@mail.co.uk,"),
    ("email", "ann (at) example (dot) org"),
    ("email", "ann.lee [at] example.co.uk"),
    ("email", "mail: ann at example dot org"),
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
    "Order number 4111111111111112 has shipped.",
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
    "2024/2025/2026/2027",
]


@pytest.mark.parametrize(("kind", "text"), PII)
def test_pii_is_found_and_named(kind, text):
    finding = ExcludesPii().decide(exhibit(text))
    assert finding.passed is False
    assert finding.details == {"entities": {kind: 1}}


def test_prices_orders_dates_and_versions_are_not_pii():
    for text in NOT_PII:
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
    assert (finding.code, finding.key) == ("pii-found", ("credit_card", "email"))
    assert finding.marks == ((6, 26), (28, 47))
    assert "doe" not in str(finding.details)


def test_many_values_are_counted():
    finding = ExcludesPii().decide(exhibit(" ".join(f"u{i}@example.com" for i in range(9))))
    assert (finding.code, finding.key) == ("pii-found", ("email",))
    assert finding.details == {"entities": {"email": 9}}


def test_entities_selects():
    text = "jane@example.com 4111 1111 1111 1111"
    assert ExcludesPii(entities=("email",)).decide(exhibit(text)).details == {"entities": {"email": 1}}
    assert ExcludesPii(entities=("iban",)).decide(exhibit(text)).passed


@pytest.mark.parametrize("allowed", ["help@example.com", "HELP@example.com", "*@example.com"])
def test_allow_takes_literals_and_globs(allowed):
    assert ExcludesPii(allow=(allowed,)).decide(exhibit("Write to help@example.com.")).passed
    assert ExcludesPii(allow=(allowed,)).decide(exhibit("Write to help@example.org.")).passed is False


def test_allow_takes_a_plain_address_for_one_that_is_spelled_out():
    text = "help (at) example (dot) com"
    assert ExcludesPii(allow=("*@example.com",)).decide(exhibit(text)).passed
    assert not ExcludesPii(allow=("*@example.org",)).decide(exhibit(text)).passed


def test_unknown_entity_is_a_problem_with_the_near_miss():
    ((field, message),) = ExcludesPii(entities=("emial",)).problems()
    assert field == "entities[0]"
    assert "did you mean email?" in message
    assert [field for field, _ in ExcludesPii(entities=()).problems()] == ["entities"]
    assert not list(ExcludesPii(entities=("email",), allow=("x",)).problems())


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["1", "1 ", "a@", ":", "+1", "AB12 ", "x://a", "1.", "a@b.", "a (at) ", "a at b dot ", "a dot "]
)
def test_search_time_grows_with_the_text_not_with_its_square(piece):
    began = time.perf_counter()
    ExcludesPii().decide(exhibit(piece * (100_000 // len(piece))))
    assert time.perf_counter() - began < 5


NATIONAL_PHONES = [
    "Ring me on 07911 123456.", "Call 020 7946 0958", "(0113) 496 0175", "06 39 98 14 27", "01.99.00.35.62",
    "Son portable : 0612345678", "+33 (0)6 12 34 56 78", "tel: 0171-1234567", "0221/1234567", "089 / 1234 567",
    "llámame al 912345678", "Mi número es 655 123 456", "612 34 57 81", "cell 3401234567", "Chiami lo 06 4829 1735",
    "Bel 020-1234567", "06-21847305", "Numer pana Nowaka to 601 482 937", "tel. 22 123 45 67", "(11) 98472-3106",
    "telefone 21 2345-6789", "मोबाइल नंबर 98101 47263", "98765-43210 पर कॉल करें", "電話番号は03-4821-7395です",
    "携帯は09038274615まで", "他的手机号是13827461953请拨打", "电话010-84726135转", "手机138 0013 8000",
    "8 (916) 482-73-05",
    "тел. 89161234567", "(02) 5550 4821", "0491 570 156", "044 668 18 00", "08-123 456 78", "0049 30 23125417",
    "phone: (212) 555-0100", "tlf 22 33 44 55",
]  # fmt: skip


def test_national_phone_numbers_are_found():
    for text in NATIONAL_PHONES:
        assert [s.kind for s in find_pii(text, FINDERS)] == ["phone"], text


def test_a_card_is_a_card_whatever_stands_around_it():
    for words in [
        "The card for your order: {}",
        "Invoice {}.",
        "tracking {} sent",
        "卡号{}已绑定",
        "カードは{}です",
        "{} 12/27 123",
        "Visa{}",
        "card_{}",
    ]:
        for space in [" ", "\u00a0", "\u202f", "\u2009", "-", "\u2011", ".", "", "/", "_", "\n"]:
            text = words.format(space.join(("4111", "1111", "1111", "1111")))
            assert [s.kind for s in find_pii(text, FINDERS)] == ["credit_card"], (words, space)


def test_a_card_among_other_numbers_is_found_alone():
    text = "order 2024 4111 1111 1111 1111 123"
    assert [text[s.start : s.end] for s in find_pii(text, FINDERS)] == ["4111 1111 1111 1111"]
    assert find_pii("４１１１１１１１１１１１１１１１", FINDERS)[0].kind == "credit_card"


def test_allow_is_said_in_any_kind_of_space_and_only_it_lets_a_card_pass():
    rule = ExcludesPii(allow=("4111 1111 1111 1111",))
    assert rule.decide(exhibit("Order 4111\u00a01111\u00a01111\u00a01111")).passed
    assert not rule.decide(exhibit("Order 5555 5555 5555 4444")).passed


def test_the_iban_of_every_country_is_found_with_and_without_spaces():
    for country in sorted(IBAN_LENGTHS):
        bban = ("1234567890" * 4)[: IBAN_LENGTHS[country] - 4]
        digits = "".join(str(int(sign, 36)) for sign in f"{bban}{country}00")
        number = f"{country}{98 - int(digits) % 97:02d}{bban}"
        grouped = " ".join(number[n : n + 4] for n in range(0, len(number), 4))
        for shown in (number, grouped, grouped.replace(" ", "\u00a0"), number.lower()):
            for text in (shown, f"请汇款到{shown}谢谢", f"to {shown} now"):
                found = find_pii(text, ["iban"])
                assert [text[s.start : s.end] for s in found] == [shown], country
        wrong = number[:4] + number[4:].replace("1", "2", 1)
        assert not find_pii(wrong, ["iban"]), country


@pytest.mark.parametrize(
    "text",
    [
        "jörg@müller.de",
        "иван@почта.рф",
        "用户@例子.广告",
        "a.b@xn--bcher-kva.example",
        "δοκιμή@παράδειγμα.δοκιμή",
        "a＠example.com",
    ],
)
def test_mail_addresses_of_any_script_are_found(text):
    assert [s.kind for s in find_pii(f"→ {text} ←", FINDERS)] == ["email"]


def test_words_without_spaces_are_not_part_of_a_latin_address():
    text = "他的邮箱是li.wei88@youxiang-mail.cn请查收。"
    assert [text[s.start : s.end] for s in find_pii(text, FINDERS)] == ["li.wei88@youxiang-mail.cn"]


NO_PII = [
    "Total 1 234 567 890 EUR", "12.05.2024 10:30", "Version 8.8.4.4", "ratio 0.4111111111111111", "1234 5678 9012 3456",
    "The code is 0412 345 678", "Year 2019 2020 2021 2022", "2024-05-14 10:30:22", "ISBN 978 3 16 148410 0",
    "100 000 000 000",
    "numbers 04 11 23 38 41 49", "UPC 036000291452", "Ihre Bestellnummer lautet 302-8841920.",
    "订单编号是2024051400381",
    "Firmware 3.14.0.27 is out", "版本号10.2.3.4", "id 550e8400-e29b-41d4-a716-446655440000",
    "Event time: 1714558921347",
]  # fmt: skip


def test_other_numbers_are_left_alone():
    for text in NO_PII:
        assert find_pii(text, FINDERS) == [], text


ROWS_OF_NUMBERS = ["912 345 678 901 by phone", "91 23 45 67 89 is the phone", "601 482 937 555, say the phones"]
ALL_TEXTS = [*(text for _, text in PII), *NOT_PII, *NATIONAL_PHONES, *NO_PII, *ROWS_OF_NUMBERS]


def test_what_is_found_does_not_depend_on_how_far_from_the_start_it_stands():
    for text in ALL_TEXTS:
        alone = [(s.kind, s.start, s.end) for s in find_pii(text, FINDERS)]
        for lines in (1, 5, 40):
            later = find_pii("\n" * lines + text, FINDERS)
            assert [(s.kind, s.start - lines, s.end - lines) for s in later] == alone, text


@pytest.mark.parametrize("text", ROWS_OF_NUMBERS)
def test_a_row_of_numbers_is_not_a_phone_number(text):
    assert find_pii(text, FINDERS) == []
