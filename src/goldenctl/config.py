"""Settings: ``goldenctl.toml`` or ``[tool.goldenctl]`` in ``pyproject.toml``, nearest first.

Light on purpose (standard library only): ``lint`` pays for it at every commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from goldenctl import allowed
from goldenctl.errors import ConfigError, UsageError
from goldenctl.files import OWN
from goldenctl.layout import DEFAULT_LAYOUT, Layout

MEGATRON_ROOT = "tests/functional_tests/test_cases"
DEFAULT_PLATFORMS = ("dgx_h100", "dgx_gb200", "dgx_a100")


@dataclass(frozen=True)
class LintSettings:
    """``[tool.goldenctl.lint]``."""

    select: tuple[str, ...] = ()
    """Rules to run; empty means all that are not opt in."""
    ignore: tuple[str, ...] = ()
    """Rules never to run."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Glob below the repo's top → rules left out there."""
    baseline: str = ""
    """File of known findings, relative to the repo's top; empty for none."""
    max_bytes: int = 5 * 1024 * 1024
    """GV013 limit in bytes."""


@dataclass(frozen=True)
class CiSettings:
    """``[tool.goldenctl.ci]``."""

    provider: str = ""
    """``github`` or ``gitlab``; empty means: from the ``origin`` remote."""
    repository: str = ""
    """``owner/name``; empty means: from the environment or the ``origin`` remote."""
    api_url: str = ""
    """Address of the API of a GitHub Enterprise or GitLab server; empty means: from the environment."""
    project: str = ""
    """GitLab project id or path."""


@dataclass(frozen=True)
class SyncSettings:
    """``[tool.goldenctl.sync]``."""

    upstream: str = "main"
    """Branch that syncs bring in."""
    downstream: str = "dev"
    """Branch that receives them."""
    subjects: tuple[str, ...] = ()
    """Regular expressions that mark a squash landing by its subject; empty means the built-in ones."""
    slice: int = 100
    """Upstream commits per sync."""


@dataclass(frozen=True)
class Tolerance:
    """How far an obtained value of one metric may be from its golden.

    A step passes when ``|obtained - golden| <= atol + rtol * |golden|``.
    """

    rtol: float = 0.05
    """Relative tolerance, dimensionless."""
    atol: float = 0.0
    """Absolute tolerance in the metric's unit."""
    exact: bool = False
    """The deterministic lane compares this metric bit for bit as well."""
    bad_steps: int | None = None
    """Steps that may exceed; None means the harness's ``min(max(T // 100, 1), 50)``."""
    window: str = "all"
    """``all`` steps one by one, or ``median`` over the iteration-time window."""
    direction: str = "both"
    """``both``, ``lower`` (smaller than golden passes) or ``higher``."""


_CHOICES = {"window": ("all", "median"), "direction": ("both", "lower", "higher")}
"""What a tolerance's words may be."""
HARNESS_TOLERANCES: Mapping[str, Tolerance] = {
    "iteration-time": Tolerance(window="median"),
    "mem-allocated-bytes": Tolerance(),
    "mem-max-allocated-bytes": Tolerance(),
    "lm loss": Tolerance(exact=True),
    "mtp_1 loss": Tolerance(exact=True),
    "mtp_2 loss": Tolerance(exact=True),
    "total loss": Tolerance(exact=True),
    "num-zeros": Tolerance(rtol=0.20, exact=True),
}
"""Megatron-LM's rules for pretraining: 5 %, 20 % for num-zeros, iteration-time by median."""


@dataclass(frozen=True)
class MlflowSettings:
    """``[tool.goldenctl.mlflow]``; None in :class:`Settings` means: do not log."""

    tracking_uri: str = ""
    """Empty means ``MLFLOW_TRACKING_URI``."""
    experiment: str = "goldenctl"
    """Experiment that refreshes are logged to."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """MLflow metric name → golden metric name, for runs without logged golden files."""
    step_size: int = 1
    """Sampling grid of such runs: step 1 and every multiple of this many steps are kept."""


@dataclass(frozen=True)
class StoreSettings:
    """``[tool.goldenctl.store]``."""

    metadata: str = ""
    """``postgres://…`` or a file."""
    data: str = ""
    """``s3://…`` or a folder."""
    always: bool = False
    """Commands mean the store unless ``--no-store`` is given."""


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; ``source`` and ``top`` say where they come from."""

    top: Path
    """Top of the repository (or the folder itself outside git), absolute."""
    source: str = ""
    """The settings file read, empty when none was found."""
    root: str = ""
    """Folder of golden files, POSIX, relative to the top of the repository; empty when none was recognised."""
    layout: str = DEFAULT_LAYOUT
    """Path of a golden file below ``root``."""
    platforms: tuple[str, ...] = DEFAULT_PLATFORMS
    """Known platforms; GV005 reports others."""
    environments: tuple[str, ...] = ("dev", "lts")
    """Known environments; GV005 reports others."""
    catalog: str = ".goldenctl/catalog.duckdb"
    """The DuckDB file, relative to the top of the repository; belongs into ``.gitignore``."""
    archive: str = ""
    """Where ``goldenctl archive`` keeps runs: a folder or ``s3://BUCKET/PREFIX``; empty for none.
    A folder is relative to the top of the repository."""
    lint: LintSettings = LintSettings()
    ci: CiSettings = CiSettings()
    sync: SyncSettings = SyncSettings()
    tolerance: Mapping[str, Tolerance] = field(default_factory=lambda: dict(HARNESS_TOLERANCES))
    """Metric (or ``metric@glob``, see :meth:`tolerance_for`) → tolerance."""
    mlflow: MlflowSettings | None = None
    store: StoreSettings | None = None

    @property
    def root_path(self) -> Path:
        """Absolute folder of golden files."""
        return self.top / self.root

    @property
    def catalog_path(self) -> Path:
        """Absolute path of the catalog file."""
        return self.top / self.catalog

    @property
    def prefix(self) -> str:
        """What the paths of golden files begin with, from the top of the repository; empty where that is root."""
        return self.root.rstrip("/") + "/" if self.root else ""

    @property
    def cache_path(self) -> Path:
        """Absolute folder of answers kept by their ETags."""
        return self.top / OWN / "cache"

    @property
    def archive_location(self) -> str:
        """The archive as it is opened: an absolute folder, or ``s3://…``; empty for none."""
        return self.archive if not self.archive or "://" in self.archive else str(self.top / self.archive)

    @property
    def compiled_layout(self) -> Layout:
        """The layout, ready to parse paths."""
        return _compiled(self.layout)

    def need_root(self) -> None:
        """Refuse to work where no folder of golden files is known.

        Raises
        ------
        UsageError
            The settings name none, and none was recognised.
        """
        if not self.root and (self.top / "HEAD").is_file() and (self.top / "objects").is_dir():
            hint = "git clone . ../work && cd ../work"
            raise UsageError("a bare repository has no work tree, and goldenctl works in one", place=str(self.top), hint=hint)
        if not self.root:
            hint = 'cd to the repository, or set root in goldenctl.toml, e.g. root = "goldens"'
            raise UsageError("no folder of golden files here", place=str(self.top), hint=hint)

    def tolerance_for(self, metric: str, path: str = "") -> Tolerance:
        """The tolerance of a metric, the last matching ``metric@glob`` entry winning.

        ``path`` is the golden's path below root; an entry ``"lm loss@moe/*dgx_gb200*"`` holds for
        files that match the glob. Unknown metrics get the harness's 5 %.
        """
        from fnmatch import fnmatchcase

        found = self.tolerance.get(metric, Tolerance())
        for name, tolerance in self.tolerance.items():
            base, _, glob = name.partition("@")
            if glob and base == metric and fnmatchcase(path, glob):
                found = tolerance
        return found


@lru_cache(maxsize=8)
def _compiled(template: str) -> Layout:
    return Layout(template)


_TABLES: dict[str, type] = {
    "lint": LintSettings,
    "ci": CiSettings,
    "sync": SyncSettings,
    "mlflow": MlflowSettings,
    "store": StoreSettings,
}
_ENTRIES: dict[str, Any] = {"per_file_ignores": (), "metrics": ""}
"""Tables in these tables → a value of the kind their entries have."""
_PLAIN = ("root", "layout", "platforms", "environments", "catalog", "archive")


def find_top(start: Path) -> Path:
    """The nearest folder at or above ``start`` that holds ``.git``; ``start`` itself outside git."""
    start = start.absolute()
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    return start


def load(start: Path) -> Settings:
    """Settings for work that starts in ``start``.

    Raises
    ------
    ConfigError
        The file is not TOML, has an unknown key, or a value of the wrong type.
    """
    top = find_top(start)
    for folder in _upwards(start.absolute(), top):
        own = folder / "goldenctl.toml"
        if _is_there(own):
            return _settings(top, own, _read(own))
        project = folder / "pyproject.toml"
        if _is_there(project):
            table = allowed.table(_read(project).get("tool", {}), str(project), "tool").get("goldenctl")
            if table is not None:
                return _settings(top, project, table)
    return _settings(top, None, {})


def _upwards(start: Path, top: Path) -> list[Path]:
    folders = [start, *start.parents]
    return folders[: folders.index(top) + 1] if top in folders else [start]


def _is_there(path: Path) -> bool:
    """Whether something has the name of a settings file; what cannot be read, a folder or a dangling link, is said then."""
    return path.exists() or path.is_symlink()


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # a tree without settings need not load it

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror}", place=str(path)) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"cannot be read: {exc}", place=str(path)) from exc


def _settings(top: Path, source: Path | None, table: Mapping[str, Any]) -> Settings:
    place = str(source) if source else "built-in settings"
    table = allowed.table(table, place, "tool.goldenctl")
    allowed.known(table, (*_PLAIN, *_TABLES, "tolerance"), place, "")
    values: dict[str, Any] = {}
    for name in _PLAIN:
        if name in table:
            values[name] = allowed.typed(table[name], getattr(Settings(top), name), f"{place}: {name}")
    for name, kind in _TABLES.items():
        if name in table:
            values[name] = _table(table[name], kind, place, name)
    if "tolerance" in table:
        values["tolerance"] = dict(HARNESS_TOLERANCES) | _tolerances(table["tolerance"], place)
    settings = Settings(top, source=str(source or ""), **values)
    if not settings.root:
        values["root"] = _recognise(top)
        settings = Settings(top, source=str(source or ""), **values)
    settings = replace(settings, root=PurePosixPath(settings.root).as_posix() if settings.root else "")
    _check_paths(settings, place)
    allowed.layout(settings.layout, f"{place}: layout")
    return settings


def _check_paths(settings: Settings, place: str) -> None:
    for name, path in (("root", settings.root), ("catalog", settings.catalog), ("lint.baseline", settings.lint.baseline)):
        allowed.inside(path, f"{place}: {name}")
    store = settings.store or StoreSettings()
    files = {"catalog": settings.catalog} | _named({"lint.baseline": settings.lint.baseline, "store.metadata": store.metadata})
    for name, path in files.items():
        allowed.a_file(path, settings.top, f"{place}: {name}")
    for name, path in _named({"root": settings.root, "archive": settings.archive, "store.data": store.data}).items():
        allowed.a_folder(path, settings.top, f"{place}: {name}")
    if _named({"": store.metadata}) and (settings.top / store.metadata).resolve() == settings.catalog_path.resolve():
        hint = "name another file: what is shared is no copy of a catalog"
        raise ConfigError("names the catalog file", place=f"{place}: store.metadata", hint=hint)
    if _named({"": store.data}):
        allowed.alone(store.data, settings.top, settings.root, f"{place}: store.data")


def _named(places: Mapping[str, str]) -> dict[str, str]:
    """Those that the settings name, and that are on this machine."""
    return {name: path for name, path in places.items() if path and "://" not in path}


def _recognise(top: Path) -> str:
    return next((name for name in (MEGATRON_ROOT, "goldens") if (top / name).is_dir()), "")


def _table(table: Any, kind: type, place: str, name: str) -> Any:
    normal = {k.replace("-", "_"): v for k, v in allowed.table(table, place, f"tool.goldenctl.{name}").items()}
    allowed.known(normal, [f.name for f in fields(kind)], place, f"{name}.")
    default = kind()
    values = {}
    for key, value in normal.items():
        values[key] = allowed.typed(value, getattr(default, key), f"{place}: {name}.{key}", _ENTRIES.get(key, ""))
    return kind(**values)


def _tolerances(table: Any, place: str) -> dict[str, Tolerance]:
    out: dict[str, Tolerance] = {}
    for metric, entry in allowed.table(table, place, "tool.goldenctl.tolerance").items():
        base = HARNESS_TOLERANCES.get(metric.partition("@")[0], Tolerance())
        if not isinstance(entry, Mapping):
            raise ConfigError(f"tolerance of {metric!r} must be a table", place=place, hint='"lm loss" = { rtol = 0.02 }')
        allowed.known(entry, [f.name for f in fields(Tolerance)], place, f"tolerance.{metric}.")
        merged = {f.name: getattr(base, f.name) for f in fields(Tolerance)}
        for key, value in entry.items():
            like = 0 if key == "bad_steps" else merged[key]
            merged[key] = allowed.typed(value, like, f"{place}: tolerance.{metric}.{key}")
            if key in _CHOICES and value not in _CHOICES[key]:
                hint = f"one of {', '.join(_CHOICES[key])}"
                raise ConfigError(f"unknown {key} {value!r}", place=f"{place}: tolerance.{metric}", hint=hint)
        out[metric] = Tolerance(**merged)
    return out
