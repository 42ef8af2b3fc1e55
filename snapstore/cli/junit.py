"""A drill as JUnit XML, which CI servers show: one test case for each store."""

import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from snapstore.errors import ConfigError
from snapstore.operations.drill_report import DrilledStore, DrillReport

_NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FAILURES = ("differs", "damaged")
_ERRORS = ("refused", "unavailable")


def junit_xml(report: DrillReport) -> bytes:
    """Return the document: a difference or damage is a failure, what was not possible an error."""
    suite = Element(
        "testsuite",
        name="snapstore drill",
        tests=str(len(report.stores)),
        failures=str(len(report.of("differs", "damaged"))),
        errors=str(len(report.of("refused", "unavailable"))),
        skipped=str(len(report.of("skipped"))),
        time=_seconds(store.seconds for store in report.stores),
    )
    for store in report.stores:
        suite.append(_case(store))
    document: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def write_junit(path: Path, report: DrillReport) -> None:
    """Write the document to a file; raises ConfigError where that cannot be done."""
    try:
        path.write_bytes(junit_xml(report))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}", path=str(path)) from error


def _case(store: DrilledStore) -> Element:
    case = Element(
        "testcase",
        classname=_text(f"{store.store.application}.{store.store.task}"),
        name=_text(store.store.store),
        time=_seconds([store.seconds]),
    )
    reason = _text(store.reason or "")
    if store.outcome in _FAILURES:
        failure = SubElement(case, "failure", type=store.code or store.outcome, message=reason)
        failure.text = _text("\n".join(_differences(store)))
    elif store.outcome in _ERRORS:
        SubElement(case, "error", type=store.code or store.outcome, message=reason)
    elif store.outcome == "skipped":
        SubElement(case, "skipped", message=reason)
    elif reason:
        SubElement(case, "system-out").text = reason
    return case


def _differences(store: DrilledStore) -> list[str]:
    if store.comparison is None:
        return []
    return [
        f"{each.database} {each.family} {each.key}: restored {each.restored or 'nothing'},"
        f" rebuilt {each.rebuilt or 'nothing'}"
        for each in store.comparison.differences
    ]


def _seconds(parts: Iterable[float]) -> str:
    return f"{sum(parts):.3f}"


def _text(text: str) -> str:
    """Spell what XML cannot hold."""
    return _NO_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
