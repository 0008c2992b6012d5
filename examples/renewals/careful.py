"""Sends renewal mails, carefully: it stores its intent in the database first, and does nothing twice."""

import json
import os
import sys
import time
import urllib.error
import urllib.request

import psycopg

TRIES = 4


def connect() -> psycopg.Connection:
    for n in range(TRIES):
        try:
            return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, connect_timeout=5)
        except psycopg.OperationalError:
            if n == TRIES - 1:
                raise
            time.sleep(0.2)
    raise AssertionError("not reached")


def run(*statements: tuple[str, tuple]) -> list[tuple]:
    """Runs one transaction, again if its connection is lost: all transactions here can be repeated safely."""
    for n in range(TRIES):
        try:
            with connect() as db, db.transaction():
                found: list[tuple] = []
                for sql, values in statements:
                    cursor = db.execute(sql, values)
                    found = cursor.fetchall() if cursor.description else []
                return found
        except psycopg.Error:
            if n == TRIES - 1:
                raise
            time.sleep(0.2)
    return []


def send(email: str, key: str) -> str:
    """Returns sent, refused or unknown: after a lost reply nobody knows whether the mail was sent."""
    body = json.dumps({"to": email, "subject": "Your renewal", "text": "Your renewal is due."}).encode()
    url = os.environ["SMTP_URL"] + "/api/messages"
    for _ in range(TRIES):
        request = urllib.request.Request(url, body, {"content-type": "application/json", "idempotency-key": key})
        try:
            with urllib.request.urlopen(request, timeout=5):
                return "sent"
        except urllib.error.HTTPError as refused:
            if refused.code != 429:
                return "refused"
            time.sleep(min(float(refused.headers.get("retry-after") or 0.2), 1.0))
        except OSError:
            return "unknown"
    return "refused"


def main() -> None:
    sys.stdin.read()
    due = run(("SELECT id, email FROM customers WHERE due AND NOT renewed ORDER BY id", ()))
    unsure = []
    for id, email in due:
        intend = "INSERT INTO renewals (customer_id, status) VALUES (%s, 'sending') ON CONFLICT DO NOTHING"
        run((intend, (id,)))
        status = send(email, f"renewal-{id}")
        run(
            ("UPDATE renewals SET status = %s WHERE customer_id = %s", (status, id)),
            ("UPDATE customers SET renewed = true WHERE id = %s", (id,)),
        )
        if status != "sent":
            unsure.append(f"{email} ({status})")
    summary = f"{len(due)} renewal mail(s) handled."
    print(f"{summary} Not confirmed: {', '.join(unsure)}." if unsure else summary)


main()
