"""The database and the mail server, as both agents use them."""

import json
import os
import urllib.request

import psycopg


def connect():
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def mail(to, text):
    """Sends a mail to the server; a status other than 2xx raises."""
    body = json.dumps({"to": to, "text": text}).encode()
    request = urllib.request.Request(os.environ["SMTP_URL"] + "/api/messages", body)
    urllib.request.urlopen(request, timeout=10).close()
