"""The words before a number that say what kind of number it is."""

from __future__ import annotations

import re

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
    """Whether the nearest word that names a number names a technical or shop number, such as an order number."""
    return _find_last(_LABELS, words) > _find_last(_PHONE_WORDS, words)


def has_phone_word(words: str, after: str = "") -> bool:
    """Whether the words before or after a number announce a phone number."""
    match = _PHONE_WORDS.search(words) or _NUMBER_WORDS.search(words) or _PHONE_WORDS.search(after)
    return bool(match) and not has_other_label(words)


def _find_last(shape: re.Pattern[str], words: str) -> int:
    return max((match.start() for match in shape.finditer(words)), default=-1)
