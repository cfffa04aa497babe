"""A page of another site on this machine, which tries to get at a page that is not its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.threads import Serving


@contextmanager
def other_site(address: str) -> Iterator[str]:
    """
    Serve a page whose script tries all ways to an address, and says in `window.told` how that went.
    """
    site = _Site(("127.0.0.1", 0), _Another)
    site.script = _ATTEMPTS.replace("ADDRESS", address)
    with Serving(site):
        yield f"http://localhost:{site.server_address[1]}/"


class _Site(ThreadingHTTPServer):
    daemon_threads = True
    script = ""


class _Another(BaseHTTPRequestHandler):
    server: _Site

    def do_GET(self) -> None:
        body = f"<!DOCTYPE html><body><script>{self.server.script}</script>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


_ATTEMPTS = """
const told = {};
const loads = tag => new Promise(done => {
  const element = document.createElement(tag);
  element.onload = () => done(element);
  element.onerror = () => done(null);
  element.src = 'ADDRESS' + (tag === 'script' ? 'state' : '');
  document.body.append(element);
});
(async () => {
  told.fetch = await fetch('ADDRESSstate').then(answer => answer.text(), () => 'refused');
  told.opaque = await fetch('ADDRESSstate', {mode: 'no-cors'})
    .then(answer => answer.type, () => 'opaque');
  told.script = await loads('script') ? 'run' : 'refused';
  const frame = await loads('iframe');
  try { told.frame = frame.contentDocument.body.innerText; } catch { told.frame = 'unreadable'; }
  if (told.frame === undefined || frame.contentDocument === null) told.frame = 'unreadable';
  window.told = JSON.stringify(told);
})();
"""
