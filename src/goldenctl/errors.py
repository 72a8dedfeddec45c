"""The error tree and the exit codes; everything a user can cause ends here.

GoldenctlError
├── UsageError          wrong use or wrong settings                          exit 2
│   └── ConfigError     a settings file that cannot be used                  exit 2
├── SourceError         a source could not be reached, read or trusted       exit 3
│   ├── AuthError       token missing, refused or without the needed scope   exit 3
│   ├── NotFoundError   no such run, job, artifact or bucket, or no access   exit 3
│   ├── ExpiredError    the artifact existed and is gone                     exit 3
│   ├── RateLimitError  the wait would be longer than allowed                exit 3
│   └── CorruptError    bytes that are not what was promised                 exit 3
├── RepoError           the repository could not be read or written          exit 4
└── CatalogError        the catalog could not be read or written             exit 4
    └── CatalogBusyError     another process holds the catalog                    exit 4

Foreign errors (requests, OSError, duckdb, …) are mapped to one of these where they enter, with
``raise … from exc``.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process says to its caller. The highest of 3 and 4 beats 1."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    SOURCE = 3
    STATE = 4
    INTERRUPTED = 130


class GoldenctlError(Exception):
    """Base of every error a user can cause.

    Parameters
    ----------
    fact
        What is wrong, one sentence.
    place
        Where: a path, a URL, a setting. Empty when the fact names it already.
    hint
        The next command or step; the class has one for errors that come without their own.
    """

    exit_code = ExitCode.FINDINGS
    usual_hint = ""

    def __init__(self, fact: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.place = place
        self.hint = hint or self.usual_hint

    def __str__(self) -> str:
        """Fact, place and hint on one line each, empty ones left out."""
        head = f"{self.place}: {self.fact}" if self.place else self.fact
        return f"{head}\n  next: {self.hint}" if self.hint else head


class UsageError(GoldenctlError):
    """Wrong use: an option, an argument or a combination of them."""

    exit_code = ExitCode.USAGE
    usual_hint = "see --help of the command"


class ConfigError(UsageError):
    """A settings file that cannot be read or holds something unknown."""

    usual_hint = "correct the file and run the command again"


class SourceError(GoldenctlError):
    """A source could not be reached, read or trusted."""

    exit_code = ExitCode.SOURCE
    usual_hint = "run the command again; if that changes nothing, take another run"


class AuthError(SourceError):
    """A token is missing, refused or lacks the needed scope."""


class NotFoundError(SourceError):
    """No such run, job, artifact or bucket, or no access to it."""


class ExpiredError(SourceError):
    """The artifact existed and its retention time is over."""


class RateLimitError(SourceError):
    """The service asks for a longer wait than ``--max-wait`` allows."""


class CorruptError(SourceError):
    """Bytes that are not what was promised: digest, length, zip structure."""


class RepoError(GoldenctlError):
    """The repository or the work tree could not be read or written."""

    exit_code = ExitCode.STATE
    usual_hint = "see that it is there and that you may read and write it (ls -l), then run the command again"


class CatalogError(GoldenctlError):
    """The catalog could not be read or written."""

    exit_code = ExitCode.STATE
    usual_hint = "see that you may read and write its folder; moved away, goldenctl catalog build makes it again"


class CatalogBusyError(CatalogError):
    """Another process held the catalog longer than the bounded wait."""
