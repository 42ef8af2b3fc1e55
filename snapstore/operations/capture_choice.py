"""Choose for each store where its snapshot comes from: the disk as it is, or the changelog."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import msgspec

from snapstore.errors import (
    CaptureError,
    ExactlyOnceHotError,
    IntegrityError,
    NotFoundError,
    NotReplayableError,
    RefusedError,
    SnapstoreError,
    UnknownOffsetError,
)
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.model.units import count
from snapstore.operations.changelog_snapshot import ChangelogMaker, Made
from snapstore.operations.guarantee import require_committed_now, status_of
from snapstore.operations.hold import held_offsets, held_store
from snapstore.operations.replay_layout import replay_layout
from snapstore.operations.snapshot_preparation import Prepared
from snapstore.operations.snapshot_report import StoreOutcome
from snapstore.operations.snapshot_store import StoreSnapshotter
from snapstore.operations.stopping import Stop
from snapstore.ports import Changelog, Clock, Layout, StoreBackend

CaptureMode = Literal["auto", "disk", "roll-forward", "changelog"]


class CaptureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``auto`` takes what is on the disk if it lags behind the changelog by no more than this."""

    mode: CaptureMode = "auto"
    max_lag_records: int = 10_000


class _Choice(msgspec.Struct, frozen=True, kw_only=True):
    """``usable``: the disk could be taken all the same; ``refusal`` says why it could not.

    ``automatic``: nobody asked for it.
    """

    mode: CaptureMode
    reason: str
    automatic: bool = False
    usable: bool = False
    refusal: SnapstoreError | None = None


class Chooser:
    """Takes stores in the way that was asked for, or that fits each; safe for several threads."""

    def __init__(
        self,
        options: CaptureOptions,
        maker: ChangelogMaker,
        layout: Layout,
        changelog: Changelog,
        clock: Clock,
    ) -> None:
        self._options = options
        self._maker = maker
        self._layout = layout
        self._changelog = changelog
        self._clock = clock

    def take(
        self, snapshotter: StoreSnapshotter, location: StoreLocation, backend: StoreBackend
    ) -> StoreOutcome:
        """Take one store; the choice and its reason are the first remark of the outcome."""
        return snapshotter.take(location, backend, self._preparation(location, backend))

    def _preparation(
        self, location: StoreLocation, backend: StoreBackend
    ) -> Callable[[Stop], Prepared]:
        def prepare(stop: Stop) -> Prepared:
            stop.check()
            choice = self._choose(location, backend)
            if choice.mode == "disk":
                remarks = (f"taken from the disk: {choice.reason}",) if choice.reason else ()
                otherwise = partial(self._otherwise, location) if choice.automatic else None
                return Prepared(location=location, remarks=remarks, otherwise=otherwise)
            try:
                made = self._maker.make(location, hot=choice.mode == "roll-forward", stop=stop)
            except NotReplayableError as error:
                if choice.usable:
                    remark = f"taken from the disk although {choice.reason}: {error.message}"
                    return Prepared(location=location, remarks=(remark,))
                if choice.refusal is not None:
                    choice.refusal.facts["not_replayable"] = error.message
                    choice.refusal.hint = error.hint
                    raise choice.refusal from error
                raise
            return _made(made, choice.reason)

        return prepare

    def _otherwise(self, location: StoreLocation, why: SnapstoreError, stop: Stop) -> Prepared:
        """Prepare another way where the files as they are could not be restored."""
        try:
            # A tail with gaps proves nothing to a roll-forward either.
            made = self._maker.make(location, hot=not why.facts.get("gap"), stop=stop)
        except (RefusedError, CaptureError, IntegrityError, NotFoundError) as error:
            remark = f"taken from the disk, since it cannot be made anew: {error.message}"
            return Prepared(location=location, remarks=(remark,))
        return _made(made, why.message)

    def _choose(self, location: StoreLocation, backend: StoreBackend) -> _Choice:
        mode = self._options.mode
        if mode != "auto":
            return _Choice(mode=mode, reason="" if mode == "disk" else "as asked for")
        if not location.path.is_dir():
            return _Choice(mode="changelog", reason="it has no files here")
        if replay_layout(self._layout) is None:
            return _Choice(mode="disk", reason="")
        try:
            with held_store(location, self._layout, backend, self._clock) as held:
                running = held.running
                positions = held_offsets(location, self._layout, held).positions
                require_committed_now(
                    location.store,
                    status_of(self._layout, held.capture.view),
                    self._layout,
                    self._changelog,
                    [position.changelog for position in positions],
                    self._clock,
                )
        except (UnknownOffsetError, ExactlyOnceHotError) as error:
            return _Choice(mode="roll-forward", reason=error.message, refusal=error)
        except (CaptureError, NotFoundError):
            # Whatever it is, taking it from the disk will say so, after some more tries.
            return _Choice(mode="disk", reason="")
        if not positions or not running:
            reason = "" if positions else "it has no changelog"
            return _Choice(mode="disk", reason=reason, automatic=bool(positions))
        return self._by_lag(sum(map(self._lag, positions)))

    def _by_lag(self, lag: int) -> _Choice:
        if lag <= self._options.max_lag_records:
            reason = f"it is {count(lag, 'record')} behind its changelog"
            return _Choice(mode="disk", reason=reason, automatic=True)
        return _Choice(
            mode="roll-forward",
            reason=f"the disk is {count(lag, 'record')} behind its changelog",
            usable=True,
        )

    def _lag(self, position: ChangelogPosition) -> int:
        state = self._changelog.inspect(position.changelog, now=self._clock())
        return max(0, state.log_end - position.resume_offset)


def _made(made: Made, reason: str) -> Prepared:
    skipped = f"; {'; '.join(made.skipped)}" if made.skipped else ""
    told = (
        f"made from the changelog ({reason}): {count(made.records, 'record')} after"
        f" {made.origin}{skipped}"
    )
    remarks = [told]
    if not made.complete:
        remarks.append(
            f"not complete: its changelog begins at {made.log_start:,}, so that rows are missing "
            "which only earlier records held"
        )
    return Prepared(
        location=made.location,
        source="changelog",
        before=made.before,
        remarks=tuple(remarks),
        complete=made.complete,
    )
