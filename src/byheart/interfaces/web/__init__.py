"""Serve the web page for people at `/` of `byheart serve`.

static/            the page: a shell, modules and styles; only login/ needs no login
page_files.py      the files of the page with their types, and the digest in their addresses
routes.py          the page's addresses, login and logout
live_changes.py    the stream of changes, one poller for each space
store_checks.py    what the doctor finds, remembered for some minutes
running_server.py  tell `byheart open` where the server of a store listens
"""

from byheart.interfaces.web.routes import page_routes
from byheart.interfaces.web.running_server import Announcement, find_server

__all__ = ["Announcement", "find_server", "page_routes"]
