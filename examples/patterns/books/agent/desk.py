"""What both agents use: the database and the mail server."""

import json
import os
import urllib.request

import psycopg


def connect():
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def mail(to, text):
    """Hands a mail to the server; an answer other than 2xx raises."""
    body = json.dumps({"to": to, "text": text}).encode()
    request = urllib.request.Request(os.environ["SMTP_URL"] + "/api/messages", body)
    urllib.request.urlopen(request, timeout=10).close()
