"""Pairs of failure texts, labelled by hand: whether both have the same cause. The second half was not tuned on."""

from __future__ import annotations

SAME_TUNED = (
    ("session=kqzvbxw expired", "session=plmrtqz expired"),
    ("no cursor 'V1StGXR8Z5jd' is open", "no cursor 'pQ7sKx20Lm3v' is open"),
    ("Error code: 401 - {'request_id': 'req_011CSH'}", "Error code: 401 - {'request_id': 'req_099ZZK'}"),
    (
        "401 Client Error: Unauthorized for url: http://127.0.0.1:41231/a",
        "401 Client Error: Unauthorized for url: http://127.0.0.1:50112/a",
    ),
    ("took 503 ms, allowed 200 ms", "took 401 ms, allowed 200 ms"),
    ("row 404 of 9000 has no total", "row 503 of 9000 has no total"),
    ("trace-id: aGVsbG8gd29ybGQ= was dropped", "trace-id: Zm9vYmFyYmF6cXV4 was dropped"),
    ('File "/tmp/tmpx1/a.py", line 12, in run', 'File "/tmp/tmpx2/a.py", line 14, in run'),
    ("<Task object at 0x7f2aa81f> was never awaited", "<Task object at 0x7f9bb000> was never awaited"),
    ("Deadline exceeded after 30.02 seconds", "Deadline exceeded after 29.97 seconds"),
    ("worker 3 died (pid 4121)", "worker 1 died (pid 977)"),
    ("The user said 'my order is late' and got no reply", "The user said 'where is it now' and got no reply"),
    ("could not lock job 01HF8Z3K9Q2V", "could not lock job 01HG1A7B2C3D"),
    ("retry in 12s (attempt 2)", "retry in 48s (attempt 4)"),
    ("nonce: xkwqpv is already used", "nonce: brtzlq is already used"),
)
APART_TUNED = (
    (
        "HTTPStatusError: Client error '401 Unauthorized' for url 'http://a/b'",
        "HTTPStatusError: Server error '503 Service Unavailable' for url 'http://a/b'",
    ),
    ("401 Client Error: Unauthorized for url: http://a", "503 Server Error: Service Unavailable for url: http://a"),
    ("Error code: 401 - {'error': 'x y'}", "Error code: 503 - {'error': 'x y'}"),
    ("the upstream returned 401", "the upstream returned 503"),
    ("request failed (429)", "request failed (500)"),
    ("got 404 from /orders", "got 500 from /orders"),
    ("openai.AuthenticationError: 401", "openai.InternalServerError: 503"),
    ("KeyError: 'total'", "KeyError: 'currency'"),
    ("No module named 'requests'", "No module named 'httpx'"),
    ('column "price" does not exist', 'column "amount" does not exist'),
    ("[Errno 2] No such file or directory: 'out.json'", "[Errno 13] Permission denied: 'out.json'"),
    ("killed by signal 9", "killed by signal 11"),
    ("token expired", "token missing"),
    ("connection to redis refused", "connection to postgres refused"),
    (
        "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        "TypeError: unsupported operand type(s) for +: 'float' and 'str'",
    ),
)
SAME_HELD_OUT = (
    ("request_id=HxYtPqLm was not found in the log", "request_id=aQwErTzU was not found in the log"),
    ("upload 9fK2_xP0-aaZ failed", "upload Qm31_bN7-ccX failed"),
    (
        "RateLimitError: Error code: 429 - {'id': 'chatcmpl-8aXk2'}",
        "RateLimitError: Error code: 429 - {'id': 'chatcmpl-9bYl3'}",
    ),
    (
        "503 Server Error: Service Unavailable for url: http://localhost:8011/v1",
        "503 Server Error: Service Unavailable for url: http://localhost:9922/v1",
    ),
    ("read 500 of 2000 bytes", "read 404 of 2000 bytes"),
    ("order 401 was shipped twice", "order 512 was shipped twice"),
    ("session: wvjkzt has no owner", "session: dfghpl has no owner"),
    ("Traceback: /home/u1/app/main.py:88", "Traceback: /home/u2/app/main.py:91"),
    ("object Future at 0x7fd01a is pending", "object Future at 0x1001ab is pending"),
    ("timed out after 5.0s", "timed out after 4.9s"),
    ("thread 140211 is stuck", "thread 139877 is stuck"),
    ("expected 'a green apple' here", "expected 'two red pears' here"),
    ("lost lease 6f1c9c1e-7a54-4d7a-9d3e-111111111111", "lost lease 0a2b3c4d-7a54-4d7a-9d3e-222222222222"),
    ("backoff 250 ms, try 3", "backoff 500 ms, try 4"),
    ("csrf token: Zk3JqP0s mismatch", "csrf token: Mw8RtY2d mismatch"),
)
APART_HELD_OUT = (
    (
        "aiohttp.ClientResponseError: 401, message='Unauthorized'",
        "aiohttp.ClientResponseError: 503, message='Service Unavailable'",
    ),
    (
        "urllib.error.HTTPError: HTTP Error 404: Not Found",
        "urllib.error.HTTPError: HTTP Error 500: Internal Server Error",
    ),
    ("Request failed with status code 401", "Request failed with status code 503"),
    ("server responded with 502 Bad Gateway", "server responded with 504 Gateway Timeout"),
    ("BadRequestError: 400 invalid model", "PermissionDeniedError: 403 invalid model"),
    ("unexpected response <Response [401]>", "unexpected response <Response [503]>"),
    ("tool search answered 429", "tool search answered 503"),
    ("KeyError: 'customer_id'", "KeyError: 'order_id'"),
    ("ImportError: cannot import name 'Agent' from 'app'", "ImportError: cannot import name 'Tool' from 'app'"),
    ('relation "users" already exists', 'relation "users" does not exist'),
    ("[Errno 111] Connection refused", "[Errno 104] Connection reset by peer"),
    ("process exited with code 137", "process exited with code 143"),
    ("session closed", "session expired"),
    ("host api.openai.com did not answer", "host api.anthropic.com did not answer"),
    ("AttributeError: 'list' object has no attribute 'keys'", "AttributeError: 'str' object has no attribute 'keys'"),
)
