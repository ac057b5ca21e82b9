"""What a request, a connection and a key may cost the service."""

from __future__ import annotations

from fastbandit.declaration import part
from fastbandit.settings.ranges import FROM_0, FROM_1, SECONDS, entry


@part("service", name="limits")
class LimitsConfig:
    """What a request, a connection and a key may cost the service."""

    header_bytes: int = entry(65536, "largest request line with its headers", FROM_1)
    header_seconds: float = entry(
        10.0, "time for them, from their start; and for a handshake of TLS", SECONDS
    )
    body_seconds: float = entry(
        30.0, "time for a body, from the end of the headers; and to read answers that wait", SECONDS
    )
    connections: int = entry(
        2048, "open at once; a new one then ends the one that is silent for longest", FROM_1
    )
    buffered_bytes: int = entry(
        33554432, "held of requests that are not answered yet, all together", FROM_1
    )
    body_bytes: int = entry(
        1048576, "largest select or request with rewards; server.max_body_bytes is for arms", FROM_1
    )
    eligible: int = entry(
        1000000, "contexts × eligible ids of a select, or × arms, or × k × columns", FROM_1
    )
    contexts: int = entry(256, "contexts of a select; at most 1000", FROM_1)
    interactions: int = entry(10000, "contexts × k of a select", FROM_1)
    rewards: int = entry(1000, "rewards of a request; at most 10000", FROM_1)
    log_bytes: int = entry(16777216, "that a select may write to the log", FROM_1)
    requests_per_second: float = entry(0.0, "of one key; more get 429; 0 for any number", FROM_0)
    interactions_per_second: float = entry(
        0.0, "contexts × k, and rewards, of one key; more get 429; 0 for any number", FROM_0
    )
