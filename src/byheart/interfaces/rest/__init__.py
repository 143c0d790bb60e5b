"""The door for programs: HTTP and JSON, `byheart serve`.

app.py         the layers of the app, from the outside in
journal.py     request ids, the access line, and what nobody else caught
guard.py       who may come in: Host, Origin, and the token that becomes a grant
limits.py      how much and how often: bodies and rates
routes.py      which verb stands at which path
asking.py      from path, query string and body to a verb's parameters
endpoints.py   a request carried out; work.py in which thread
files.py       the one folder that may be written to, apart for each space and session
problems.py    what goes wrong, as a status and application/problem+json
health.py  metrics.py  openapi.py  docs_page.py
               what the server says about itself
serving.py     the socket, the signals, and an orderly end
"""

from byheart.interfaces.rest.app import create_app
from byheart.interfaces.rest.serving import Listening, serve
from byheart.interfaces.rest.work import Work

__all__ = ["Listening", "Work", "create_app", "serve"]
