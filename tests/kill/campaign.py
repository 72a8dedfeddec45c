"""Kill a command at many moments, let the next one recover, and look for anything that is not in order."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.kill.commands import CASES, Case
from tests.kill.processes import Ended, Moment, run
from tests.kill.state import Held, counts, data_files, goldens, held, names

SEED = 20260501
SAID = {
    "an interrupted write-back was undone: its files are as they were": "undone",
    "an interrupted write-back was finished: its files are written": "finished",
    "an interrupted write-back left nothing to finish or undo": "nothing to settle",
}
"""What the next command says on stderr → the state in which the kill left the journal."""


@dataclass(frozen=True)
class Reference:
    """A command that nobody kills."""

    old: dict[str, bytes]
    new: dict[str, bytes]
    names: set[str]
    first: Ended
    second: Ended
    """Run again, with nothing left to do; the first once more for what always says the same."""
    before: Held | None
    after: Held | None


@dataclass
class Tally:
    """What the kills of a command showed."""

    kills: int = 0
    steps: int = 0
    """Steps of one run, of the case that has most."""
    words: set[str] = field(default_factory=set)
    """Where it was killed."""
    states: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    """What was not in order, with the moment."""

    def line(self, name: str) -> str:
        """One line for the command."""
        seen = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        order = f"{len(self.broken)} NOT IN ORDER" if self.broken else "all in order"
        return f"{name}: {self.kills} kills, {len(self.words)} kinds of moments, {self.steps} steps; {seen}; {order}"


class Campaign:
    """The kills of one command.

    Parameters
    ----------
    name
        Its name in :data:`CASES`.
    scratch
        A folder with the repository ``planted`` that every command meets, and whatever other campaigns left.
    """

    def __init__(self, name: str, scratch: Path) -> None:
        self.tally = Tally()
        self._chance = random.Random(f"{SEED} {name}")
        self._lake = name.startswith("store")
        self._cases, self._scratch, self._top = CASES[name], scratch, scratch / "repo"

    def run(self, kills: int, *, every: bool) -> Tally:
        """Kill it this often at moments spread over its work; ``every``: at each step of the journal at least once."""
        cases = self._cases[: max(1, kills // 2)]
        references = [self._reference(i, case) for i, case in enumerate(cases)]
        self.tally.steps = max(len(r.first.words) for r in references)
        if every and not self._cases[0].watched:
            kills = max(kills, self.tally.steps)
        for i, (case, reference) in enumerate(zip(cases, references, strict=True)):
            for turn, moment in enumerate(self._moments(case, reference, len(range(i, kills, len(cases))))):
                self._one(i, reference, moment, turn)
        return self.tally

    def _fresh(self, template: str) -> None:
        """The repository anew, always at the same place, because a store knows where its data is."""
        shutil.rmtree(self._top, ignore_errors=True)
        shutil.copytree(self._scratch / template, self._top, symlinks=True)

    def _reference(self, number: int, case: Case) -> Reference:
        self._fresh("planted")
        case.prepare(self._top)
        shutil.rmtree(self._scratch / str(number), ignore_errors=True)
        self._top.rename(self._scratch / str(number))
        self._fresh(str(number))
        old, before = goldens(self._top), self._held()
        first = run(self._top, case.arguments, ease=case.ease)
        new, left, after = goldens(self._top), names(self._top), self._held()
        second = first if case.watched else run(self._top, case.arguments, ease=case.ease)
        assert first.code in (0, 1), first.err
        assert first.words, "it changed nothing"
        return Reference(old, new, left, first, second, before, after)

    def _held(self) -> Held | None:
        return held(self._top, lake=self._lake)

    def _moments(self, case: Case, reference: Reference, kills: int) -> Iterator[Moment]:
        """Steps, spread evenly and again from the first; half as many of other moments where not all steps are our own."""
        steps, at_steps = len(reference.first.words), -(-kills // 2) if case.watched else kills
        for i in range(at_steps):
            yield Moment(step=1 + (i % steps if at_steps >= steps else (2 * i + 1) * steps // (2 * at_steps)))
        for i in range(kills - at_steps):
            seconds = self._chance.uniform(0.02, reference.first.seconds)
            yield Moment(changes=self._chance.randint(1, 30)) if i % 2 else Moment(seconds=seconds)

    def _one(self, number: int, reference: Reference, moment: Moment, turn: int) -> None:
        case = self._cases[number]
        while True:
            self._fresh(str(number))
            ended = run(self._top, case.arguments, moment, case.ease, [self._top / name for name in case.watched])
            child = "parsing process" in ended.words[moment.step - 1 : moment.step] and not ended.killed
            if ended.killed or child:
                break
            moment = _earlier(moment)
        self.tally.kills += 1
        self.tally.words.add(ended.words[-1] if moment.step and not child else "parsing process" if child else "from outside")
        try:
            if child:
                assert ended.code == 4 and "error: " in ended.err and "Traceback" not in ended.err, f"{ended.code} {ended.err}"
            state = self._filled(case, reference) if case.watched else self._written(case, reference, turn)
            self.tally.states[state] += 1
        except AssertionError as exc:
            self.tally.broken.append(f"case {number}, {moment}, {ended.words[-1:]}: {exc}")

    def _written(self, case: Case, reference: Reference, turn: int) -> str:
        """Look at what a command on golden files left, and let the next command recover; the state that was found."""
        old, new, now = reference.old, reference.new, goldens(self._top)
        state = "all written" if now == new else "nothing written"
        torn = [path for path in old | new | now if now.get(path) not in (old.get(path), new.get(path))]
        assert not torn, f"neither old nor new: {torn}"
        if turn % 3 == 2:  # the recovery dies too
            run(self._top, ("lint",), Moment(step=self._chance.randint(1, 12)))
        journal = (self._top / ".goldenctl/journal").exists()
        done = names(self._top) == reference.names and goldens(self._top) == new
        following = run(self._top, ("lint",) if turn % 2 else case.arguments, ease=case.ease)
        said = [SAID[line] for line in following.err.splitlines() if line in SAID]
        assert len(said) == journal, f"journal there: {journal}, said: {following.err}"
        now = goldens(self._top)
        assert now in (old, new), "after the next command some are old and some new"
        if turn % 2:
            assert said != ["finished"] or now == new, "said to be finished, and is not"
            assert said != ["undone"] or now == old, "said to be undone, and is not"
            following = run(self._top, case.arguments, ease=case.ease)
        expected = reference.second.code if done else reference.first.code
        assert following.code == expected, f"run again: exit code {following.code}, not {expected}: {following.err}"
        self._as_if_never_killed(reference)
        self._answers(("catalog", "status"))
        return said[0] if said else state

    def _as_if_never_killed(self, reference: Reference) -> None:
        assert goldens(self._top) == reference.new, "run again: other goldens than without a kill"
        more, fewer = names(self._top) - reference.names, reference.names - names(self._top)
        assert not more and not fewer, f"files too many: {sorted(more)}, too few: {sorted(fewer)}"

    def _answers(self, arguments: tuple[str, ...]) -> str:
        ended = run(self._top, arguments)
        assert ended.code == 0, f"{' '.join(arguments)}: {ended.code} {ended.err}"
        return ended.out

    def _filled(self, case: Case, reference: Reference) -> str:
        """Look at what a command on the catalog or the store left, and run it again; the state that was found."""
        status = ("store", "status") if self._lake else ("catalog", "status")
        found, orphans = self._held(), False
        if found is not None:
            assert not found.halves, f"half there: {found.halves}"
            self._answers(status)
        again = run(self._top, case.arguments, ease=case.ease)
        assert again.code == 0, f"run again: {again.code} {again.err}"
        after = self._held()
        assert after is not None and reference.after is not None
        assert after.totals == reference.after.totals, f"run again: {after.totals}, not {reference.after.totals}"
        if self._lake:
            orphans = self._cleaned()
        else:
            there = found.documents if found else 0
            assert counts(again.out) == (after.documents, after.documents - there), f"{there} were there: {again.out}"
        self._as_if_never_killed(reference)
        self._answers(status)
        return _state(found, reference) + (" and files of no version" if orphans else "")

    def _cleaned(self) -> bool:
        """Whether the kill had left files of no version, which the store's cleaning removes."""
        removed = json.loads(self._answers(("store", "clean", "--older-than", "0m", "--format", "json")))
        known = json.loads(self._answers(("store", "status", "--format", "json")))["files"]
        assert data_files(self._top) == known, f"{data_files(self._top)} files in the store's folder, {known} of them known"
        return bool(removed["orphans"])


def _state(found: Held | None, reference: Reference) -> str:
    after, before = reference.after, reference.before
    if found is None:
        return "nothing there"
    if after is None or found.totals == after.totals:
        return "all there"
    if found.totals == (before.totals if before else {}):
        return "as before"
    return "some documents" if found.documents < after.documents else "all documents, older history"


def _earlier(moment: Moment) -> Moment:
    """Halfway there, for a moment that came after the end."""
    return replace(moment, step=moment.step // 2, seconds=moment.seconds / 2, changes=moment.changes // 2)
