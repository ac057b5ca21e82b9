"""Shadow mode: a baseline decides and the bandit only learns, or the other way round.

The bandit chooses as ever. Then the arm of the baseline is set beside its choice: the caller
names it, or it is drawn. Who decides is read once for each request, so that an answer is
of one of the two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from fastbandit.arms.eligibility import draw_eligible_row
from fastbandit.errors import DataError
from fastbandit.files.atomic import mark_of
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.frozen_catalogue import EligibleRows, FrozenCatalogue
from fastbandit.serving.problems import Rejection, wrong_field
from fastbandit.serving.promotion import read_promotion
from fastbandit.serving.schemas import Baseline, SelectRequest
from fastbandit.settings.service import Config
from fastbandit.storage.backups import DECIDES_FILE
from fastbandit.storage.events import DecisionMade, Who
from fastbandit.types import Inputs

if TYPE_CHECKING:
    from fastbandit.serving.shared_promotion import PromotionFollower

_LOGGER = logging.getLogger("fastbandit.serving")


class Plan(NamedTuple):
    """A request, who decides it, and the arms that the caller names for the baseline.

    Where the baseline `is_drawn`, the service draws it.
    """

    request: SelectRequest
    decides: Who
    named: Sequence[Baseline] | None
    is_drawn: bool


class Shadow:
    """Sets a baseline beside the bandit; `decides` is who decides now.

    `seed_of` gives the seed of a text. `shared` follows who decides for all on a shared log.
    """

    def __init__(self, config: Config, seed_of: Callable[[str], int]) -> None:
        self.baseline = config.shadow.baseline or "request"
        self._is_apprentice = not config.shadow.baseline  # a client of Personalizer set the mode
        self._at_first: Who = "bandit" if self._is_apprentice else "baseline"
        self.decides = self._at_first
        self._folder, self._seed_of = Path(config.server.data_dir), seed_of
        self.shared: PromotionFollower | None = None
        if config.log.url:
            from fastbandit.serving.shared_promotion import PromotionFollower

            self.shared = PromotionFollower(config.log.url, self._folder)
        self._seen: tuple[int, int] | None = None
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Why who decides cannot be read."""
        return self._problem or (None if self.shared is None else self.shared.problem)

    async def start(self) -> None:
        """Read who decides, first of all for all."""
        if self.shared is not None:
            await self.shared.follow()
        self.follow()

    def follow(self) -> None:
        """Read who decides, where that was written anew; what cannot be read changes nothing."""
        seen = mark_of(self._folder / DECIDES_FILE)
        if seen == self._seen:
            return
        self._seen, self._problem = seen, None
        try:
            found = read_promotion(self._folder)
        except DataError as error:
            self._problem = " ".join(str(error).split())
            return
        self.decides = self._at_first if found is None else found.decides
        _LOGGER.info("who decides", extra={"decides": self.decides})

    # -- requests

    def plan(self, request: SelectRequest, count: int, *, is_rank: bool = False) -> Plan:
        """Read what a request of so many contexts says of the baseline, or reject it.

        That of a rank of Personalizer is never drawn.
        """
        is_drawn = self.baseline == "random" and not is_rank
        decides, named = self.decides, _read_named(request, count)
        if self._is_apprentice and decides == "baseline" and named is None:
            if request.arms is None or request.k != 1:  # nothing says which arm is the baseline's
                decides = "bandit"
            else:
                named = [Baseline(request.arms[0].id, 1.0)] * count
        if is_drawn and named is not None:
            raise _not_named("This service draws the arm of the baseline itself.", request)
        if not is_drawn and named is None and decides == "baseline":
            raise wrong_field(
                "The baseline decides here: a request needs to name the arm that it takes.",
                fix='Send "baseline": {"arm": …, "propensity": …}, or "baselines" with contexts.',
                field="baseline" if count == 1 else "baselines",
            )
        if request.k != 1 and (decides == "baseline" or named is not None):
            raise wrong_field(
                f"A baseline is compared by one arm: got k = {request.k}.",
                fix="Ask for one arm.",
                field="k",
                value=request.k,
            )
        return Plan(request, decides, named, is_drawn)

    def compare(
        self, plan: Plan, made: list[DecisionMade], *, bandit: FrozenBandit, inputs: Inputs
    ) -> list[DecisionMade]:
        """Set the baseline's arm beside each choice of the bandit; whoever decides is answered."""
        request = plan.request
        if request.k != 1:
            return made
        if plan.named is not None:
            taken = list(plan.named)
            _check_named(taken, request, bandit.parts[1])
        elif plan.is_drawn:
            taken = self._draw(bandit, request.eligible, [one.id for one in made])
        else:
            return made
        both = list(zip(made, taken, strict=True))
        if plan.decides == "bandit":
            return [structs.replace(one, other=other.arm) for one, other in both]
        contexts = [inputs.take(slice(row, row + 1)) for row in range(len(both))]
        return [
            _by_baseline(one, other, bandit, context=context)
            for (one, other), context in zip(both, contexts, strict=True)
        ]

    def _draw(self, bandit: FrozenBandit, eligible: Any, ids: list[str]) -> list[Baseline]:
        """Draw an eligible arm for each id, all as likely as another; a retry draws the same."""
        catalogue = bandit.parts[1]
        some = catalogue.eligible(eligible)
        rows, total = catalogue.rows_of(some), catalogue.rows.total
        seeds = [self._seed_of(f"baseline {id}") for id in ids]  # no id has a space
        drawn = [draw_eligible_row(seed, rows, total=total, count=1)[0] for seed in seeds]
        arms: list[Any] = catalogue.ids.ids(drawn)
        return [Baseline(arm, 1.0 / some.size) for arm in arms]


def check_no_baseline(request: SelectRequest) -> None:
    """Reject a baseline that nothing is compared with."""
    if request.baseline is not None or request.baselines is not None:
        raise _not_named("This service has no baseline beside the bandit.", request)


def is_match(made: DecisionMade) -> bool:
    """Return whether bandit and baseline named the same arm."""
    return made.other is not None and made.other == made.arms[0]


def named_arm(made: DecisionMade) -> Any:
    """Return the arm of the baseline, None where there is none."""
    return made.arms[0] if made.decided_by == "baseline" else made.other


def _by_baseline(
    made: DecisionMade, taken: Baseline, bandit: FrozenBandit, *, context: Inputs
) -> DecisionMade:
    """Return the decision of the baseline in place of the bandit's, scored by the bandit."""
    scored = bandit.select_one(context, seed=made.seed, explore=made.explored, eligible=[taken.arm])
    return structs.replace(
        made,
        arms=[taken.arm],
        scores=[scored.score],
        propensities=None if taken.propensity is None else [taken.propensity],
        decided_by="baseline",
        other=made.arms[0],
    )


def _read_named(request: SelectRequest, count: int) -> list[Baseline] | None:
    one, many = request.baseline, request.baselines
    if one is None and many is None:
        return None
    named = many if many is not None else [one] if one is not None else []
    is_batch = isinstance(request.contexts, list)
    if (one is not None and many is not None) or (many is not None) != is_batch:
        raise wrong_field(
            "The baseline needs to come as the contexts do: one, or a list of them.",
            fix="Send baseline with context, or baselines with contexts.",
            field="baseline" if one is not None else "baselines",
        )
    if len(named) != count:
        raise wrong_field(
            f"Each of the {count} contexts needs one arm of the baseline: got {len(named)}.",
            fix="Send one for each, in their order.",
            field="baselines",
            value=len(named),
        )
    return named


def _check_named(
    named: Sequence[Baseline], request: SelectRequest, catalogue: FrozenCatalogue
) -> None:
    """Reject arms that the bandit could not have taken as well."""
    some = catalogue.eligible(request.eligible if request.arms is None else None)
    rows = catalogue.rows.live_rows_of([one.arm for one in named]).tolist()
    for n, (one, row) in enumerate(zip(named, rows, strict=True)):
        if row < 0:
            said = "The arm of the baseline needs to be in the catalogue."
            fix = "PUT it to /v1/arms first, or name another."
        elif not _is_eligible(row, some, catalogue):
            said = "The arm of the baseline needs to be eligible."
            fix = "Name an arm that this request may take, or widen eligible."
        else:
            continue
        field = "baseline" if request.baselines is None else f"baselines[{n}]"
        raise wrong_field(said, fix=fix, field=f"{field}.arm", value=one.arm)


def _is_eligible(row: int, some: EligibleRows, catalogue: FrozenCatalogue) -> bool:
    if some is catalogue.all_eligible:
        return True
    if len(some.listed):
        return bool((some.listed == catalogue.positions[row]).any())
    return not len(some.mask) or bool(some.mask[row])


def _not_named(said: str, request: SelectRequest) -> Rejection:
    one, many = request.baseline, request.baselines
    return wrong_field(
        said,
        fix='Leave it out; or set shadow.baseline = "request".',
        field="baselines" if one is None else "baseline",
        value=(many[0] if many else None) if one is None else one.arm,
    )
