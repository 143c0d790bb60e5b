"""Serve Byheart to programs over HTTP and JSON: `byheart serve`.

app.py          the app and its layers
connection.py   how many clients may connect, and how long each may keep the server waiting
journal.py      request ids, the access log, and errors that no other layer caught
guard.py        access control: Host, Origin, and the API key that becomes a grant
limits.py       the size and speed of request bodies, and the request rate
routes.py       the table of paths and their verbs
asking.py       from path, query string and body to a verb's parameters
json_shape.py   the values and nesting levels of JSON, counted before it is parsed
endpoints.py    carries out a request; work.py runs it in a thread
exports.py      memories as a file for `byheart import`
files.py        the only folder that callers may write to, separate for each space and session
problems.py     errors as a status and application/problem+json
health.py  metrics.py  openapi.py  examples.py  docs_page.py
                the server's answers about itself
serving.py      the socket, the log and the threads of a server
servers.py      accepting, signals and an orderly shutdown; alone or as one of several processes
worker_pool.py  the other processes: started, given connections, replaced when they crash
shared_counts.py
                the metrics of all processes
"""

from byheart.interfaces.rest.app import create_app
from byheart.interfaces.rest.serving import Listening, serve
from byheart.interfaces.rest.work import Work

__all__ = ["Listening", "Work", "create_app", "serve"]
