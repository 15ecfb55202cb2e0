"""Putting models of discrete actions together: which learners, encoder, reduction and rounds."""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from groupwise.actions import ActionReduction, ActionRounds
from groupwise.errors import ConfigurationError
from groupwise.features import Encoder
from groupwise.fixed_policies import FixedPolicyReduction
from groupwise.groups import Groups
from groupwise.learners.actions import ActionLearner
from groupwise.learners.policies import Policies
from groupwise.losses import Loss
from groupwise.protocols import Aggregator
from groupwise.regret.ledger import Ledger

Features = Sequence[str] | Mapping[str, tuple[float, float] | None] | None


def plays_actions(learners: Sequence[object]) -> TypeGuard[Sequence[ActionLearner]]:
    """Are these learners of discrete actions? Then all must be."""
    kinds = {isinstance(learner, ActionLearner) for learner in learners}
    if len(kinds) > 1:
        raise ConfigurationError(
            "FTPL and ContextualFTPL advise actions, other learners advise numbers: "
            "they cannot serve in one model."
        )
    return kinds == {True}


def refuse_replay(learners: Sequence[object]) -> None:
    """Learners of actions cannot enter a replay: their plays and labels are vectors."""
    for learner in learners:
        if isinstance(learner, ActionLearner):
            raise ConfigurationError(
                f"{type(learner).__name__} cannot enter a replay: loop over model.predict and "
                "model.learn."
            )


def action_encoder(
    learners: Sequence[ActionLearner], features: Features, groups: Groups
) -> Encoder:
    """The encoder of a model of actions: contexts are declared numbers, or there are none."""
    if not any(learner.context_width() for learner in learners):
        if features is not None:
            raise ConfigurationError("These learners use no features: leave features out.")
        return Encoder([], True, groups)
    if features is None:
        raise ConfigurationError(
            "Name the fields that make a context with features=[...], in the order of the columns "
            "of contexts."
        )
    named = features if isinstance(features, Mapping) else dict.fromkeys(features, (0.0, 1.0))
    return Encoder(named, False, groups)


def action_rounds(
    learners: Sequence[ActionLearner],
    aggregator: Aggregator,
    loss: Loss,
    play: str | None,
    seed: int,
    features: Features,
    always_on: bool,
) -> ActionRounds:
    """Reduction and ledger of a model of actions."""
    if len(learners) == 1 and isinstance(learners[0], Policies):
        policies = learners[0]
        fixed = FixedPolicyReduction(policies, aggregator, loss, play, seed)
        return ActionRounds(fixed, Ledger(policies.count, hindsight=False), always_on)
    width = 0 if features is None else len(features)
    reduction = ActionReduction(learners, aggregator, loss, play, seed, width)
    return ActionRounds(reduction, Ledger(len(learners), hindsight=False), always_on)
