"""Path ↔ key: which golden file belongs to which case, environment, platform and variant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from goldenctl.errors import ConfigError
from goldenctl.model import GoldenKey

DEFAULT_LAYOUT = "{model}/{test_case}/golden_values_{environment}_{platform}{variant}.json"
VARIANTS = ("", "_2nd")
_FIELDS = {
    "model": r"(?P<model>[^/]+)",
    "test_case": r"(?P<test_case>[^/]+)",
    "environment": r"(?P<environment>[A-Za-z0-9]+)",
    "platform": r"(?P<platform>[A-Za-z0-9.\-]+(?:_[A-Za-z0-9.\-]+)*?)",
    "variant": r"(?P<variant>(?:_2nd)?)",
}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+\-]*")


def _check(template: str, parts: list[str]) -> None:
    """Refuse a template that is no path below root: a settings file comes with any branch that is pulled.

    Raises
    ------
    ConfigError
        With what is wrong.
    """
    fields = [part for part in parts if part.startswith("{")]
    plain = "".join(part for part in parts if not part.startswith("{"))
    if len(set(fields)) < len(fields):
        why = "has a placeholder twice"
    elif any(brace in plain for brace in "{}") or not plain.isprintable():
        why = "has a single brace or a control character"
    elif template.startswith("/") or any(folder in (".", "..") for folder in template.split("/")) or "\\" in template:
        why = "leads out of root"
    else:
        return
    raise ConfigError(f"layout {template!r} {why}", hint=f"the usual one is {DEFAULT_LAYOUT}")


@dataclass(frozen=True)
class Layout:
    """The layout setting, compiled.

    Parameters
    ----------
    template
        Path below root with the placeholders ``{model}``, ``{test_case}``, ``{environment}``,
        ``{platform}`` and ``{variant}``.
    """

    template: str = DEFAULT_LAYOUT

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._regex(self.template))

    @cached_property
    def _name_pattern(self) -> re.Pattern[str]:
        return re.compile(self._regex(self.template.rsplit("/", 1)[-1]))

    @cached_property
    def _legacy(self) -> tuple[re.Pattern[str], ...]:
        """The same layout without platform, and without environment and platform."""
        shorter = self.template.replace("_{platform}", ""), self.template.replace("_{environment}_{platform}", "")
        return tuple(re.compile(self._regex(t)) for t in shorter)

    @staticmethod
    def _regex(template: str) -> str:
        parts = re.split(r"(\{[^{}]*\})", template)
        _check(template, parts)
        out: list[str] = []
        for part in parts:
            if part.startswith("{"):
                name = part[1:-1]
                if name not in _FIELDS:
                    raise ConfigError(f"layout has an unknown placeholder {part}", hint=f"use {', '.join(_FIELDS)}")
                out.append(_FIELDS[name])
            else:
                out.append(re.escape(part))
        return "".join(out) + r"\Z"

    def parse(self, relative: str) -> GoldenKey | None:
        """The key of a path below root, or None when it does not fit the layout."""
        return self._key(self._pattern.match(relative))

    def parse_legacy(self, relative: str) -> GoldenKey | None:
        """The key of a path of an older spelling (no platform, or neither environment nor platform)."""
        for pattern in self._legacy:
            key = self._key(pattern.match(relative))
            if key is not None:
                return key
        return None

    def parse_name(self, name: str) -> tuple[str, str, str] | None:
        """Environment, platform and variant of a golden file name, or None."""
        match = self._name_pattern.match(name)
        if match is None:
            return None
        groups = match.groupdict()
        return groups.get("environment", ""), groups.get("platform", ""), groups.get("variant", "")

    @staticmethod
    def _key(match: re.Match[str] | None) -> GoldenKey | None:
        if match is None:
            return None
        g = match.groupdict()
        return GoldenKey(
            g.get("model", ""), g.get("test_case", ""), g.get("environment", ""), g.get("platform", ""), g.get("variant", "")
        )

    def path(self, key: GoldenKey) -> str:
        """The path below root of a key.

        Raises
        ------
        ValueError
            A part of the key is not a plain name (empty, ``..``, a separator, a control character),
            so that no path built from outside leads out of root; or the path would be read as another key.
        """
        for part in (key.model, key.test_case, key.environment, key.platform):
            if not _PLAIN_NAME.fullmatch(part) or ".." in part:
                raise ValueError(f"{part!r} is not a plain name")
        if key.variant not in VARIANTS:
            raise ValueError(f"{key.variant!r} is not a known variant")
        said = {name: getattr(key, name) for name in _FIELDS}
        path = self.template.format(**said)
        read = self.parse(path)
        if read is None or any(getattr(read, n) != text for n, text in said.items() if f"{{{n}}}" in self.template):
            raise ValueError(f"{path!r} would not be read as the golden it is for")
        return path
