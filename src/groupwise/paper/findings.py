"""What the paper says of its experiments' results, sentence by sentence."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from groupwise.datasets.adult import RACES
from groupwise.paper.evidence import (
    ADULT,
    EVERYBODY,
    MEDICAL,
    RULES,
    SHUFFLED,
    SORTED,
    SYNTHETIC,
    Evidence,
    printed,
)
from groupwise.paper.judged import (
    Judge,
    always_lower,
    azoury_warmuth,
    clipping_helps,
    comparable,
    in_range,
    income,
    less_than_others,
    linear,
    lower,
    negative,
    of_table,
    often_negative,
    rough,
    same_best,
    slower,
    sublinear,
    tables_agree,
    tables_clipped,
    theorem,
    uniformly,
)
from groupwise.paper.published import ORDERS
from groupwise.paper.statements import SUBSTANTIAL, Judgement, Seen, Statement, stated
from groupwise.paper.theory import ABSTRACT, INTRO, METHOD, MODEL, USES
from groupwise.report.tables import number

SYNTH, COSTS = "5.2 Synthetic data", "5.3 Medical costs"
MORE, MORE_COSTS, INCOME = "C Additional figures", "C.4 Medical costs", "C.5 Adult income"
TABLES = "D Regret tables"
DEMOGRAPHIC = ("young", "middle", "old", "male", "female")
WEIGHTS = ("underweight", "healthyweight", "overweight", "obese")
SMOKING = ("smoker", "non-smoker")

CAPTIONS = {
    "synthetic-mean": ("fig:synthetic_mean_shuff", "fig:sorted_synth_mean", SYNTH, SYNTH),
    "synthetic-min": ("fig:synth_min_iid", "fig:sorted_synth_min", MORE, MORE),
    "synthetic-max": ("fig:synth_max_iid", "fig:sorted_synth_max", MORE, MORE),
    "synthetic-permutation": ("fig:synth_perm_iid", "fig:sorted_synth_perm", MORE, MORE),
    MEDICAL: ("fig:medical_frac_shuffled", "fig:medical_frac_sorted_age", COSTS, COSTS),
}
"""The figures whose captions say "always": shuffled and sorted, and their sections."""


def statements(evidence: Evidence) -> Iterator[Statement]:
    """All of them, in the order of the paper's sections."""

    def one(section: str, name: str, claim: str, how: str, needs: str, judge: Judge) -> Statement:
        return stated(section, name, claim, how, evidence.needing(needs, judge))

    def of(
        ask: Callable[[Sequence[Seen]], Judgement],
        experiments: Sequence[str],
        orders: Sequence[str] = ORDERS,
        named: Sequence[str] | None = None,
        everybody: bool = True,
    ) -> Judge:
        return lambda known: ask(known.of(experiments, orders, named, everybody))

    def adult(
        name: str, claim: str, named: Sequence[str] | None, judge: Judge, otherwise: str = ""
    ) -> Statement:
        otherwise = otherwise or of_table(named)
        return stated(
            INCOME, name, claim, "adult, curves", evidence.needing(ADULT, judge, otherwise)
        )

    substantial = partial(lower, by=SUBSTANTIAL)
    anything = SYNTHETIC[0]
    yield one(
        ABSTRACT,
        "uniformly",
        "Uniformly across groups, substantial error improvements over online regression",
        "all tables, final losses",
        anything,
        uniformly,
    )
    yield one(
        INTRO,
        "azoury-warmuth",
        "Azoury and Warmuth: at most the best model’s squared error, up to low order terms",
        "all tables, baseline on everybody, bounds.ridge",
        anything,
        azoury_warmuth,
    )
    yield one(
        INTRO,
        "all-rules",
        "Consistently across all aggregation rules substantially lower loss and regret on each "
        "group",
        "8 synthetic tables, final losses",
        anything,
        of(substantial, SYNTHETIC),
    )
    yield one(
        INTRO,
        "often-negative",
        "Regret to the best model restricted to a group is often negative",
        "8 synthetic tables, final regrets",
        anything,
        often_negative,
    )
    yield one(
        INTRO,
        "real-lower",
        "On real data, too, consistently lower groupwise regret",
        "both medical tables, final regrets",
        MEDICAL,
        of(lower, [MEDICAL]),
    )
    yield one(
        INTRO,
        "figure-1-lower",
        "Figure 1, representative on all experiments: consistently lower",
        "medical curves, 60 moments",
        MEDICAL,
        of(always_lower, [MEDICAL], (SHUFFLED,), (*DEMOGRAPHIC, *SMOKING)),
    )
    yield one(
        INTRO,
        "figure-1-slower",
        "Figure 1, all experiments: growing with time at a lower rate than the baseline’s",
        "all curves, last half",
        MEDICAL,
        of(slower, (*SYNTHETIC, MEDICAL)),
    )
    yield one(
        INTRO,
        "figure-1-negative",
        "Regret can be increasingly negative, as seen in the age and sex groups",
        "medical curves, last half",
        MEDICAL,
        of(negative, [MEDICAL], (SHUFFLED,), DEMOGRAPHIC),
    )
    yield one(
        MODEL,
        "range",
        "Losses are in [0, 1]",
        "all runs, every round",
        anything,
        in_range,
    )
    yield one(
        METHOD,
        "theorem-2",
        "Theorem 2: regret at most α_I + O(√(T_I log |𝓘|)) for any subsequence",
        "medical, advice clipped, certificates",
        MEDICAL,
        theorem,
    )
    yield one(
        USES,
        "clipping-helps",
        "Clipping predictions to [0, 1] can only improve performance",
        "medical, with and without",
        MEDICAL,
        clipping_helps,
    )
    yield one(
        USES,
        "clipped",
        "Predictions outside [0, 1] are clipped",
        "medical tables, with and without",
        MEDICAL,
        tables_clipped,
    )
    for section, rules, label in ((SYNTH, RULES[:1], "mean"), (MORE, RULES[1:], "other-rules")):
        names = [f"synthetic-{rule}" for rule in rules]
        which = "mean" if section == SYNTH else "min, max and permutation"
        yield one(
            section,
            f"{label}-lower",
            "Across all the groups significantly lower regret than the baseline",
            f"{which}, shuffled and sorted",
            anything,
            of(substantial, names),
        )
        yield one(
            section,
            f"{label}-linear",
            "The baseline in fact has linearly increasing regret on every group",
            f"{which}, shuffled",
            anything,
            of(linear, names, (SHUFFLED,), None, False),
        )
        yield one(
            section,
            f"{label}-sublinear",
            "On the entire sequence the baseline has low, sublinear regret",
            f"{which}, shuffled",
            anything,
            of(sublinear, names, ORDERS, (EVERYBODY,)),
        )
        yield one(
            section,
            f"{label}-sorted-linear",
            "Sorted by colour: similar qualitative results, linear regret of the baseline included",
            f"{which}, sorted",
            anything,
            of(linear, names, (SORTED,), None, False),
        )
    yield one(
        SYNTH,
        "mean-negative",
        "Negative and decreasing over time, e.g. for green and red",
        "mean, shuffled",
        anything,
        of(negative, ["synthetic-mean"], (SHUFFLED,), ("green", "red")),
    )
    said = {"mean": (33.0, 20.0), "min": (79.0, 48.0), "max": (59.0, 34.0)}
    for rule, (best, gap) in {**said, "permutation": (94.0, 93.0)}.items():
        yield one(
            SYNTH if rule == "mean" else MORE,
            f"{rule}-rough",
            f"{rule.capitalize()}: best loss roughly {best:g}, ours roughly {gap:g} lower than the "
            "baseline’s",
            f"{rule}, shuffled",
            anything,
            rough(f"synthetic-{rule}", best, gap),
        )
    yield one(
        SYNTH,
        "mean-comparable",
        "Improvements are of a similar order of magnitude as the baseline’s loss",
        "mean, shuffled",
        anything,
        comparable,
    )
    for experiment, (_, _, *sections) in CAPTIONS.items():
        for order, section in zip(ORDERS, sections, strict=True):
            which = f"{experiment.removeprefix('synthetic-')}, {order}"
            yield one(
                section,
                f"always-{experiment}-{order}",
                f"Caption of the figure, {which}: our algorithm always has lower regret",
                f"{which}, 60 moments",
                experiment,
                of(always_lower, [experiment], (order,)),
            )
    yield one(
        COSTS,
        "body-mass",
        "Body mass groups, too: growing with time at a lower rate than the baseline’s",
        "medical, shuffled, last half",
        MEDICAL,
        of(slower, [MEDICAL], (SHUFFLED,), WEIGHTS),
    )
    yield one(
        COSTS,
        "medical-rough",
        "Best loss roughly 4.1, ours roughly 1.9 lower than the baseline’s",
        "medical, shuffled",
        MEDICAL,
        rough(MEDICAL, 4.1, 1.9),
    )
    for order in ORDERS:
        says = "" if order == SHUFFLED else "By age, the same qualitative results: "
        yield one(
            MORE_COSTS,
            f"medical-{order}-lower",
            f"{says}on all groups significantly lower regret",
            f"medical, {order}",
            MEDICAL,
            of(substantial, [MEDICAL], (order,)),
        )
        yield one(
            MORE_COSTS,
            f"medical-{order}-negative",
            f"{says}on age, sex and everybody negative and decreasing regret",
            f"medical, {order}, last half",
            MEDICAL,
            of(negative, [MEDICAL], (order,), (*DEMOGRAPHIC, EVERYBODY)),
        )
        yield one(
            MORE_COSTS,
            f"medical-{order}-linear",
            f"{says}on smoking and body mass the baseline’s regret increases linearly",
            f"medical, {order}",
            MEDICAL,
            of(linear, [MEDICAL], (order,), (*SMOKING, *WEIGHTS)),
        )
        yield one(
            MORE_COSTS,
            f"medical-{order}-sublinear",
            f"{says}on everybody the baseline’s regret is sublinear",
            f"medical, {order}",
            MEDICAL,
            of(sublinear, [MEDICAL], (order,), (EVERYBODY,)),
        )
    yield adult(
        "adult-rough",
        "Best loss roughly 568, ours roughly 14 lower than the baseline’s",
        None,
        rough(ADULT, 568.0, 14.0),
        income(568.0, 14.0),
    )
    yield stated(
        INCOME,
        "adult-less",
        "A decrease, but not as significant as for the other data sets",
        "the printed tables, means over groups",
        less_than_others(),
    )
    for name, claim, named in (
        ("adult-age", "On all three age groups lower regret", ("young", "middle", "old")),
        (
            "adult-education",
            "On both education groups lower regret",
            ("HighSchool&less", "College&more"),
        ),
        ("adult-sex", "On both sexes lower regret", ("Male", "Female")),
        ("adult-race", "On all five races lower regret", RACES),
    ):
        yield adult(name, claim, named, of(lower, [ADULT], (SHUFFLED,), named))
    for order in ORDERS:
        final = printed(order)[EVERYBODY][1]
        says = "" if order == SHUFFLED else "By age, the same: "
        yield adult(
            f"adult-{order}-negative",
            f"{says}everybody’s regret is negative and decreasing, the baseline’s sublinear",
            None,
            of(negative, [ADULT], (order,), (EVERYBODY,)),
            f"; its own table ends with {number(final)}{of_table(None, (order,))[:-1]}",
        )
    yield one(
        TABLES,
        "tables",
        "The tables: mean and standard deviation over 10 shuffles, sorted or not",
        "every figure, beside the printed one",
        anything,
        tables_agree,
    )
    yield one(
        TABLES,
        "same-best",
        "The best loss is the same across all shuffles: least squares on the entire subsequence",
        "all tables, over the seeds",
        anything,
        same_best,
    )
