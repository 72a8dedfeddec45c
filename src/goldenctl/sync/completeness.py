"""What a sync may have forgotten: siblings left behind, settings of a case changed without its golden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from goldenctl import testconfig
from goldenctl.config import Settings
from goldenctl.git import Repo
from goldenctl.goldenfile import DocumentError, read
from goldenctl.model import GoldenKey
from goldenctl.sides import key_of
from goldenctl.sync.history import blobs_of
from goldenctl.sync.model import AuditedFile, Class, Completeness, Landing, Left


def check(repo: Repo, settings: Settings, landing: Landing, files: Sequence[AuditedFile]) -> Completeness:
    """Siblings left behind, and goldens out of step with the settings of their case."""
    after = blobs_of(repo, landing.sha, settings.root)
    changed = {f.path: f.key for f in files if f.key and f.changed and f.result and f.kind is not Class.FORMAT_ONLY}
    keys = {path: key for path in after if (key := key_of(path, settings))}
    configs = _Configs(repo, blobs_of(repo, landing.downstream, settings.root), after)
    touched = {f.path: f for f in files if f.changed}
    return Completeness(
        tuple(_left(keys, changed)),
        tuple(p for p in sorted(keys) if p not in touched and configs.changed(p)),
        tuple(p for p, f in sorted(touched.items()) if configs.known(p) and not configs.changed(p) and _regridded(repo, f)),
    )


def _left(keys: Mapping[str, GoldenKey], changed: Mapping[str, GoldenKey]) -> Iterable[Left]:
    """Unchanged goldens that differ from a changed one in platform, variant or environment alone."""
    by_case: dict[str, list[tuple[str, GoldenKey]]] = {}
    for path, key in changed.items():
        by_case.setdefault(key.case, []).append((path, key))
    for path, key in sorted(keys.items()):
        if path in changed:
            continue
        for kind in ("platform", "variant", "environment"):
            siblings = [p for p, other in by_case.get(key.case, ()) if _differ_in(key, other) == {kind}]
            if siblings:
                yield Left(path, kind, tuple(siblings))
                break


def _differ_in(a: GoldenKey, b: GoldenKey) -> set[str]:
    return {name for name in ("environment", "platform", "variant") if getattr(a, name) != getattr(b, name)}


class _Configs:
    """The ``model_config.yaml`` beside goldens, before and after."""

    def __init__(self, repo: Repo, before: dict[str, str], after: dict[str, str]) -> None:
        self.repo = repo
        self.before = before
        self.after = after

    def known(self, golden: str) -> bool:
        """Whether the case has a configuration on both sides."""
        beside = self._beside(golden)
        return beside in self.before and beside in self.after

    def changed(self, golden: str) -> bool:
        """Whether train-iters, METRICS or exit-interval changed."""
        beside = self._beside(golden)
        old, new = self.before.get(beside, ""), self.after.get(beside, "")
        return bool(old and new and old != new) and self._settings(old) != self._settings(new)

    @staticmethod
    def _beside(golden: str) -> str:
        return str(PurePosixPath(golden).with_name(testconfig.NAME))

    @lru_cache(maxsize=4096)  # noqa: B019 - lives as long as one audit
    def _settings(self, blob: str) -> tuple[object, ...]:
        config = testconfig.parse(self.repo.blob(blob)).config
        return (config.train_iters, config.exit_interval, config.required) if config else ()


def _regridded(repo: Repo, file: AuditedFile) -> bool:
    """Whether the file's metrics or steps changed, not their values alone."""
    if not (file.downstream and file.result):
        return False
    try:
        before, after = (read(repo.blob(blob)) for blob in (file.downstream, file.result))
    except DocumentError:
        return False
    return {s.metric: s.steps for s in before.series} != {s.metric: s.steps for s in after.series}
