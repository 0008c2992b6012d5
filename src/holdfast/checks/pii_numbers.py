"""Finds numbers that identify a person: cards, IBANs and US SSNs, which can be validated, and phone numbers.

Cards are recognised by issuer, length and Luhn, IBANs by country and mod 97. International phone numbers follow their
country's numbering plan. It cannot identify a national number, because nearly any nine digits are valid in some
country: there the notation decides, and where other numbers share it, a word such as "call" must precede the number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

_LABELS = re.compile(
    r"\b(?:orders?|invoice|tracking|ticket|reference|ref|confirmation|transaction|isbn|ean|barcode|sku|serial|part|case|item"
    r"|batch|build|product|article|model|voucher|coupon|policy|contract|parcel|shipment|meter|receipt|lot|code|id|asset|device"
    r"|(?:account|customer|member|employee|student)\s+(?:number|no|id)"
    r"|\w*bestell\w*|\w*auftrag\w*|\w*rechnung\w*|\w*artikel\w*|\w*sendung\w*|kundennummer|\w*serien\w*|aktenzeichen"
    r"|commande|colis|r[ée]f[ée]rence|facture|produit|s[ée]rie|dossier\w*|suivi|pedido|factura|art[íi]culo|referencia"
    r"|protocolo|fatura|encomenda|ordine|fattura|articolo|bestelling|factuur|zam[óo]wieni\w*|faktur\w*|paczk\w*"
    r"|заказ\w*|сч[её]т\w*|артикул\w*|накладн\w*|договор\w*)(?!\w)"
    r"|订单|訂單|编号|編號|发票|快递|单号|注文|伝票|商品|型番|ऑर्डर|चालान|الطلب|طلب|الفاتورة|فاتورة",
    re.IGNORECASE,
)
_PHONE_WORDS = re.compile(
    r"(?<![^\W_])(?:phone|call|tel|tlf|telephone|mobile|cell|fax|whatsapp|text|reach|dial|ring|sms|landline|contact"
    r"|t[ée]l[ée]phone\w*|portable|joindre|joignable|appel\w*|rappel\w*|fixe|\w*telefon\w*|handy\w*|mobil\w*|anruf\w*|erreich\w*"
    r"|rufnummer|unter|m[óo]vil|ll[aá]m\w*|tel[ée]fono\w*|cellulare|chiam\w*|celular|telefone|lig\w{1,4}|telem[óo]vel|telefoon\w*"
    r"|bel|bellen|mobiel|kom[óo]rk\w*|zadzwo\w*|dzwo\w*|тел|телефон\w*|звон\w*|позвон\w*|мобильн\w*|сотов\w*)(?![^\W_])"
    r"|电话|電話|手机|手機|携帯|拨打|致电|座机|联系|هاتف|جوال|موبايل|اتصل|الهاتف|फ़ोन|फोन|मोबाइल|कॉल",
    re.IGNORECASE,
)
_NUMBER_WORDS = re.compile(
    r"(?<![^\W_])(?:number|num[ée]ro|\w*nummer|n[úu]mero|numer|номер\w*)(?![^\W_])|号码|番号|号|رقم|नंबर|नम्बर",
    re.IGNORECASE,
)
_NEAR = 40


def get_preceding_text(text: str, start: int) -> str:
    """Return the part of the sentence before a position."""
    return re.split(r"(?<=\w{4})[.!?](?=\s)|[。！？\n]", text[max(0, start - _NEAR) : start])[-1]


def has_other_label(words: str) -> bool:
    """Return whether the nearest word that names a number names a technical or shop number, such as an order number."""
    return _find_last(_LABELS, words) > _find_last(_PHONE_WORDS, words)


def has_phone_word(words: str, after: str = "") -> bool:
    """Return whether the words before or after a number announce a phone number."""
    match = _PHONE_WORDS.search(words) or _NUMBER_WORDS.search(words) or _PHONE_WORDS.search(after)
    return bool(match) and not has_other_label(words)


def _find_last(shape: re.Pattern[str], words: str) -> int:
    return max((match.start() for match in shape.finditer(words)), default=-1)


_PHONE_LEFT = r"(?<![0-9A-Za-z_+])(?<![0-9][.,/-])(?<![A-Za-z]-)"
_PHONE_RIGHT = r"(?![0-9A-Za-z_])(?![.,/-][0-9])(?! ?[€$£%])"
_INTERNATIONAL = re.compile(r"(?<![\w+])(?:\+|00(?=[1-9]))[0-9](?:[ ()./-]{0,3}[0-9]){6,14}(?![0-9])", re.ASCII)
_CANDIDATE = re.compile(rf"{_PHONE_LEFT}\(?[0-9](?:[ ()./-]{{0,3}}[0-9]){{6,12}}{_PHONE_RIGHT}")
_PAIR = re.compile("[0-9]{2}")
_NEXT_GROUP = re.compile(" ([0-9]+)")
_DATE = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1(?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}([./-])[0-9]{1,2}\2[0-9]{1,2}")

_S = "[ .-]"
_SURE = re.compile(  # notations that only phone numbers have
    rf"0[1-9](?:{_S}[0-9]{{2}}){{4}}"  # France
    rf"|\(0[1-9][0-9]{{0,4}}\)[ ]?[0-9]{{2,4}}(?:{_S}?[0-9]{{2,5}}){{1,3}}"  # UK, Australia, Germany
    r"|0[1-9][0-9]{1,4} ?[ /-] ?[0-9]{3,8}(?:[ -][0-9]{2,5}){0,3}"  # UK, Germany, Netherlands, Korea, Japan
    r"|0[1-9]-[0-9]{3,8}(?:[ -][0-9]{2,4}){0,3}"  # Japan, Netherlands
    rf"|0[1-9] [0-9]{{4}}{_S}?[0-9]{{3,4}}|06 [0-9]{{8}}"  # Italy, Australia, Netherlands
    rf"|0[1-9][0-9]{{1,2}}(?:{_S}[0-9]{{2,3}}){{3,4}}"  # Switzerland, Belgium, Turkey, Ukraine, Sweden
    rf"|\([1-9][0-9]\)[ ]?9?[0-9]{{4}}[ -][0-9]{{4}}"  # Brazil, Mexico
    rf"|[1-9][0-9] 9[0-9]{{4}}-[0-9]{{4}}"
    r"|8[ -]?\([0-9]{3,5}\)[ -]?[0-9]{1,3}[ -][0-9]{2}[ -]?[0-9]{2}"  # Russia
    r"|8[ -][0-9]{3}[ -][0-9]{3}[ -][0-9]{2}[ -]?[0-9]{2}"
    rf"|1[3-9][0-9][ -][0-9]{{4}}[ -][0-9]{{4}}"  # China
    rf"|[6789][0-9]{{2}} [0-9]{{2}} [0-9]{{2}} [0-9]{{2}}"  # Spain
)
_LIKELY = re.compile(  # notations that other numbers share; a word must announce the phone number
    rf"0[1-9][0-9]{{7,10}}|1[3-9][0-9]{{9}}|[6-9][0-9]{{4}}[ -]?[0-9]{{5}}|[78][0-9]{{10}}"
    rf"|[1-9][0-9]{{2}}{_S}?[0-9]{{3}}{_S}?[0-9]{{3,4}}|[1-9][0-9]{_S}?[0-9]{{3}}{_S}?[0-9]{{2}}{_S}?[0-9]{{2}}"
    rf"|[1-9][0-9](?:{_S}[0-9]{{2}}){{3}}|3[0-9]{{2}}[ .-]?[0-9]{{6,7}}"
    rf"|[1-9][0-9]{{3}}{_S}[0-9]{{4}}|[1-9][0-9]{{1,2}}{_S}[0-9]{{3,4}}{_S}[0-9]{{4}}|[6-9][0-9]{{2}}{_S}[0-9]{{3}}{_S}[0-9]{{4}}"
    rf"|[1-9][0-9]{{2}}{_S}[0-9]{{2}}{_S}[0-9]{{3}}|[2-9][0-9]{{7}}"
)
_AMERICAN = re.compile(r"(?:1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}")


def find_phones(text: str) -> Iterator[Span]:
    for match in _INTERNATIONAL.finditer(text):
        if _is_possible_number(match[0], has_phone_word(get_preceding_text(text, match.start()))):
            yield match.span()
    for match in _CANDIDATE.finditer(text):
        if _PAIR.search(match[0]) and (span := _find_national_number(text, *match.span())):
            yield span


def _find_national_number(text: str, start: int, end: int) -> Span | None:
    """Return the span of a national phone number, without an unclosed parenthesis or another number after it."""
    words = get_preceding_text(text, start)
    if has_other_label(words) or _DATE.match(text, start, end):
        return None
    # Three levels of evidence: notations that only phone numbers have, notations that a word must announce ("call",
    # "tel"), and American numbers, whose area codes can be verified.
    announced = has_phone_word(words, text[end : end + 16])
    # The candidate may include a number that follows. Groups are cut from its end until the rest is a phone number.
    while end > start:
        candidate = text[start:end].rstrip(" ()./-")
        if _SURE.fullmatch(candidate) and 9 <= sum(map(str.isdigit, candidate)) <= 12:
            return start, start + len(candidate)
        if announced and _LIKELY.fullmatch(candidate):
            return start, start + len(candidate)
        if _AMERICAN.fullmatch(candidate) and (_is_us_number(candidate) or re.match(r"\D*(?:1\D)?\D*555\D", candidate)):
            # Area code 555 does not exist, but invented people in test data have it.
            return start, start + len(candidate)
        end = text.rfind(" ", start, end)
        if _has_equal_group(text, start, end):
            return None
    return None


def _has_equal_group(text: str, start: int, end: int) -> bool:
    """Return whether a group as long as the last one follows; such a row of groups is not a phone number."""
    if end <= start:
        return False
    groups, follows = re.findall("[0-9]+", text[start:end]), _NEXT_GROUP.match(text, end)
    return bool(groups and follows and len(groups[-1]) == len(follows[1]))


def _is_possible_number(written: str, announced: bool) -> bool:
    """Return whether an international number can exist."""
    import phonenumbers

    # "+" or a word such as "call" makes a phone number likely, so the right length is enough. After a bare 00 the
    # number must be in use in that country.
    number = written if written.startswith("+") else f"+{written[2:]}"
    try:
        parsed = phonenumbers.parse(number.replace("(0)", ""))
    except phonenumbers.NumberParseException:
        return False
    if (written.startswith("+") or announced) and len(set(str(parsed.national_number))) > 2:
        return bool(phonenumbers.is_possible_number(parsed))
    return bool(phonenumbers.is_valid_number(parsed))


def _is_us_number(number: str) -> bool:
    """Return whether the number is valid in North America."""
    import phonenumbers

    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(number, "US")))
    except phonenumbers.NumberParseException:
        return False


# Chinese and Japanese put no space around numbers, so only digits, Latin letters and number punctuation extend one.
_LEFT = r"(?<![0-9A-Za-z_])(?<![0-9][.,-])"
_RIGHT = r"(?![0-9A-Za-z_])(?![.,-][0-9])"

_GROUPS = re.compile(  # letters may directly precede it: 'Visa4111…'
    r"(?<![0-9])(?<![0-9][.,-])"
    rf"(?:[0-9]{{12,19}}|[0-9]{{4,8}}([ .-])[0-9]{{4,}}(?:\1[0-9]+){{0,6}}){_RIGHT}"
)
_CARD_SHAPE = re.compile(  # other numbers use these separators too, so the groups must be those of a card
    r"(?<![0-9])(?:[0-9]{4}([/_]|[ \t]*\r?\n[ \t]*)(?:[0-9]{4}\1){2}[0-9]{4}"
    r"|[0-9]{4}([/_]|[ \t]*\r?\n[ \t]*)[0-9]{6}\2[0-9]{5})(?![0-9])"
)
_ISSUER = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|220[0-4][0-9]{12,15}"  # Mir
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-59]|[689][0-9])(?:[0-9]{11}|[0-9]{13})"  # Diners Club
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"  # JCB
    # Discover, UnionPay, RuPay, InstaPayment
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|62[0-9]{2}|81[0-9]{2}|60[0-9]{2}|63[67][0-9])[0-9]{12,15}"
    r"|(?:5018|5019|5020|5038|5893|6304|6390|6759|676[1-3])[0-9]{8,15}"  # Maestro, Dankort
    r"|(?:50[0-9]{2}|5[6-8][0-9]{2}|6[0-9]{3}|9792|9860|8600)[0-9]{12}|67[0-9]{16,17}"  # Verve, Elo, Troy, Humo, Uzcard
)
_IBAN = re.compile(rf"{_LEFT}[A-Z]{{2}}[0-9]{{2}}(?:[ -]?[A-Z0-9]){{11,29}}", re.IGNORECASE)
_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 "
    "EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 "
    "KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 "
    "PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 "
    "UA29 VA22 VG24 XK20 YE30"
)
IBAN_LENGTHS = {one[:2]: int(one[2:]) for one in _LENGTHS.split()}
"""The length of an IBAN by country, as in the IBAN registry."""
_SSN = re.compile(rf"{_LEFT}[0-9]{{3}}([- ]?)[0-9]{{2}}\1[0-9]{{4}}{_RIGHT}")
_SSN_WORD = re.compile(r"\b(?:ssn|social security)\b[^\d\n]{0,24}$", re.IGNORECASE)


def find_cards(text: str) -> Iterator[Span]:
    """Yield card numbers, whatever word precedes them: the issuer's prefix and the check digit decide."""
    for match in _GROUPS.finditer(text):
        groups = [
            (match.start() + group.start(), match.start() + group.end()) for group in re.finditer("[0-9]+", match[0])
        ]
        yield from _find_card_groups(text, groups)
    for match in _CARD_SHAPE.finditer(text):
        if _is_card(match[0], [4, 4]):
            yield match.span()


def _find_card_groups(text: str, groups: list[Span]) -> Iterator[Span]:
    """Yield the runs of digit groups that are cards."""
    # Other numbers may precede or follow a card: from each group, the longest run that validates is taken.
    first = 0
    while first < len(groups):
        for last in range(len(groups), first, -1):
            span = groups[first][0], groups[last - 1][1]
            if _is_card(text[span[0] : span[1]], [end - start for start, end in groups[first:last]]):
                yield span
                first = last - 1
                break
        first += 1


def _is_card(number: str, lengths: list[int]) -> bool:
    from stdnum import luhn

    if len(lengths) > 1 and min(lengths[:-1]) < 4:
        return False
    digits = re.sub("[^0-9]", "", number)
    return bool(_ISSUER.fullmatch(digits)) and luhn.is_valid(digits)


def find_ibans(text: str) -> Iterator[Span]:
    for match in _IBAN.finditer(text):
        length = IBAN_LENGTHS.get(match[0][:2].upper(), 0)
        places = [place.start() for place in re.finditer("[A-Z0-9]", match[0], re.IGNORECASE)]
        if not 0 < length <= len(places):
            continue
        end = match.start() + places[length - 1] + 1
        if not re.match("[0-9A-Za-z_]", text[end : end + 1]) and _has_valid_checksum(text[match.start() : end]):
            yield match.start(), end


def _has_valid_checksum(iban: str) -> bool:
    number = re.sub("[ -]", "", iban).upper()
    return int("".join(str(int(sign, 36)) for sign in number[4:] + number[:4])) % 97 == 1


def find_ssns(text: str) -> Iterator[Span]:
    from stdnum.us import ssn

    for match in _SSN.finditer(text):
        words = get_preceding_text(text, match.start())
        if "-" not in match[0] and not _SSN_WORD.search(words):
            continue
        if ssn.is_valid(match[0].replace(" ", "-")) and not has_other_label(words):
            yield match.span()
