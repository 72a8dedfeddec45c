"""Provenance in commit messages: which run, artifact and match a golden value comes from.

::

    Golden-Run: github:34695381473 attempt=2 https://github.com/O/R/actions/runs/34695381473
    Golden-Artifact: goldens/moe/a/golden_values_dev_dgx_h100.json sha256:5f70…
    Golden-Match: goldens/moe/a/golden_values_dev_dgx_h100.json sync:2026-04-28 identical
    Golden-Rev: sync:2026-04-28 9a1c…

Words that hold blanks, quotes or control characters are quoted as git quotes paths. A squash keeps the lines
in the middle of its message, so they count wherever they stand.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from goldenctl.errors import RepoError
from goldenctl.git import Repo
from goldenctl.model import Action, FileResult, MatchLevel, RefreshResult, Run

_LINE = re.compile(r"^Golden-(Run|Artifact|Match|Rev): (.+)$", re.MULTILINE)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^ "]+')
_PLAIN = re.compile(r"[^\s\"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_LONG_ID = re.compile(r"(?<=[0-9a-f]{10})[0-9a-f]{30,54}$")
_REPOSITORY = ("git", "refresh", "archive")
"""Providers that are no CI: content the repository has had before."""
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_UNESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", '"': b'"', "\\": b"\\"}


@dataclass(frozen=True, slots=True)
class RunTrailer:
    """``Golden-Run:``."""

    provider: str
    id: str
    attempt: int = 1
    url: str = ""


@dataclass(frozen=True, slots=True)
class ArtifactTrailer:
    """``Golden-Artifact:``."""

    path: str
    sha256: str
    """Hex digest of the artifact's golden member, as delivered."""


@dataclass(frozen=True, slots=True)
class MatchTrailer:
    """``Golden-Match:``."""

    path: str
    rev: str
    """The revision as the user named it."""
    level: MatchLevel
    commit: str = ""
    """What the name stood for then, from ``Golden-Rev:``; empty when not said."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What the trailers of one commit message say; empty tuples when it has none."""

    runs: tuple[RunTrailer, ...] = ()
    artifacts: tuple[ArtifactTrailer, ...] = ()
    matches: tuple[MatchTrailer, ...] = ()


def message(result: RefreshResult) -> str:
    """The commit message of a refresh: one subject, the platforms, the trailers."""
    files = _written(result)
    runs = list(dict.fromkeys(_run_words(run) for run in result.runs))
    noun = "golden file" if len(files) == 1 else "golden files"
    verb = "Restore" if result.runs and all(run.provider in _REPOSITORY for run in result.runs) else "Refresh"
    subject = f"{verb} {len(files)} {noun} from {', '.join(_LONG_ID.sub('', words[0]) for words in runs)}"
    platforms = Counter(f.key.platform or "no platform" for f in files)
    body = ", ".join(f"{n} {platform}" for platform, n in sorted(platforms.items()))
    trailers = [("Run", words) for words in runs]
    trailers += [("Artifact", (f.path, f"sha256:{f.sha256}")) for f in files if f.sha256]
    trailers += [("Match", (f.path, m.rev, str(m.level))) for f in files for m in f.matches]
    pinned = {(m.rev, m.commit): None for f in files for m in f.matches if m.commit}
    trailers += [("Rev", words) for words in pinned]
    lines = [f"Golden-{name}: {' '.join(map(_quote, words))}" for name, words in trailers]
    return "\n".join([_one_line(subject), "", body, "", *lines]) + "\n"


def _written(result: RefreshResult) -> list[FileResult]:
    return [f for f in result.files if f.action is Action.WRITTEN]


def _run_words(run: Run) -> tuple[str, ...]:
    words = [f"{run.provider}:{run.id}"]
    if run.attempt != 1:
        words.append(f"attempt={run.attempt}")
    if run.url:
        words.append(run.url)
    return tuple(words)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).encode("utf-8", "replace").decode()


def parse(message: str) -> Provenance:
    """What the ``Golden-…`` lines of a commit message say; lines of another form are passed over."""
    runs: list[RunTrailer] = []
    artifacts: list[ArtifactTrailer] = []
    matches: list[MatchTrailer] = []
    revs: dict[str, str] = {}
    for name, rest in _LINE.findall(message):
        words = [_unquote(word) for word in _WORD.findall(rest.rstrip())]
        if name == "Run" and words and ":" in words[0]:
            runs.append(_run(words))
        elif name == "Artifact" and len(words) == 2 and words[1].startswith("sha256:"):
            artifacts.append(ArtifactTrailer(words[0], words[1].removeprefix("sha256:")))
        elif name == "Match" and len(words) == 3 and words[2] in list(MatchLevel):
            matches.append(MatchTrailer(words[0], words[1], MatchLevel(words[2])))
        elif name == "Rev" and len(words) == 2:
            revs[words[0]] = words[1]
    pinned = tuple(MatchTrailer(m.path, m.rev, m.level, revs.get(m.rev, "")) for m in matches)
    return Provenance(tuple(runs), tuple(artifacts), pinned)


def _run(words: list[str]) -> RunTrailer:
    provider, _, identity = words[0].partition(":")
    attempt = next((w.removeprefix("attempt=") for w in words[1:] if w.startswith("attempt=")), "1")
    url = next((w for w in words[1:] if "://" in w), "")
    return RunTrailer(provider, identity, int(attempt) if attempt.isdecimal() and len(attempt) < 10 else 1, url)


def _quote(word: str) -> str:
    """``word`` as it is, or quoted as git quotes paths."""
    if _PLAIN.fullmatch(word):
        return word
    return '"' + "".join(c if _keeps(c) else _escape(c) for c in word) + '"'


def _keeps(char: str) -> bool:
    return char == " " or bool(_PLAIN.fullmatch(char))


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


def _unquote(word: str) -> str:
    if not word.startswith('"'):
        return word
    out = bytearray()
    for escape, plain in re.findall(r"\\([0-7]{3}|.)|([^\\]+)", word[1:-1]):
        if plain:
            out += plain.encode("utf-8")
        else:
            out += _UNESCAPES[escape] if escape in _UNESCAPES else bytes([int(escape, 8) & 255]) if escape.isdecimal() else b""
    return out.decode("utf-8", "surrogateescape")


def commit(repo: Repo, result: RefreshResult) -> str:
    """One commit of exactly the written files; what else is staged stays staged and out of it.

    Returns
    -------
    str
        The new commit's id.

    Raises
    ------
    RepoError
        Nothing was written, a hook refused, or git could not commit; the files stay written.
    """
    paths = [f.path for f in _written(result)]
    if not paths:
        raise RepoError("no file was written: there is nothing to commit", place=str(repo.top))
    listed = _listing(paths)
    known = set(repo.run("--literal-pathspecs", "ls-files", "-z", "--", *paths).split(b"\0"))
    new = [path for path in paths if os.fsencode(path) not in known]
    from_stdin = ("--pathspec-from-file=-", "--pathspec-file-nul")
    if new:
        repo.run("--literal-pathspecs", "add", "--force", "--intent-to-add", *from_stdin, stdin=_listing(new))
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "message"
        text.write_text(message(result), "utf-8")
        options = ("--only", "--quiet", "--cleanup=whitespace", f"--file={text}")
        try:
            repo.run("--literal-pathspecs", "commit", *options, *from_stdin, stdin=listed)
        except RepoError as exc:
            if new:
                repo.run("--literal-pathspecs", "reset", "--quiet", *from_stdin, stdin=_listing(new), check=False)
            raise RepoError(
                f"the files are written, but not committed: {exc.fact}", place=exc.place, hint="git status"
            ) from exc
    return repo.commit_of("HEAD")


def _listing(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
