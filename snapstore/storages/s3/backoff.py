"""How long to wait between attempts that botocore does not repeat by itself."""

import random
from collections.abc import Iterator

_LONGEST_S = 20.0


def delays(attempts: int) -> Iterator[float]:
    """Yield the seconds to wait before each attempt after the first: random, growing, bounded."""
    for number in range(attempts - 1):
        yield random.uniform(0, min(_LONGEST_S, 0.2 * 2**number))
