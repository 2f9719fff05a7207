"""The page on which photographs are mended: a small web server for this machine alone, and what the browser gets from it.

Nothing here prints, and nothing leaves the machine. `server` answers requests, `session` holds the photograph, `jobs` does
the work beside them, `tasks` calls the library.
"""

from pointillist.app.server import serve

__all__ = ["serve"]
