"""Mails the figures of a quarter to a customer, in two versions, which differ when a reply is lost."""

import json
import os
import sys
import urllib.request

MAIL = {"ref": "acme-q3", "to": "ada@example.com", "text": "ACME's revenue last quarter: $8,213.60 million."}
MAILS = os.environ["MAIL_URL"] + "/mails"


def send() -> None:
    """Sends the mail to the mail service. If this fails, nobody knows whether it was sent."""
    urllib.request.urlopen(MAILS, json.dumps(MAIL).encode(), timeout=5).close()  # noqa: S310  # an address that Holdfast gave


def was_sent() -> bool:
    """Ask the mail service whether it has the mail."""
    with urllib.request.urlopen(f"{MAILS}/{MAIL['ref']}", timeout=5) as reply:  # noqa: S310
        return bool(json.load(reply)["state"] == "sent")


def good() -> None:
    """Checks before it sends again."""
    try:
        send()
    except OSError:
        if not was_sent():
            send()


def careless() -> None:
    """Treats a lost reply as a lost mail."""
    try:
        send()
    except OSError:
        send()


{"good": good, "careless": careless}[sys.argv[1]]()
print("The figures are on their way to ada@example.com.")
