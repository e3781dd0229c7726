"""A registry that gives out GUIDs, before one that does not. Serializers that write the id into a header
write the GUID, which Confluent's registry has since 8.0 and Apicurio has not."""

import http.server
import json
import threading
import urllib.error
import urllib.request
import uuid


class Front(http.server.BaseHTTPRequestHandler):
    behind = ""
    guids = {}  # guid -> id

    def log_message(self, *_):
        pass

    def answer(self, body=None):
        path = self.path
        if path.startswith("/schemas/guids/"):
            known = self.guids.get(path.split("/")[3].split("?")[0])
            path = f"/schemas/ids/{known}"
        request = urllib.request.Request(self.behind + path, data=body, method=self.command)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request) as got:
                status, text = got.status, got.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if isinstance(document, dict) and isinstance(document.get("id"), int):
            guid = str(uuid.uuid5(uuid.NAMESPACE_OID, str(document["id"])))
            self.guids[guid] = document["id"]
            text = json.dumps({**document, "guid": guid}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))


def serve(behind):
    Front.behind = behind
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
