"""Remember on this host how fast the last drill went: restore times are estimated by it."""

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from snapstore.model.freshness import Rates
from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.operations.drill_report import DrilledStore

_LEAST_BYTES = 1 << 20
_LEAST_RECORDS = 10_000


class MeasuredRates(msgspec.Struct, frozen=True, kw_only=True):
    """What a drill measured; None where it moved too little to tell."""

    measured_at: datetime
    download_bytes_per_second: float | None
    replay_records_per_second: float | None


def read_rates(path: Path) -> MeasuredRates | None:
    """Return what the last drill measured; None where none has been, or its note is unreadable."""
    try:
        return msgspec.json.decode(read_regular(path), type=MeasuredRates)
    except (FileNotFoundError, NotRegularError, msgspec.DecodeError):
        return None


def write_rates(path: Path, rates: MeasuredRates) -> None:
    """Note what a drill measured; what it could not measure stays as it was."""
    before = read_rates(path)
    if before is not None:
        rates = MeasuredRates(
            measured_at=rates.measured_at,
            download_bytes_per_second=(
                rates.download_bytes_per_second or before.download_bytes_per_second
            ),
            replay_records_per_second=(
                rates.replay_records_per_second or before.replay_records_per_second
            ),
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.encode(rates))
    temporary.replace(path)


def measured(stores: Iterable[DrilledStore], now: datetime) -> MeasuredRates:
    """Return the rates over all stores that were restored and rebuilt.

    A rebuild has more to replay than a tail, so its rate is the steadier one.
    """
    drilled = [(store.timing, store.partitions) for store in stores if store.timing is not None]
    fetched = sum(timing.restored_bytes for timing, _ in drilled)
    records = sum(each.rebuilt_records for _, partitions in drilled for each in partitions)
    fetch_seconds = sum(timing.restore_seconds for timing, _ in drilled)
    rebuild_seconds = sum(timing.rebuild_seconds for timing, _ in drilled)
    return MeasuredRates(
        measured_at=now,
        download_bytes_per_second=(
            fetched / fetch_seconds if fetched >= _LEAST_BYTES and fetch_seconds else None
        ),
        replay_records_per_second=(
            records / rebuild_seconds if records >= _LEAST_RECORDS and rebuild_seconds else None
        ),
    )


def rates_of(
    measured: MeasuredRates | None,
    *,
    download_bytes_per_second: float | None,
    replay_records_per_second: float | None,
) -> Rates | None:
    """Return the rates that were given, else those measured; None unless both are known."""
    download = download_bytes_per_second or (measured and measured.download_bytes_per_second)
    replay = replay_records_per_second or (measured and measured.replay_records_per_second)
    if not download or not replay:
        return None
    given = [
        name
        for name, value in (
            ("download", download_bytes_per_second),
            ("replay", replay_records_per_second),
        )
        if value
    ]
    origins = [f"{' and '.join(given)} as given"] if given else []
    if measured is not None and len(given) < 2:
        at = measured.measured_at.strftime("%Y-%m-%d %H:%M:%SZ")
        origins.append(f"measured by a drill on this host at {at}")
    return Rates(
        download_bytes_per_second=download,
        replay_records_per_second=replay,
        origin=", ".join(origins),
    )
