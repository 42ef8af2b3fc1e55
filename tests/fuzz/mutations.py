"""Strategies for documents that are almost right."""

import os
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st


def examples(count: int) -> settings:
    """Return settings for so many examples, times ``SNAPSTORE_FUZZ_FACTOR`` for a longer run."""
    factor = int(os.environ.get("SNAPSTORE_FUZZ_FACTOR", "1"))
    return settings(max_examples=count * factor, deadline=None)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(
        [
            "",
            ".",
            "..",
            "../../x",
            "/etc/x",
            "a/../../x",
            "..\\x",
            "a\x00b",
            "\ud7ff",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2026-05-04T12:00:00",
            "2026-05-04T12:00:00+14:00",
            "9" * 5000,
            "a" * 70_000,
        ]
    ),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, document: object) -> Any:
    """Return the document with one to three of its values replaced, left out or doubled."""
    body = msgspec.to_builtins(document)
    for _ in range(draw(st.integers(1, 3))):
        body = _changed_once(draw, body)
    return body


def _changed_once(draw: st.DrawFn, body: Any) -> Any:
    if isinstance(body, dict) and body and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(body)))
        what = draw(st.integers(0, 9))
        if what == 0:
            return {name: value for name, value in body.items() if name != key}
        if what == 1:
            return {**body, draw(st.text(max_size=6)): draw(json_values)}
        return {**body, key: _changed_once(draw, body[key])}
    if isinstance(body, list) and body and draw(st.integers(0, 9)):
        index = draw(st.integers(0, len(body) - 1))
        if draw(st.integers(0, 4)) == 0:
            return [*body, body[index]]
        return [*body[:index], _changed_once(draw, body[index]), *body[index + 1 :]]
    return draw(json_values)
