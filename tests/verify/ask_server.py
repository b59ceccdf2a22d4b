"""Runs on the host: sends one request, prints status and body as JSON. Arguments: URL, and a JSON body or ``null``."""

import json
import sys
import urllib.error
import urllib.request

url, body = sys.argv[1:]
data = None if body == "null" else body.encode()
request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        status, text = answer.status, answer.read().decode()
except urllib.error.HTTPError as error:
    status, text = error.code, error.read().decode()
except OSError as error:
    status, text = 0, str(error)
try:
    content = json.loads(text)
except ValueError:
    content = text
print(json.dumps({"status": status, "body": content}))
