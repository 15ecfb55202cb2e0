"""Groups with learners of their own: advice, weights, certificates, files, and what is refused."""

import copy
import math
from typing import Any

import numpy as np
import pandas
import pytest

import groupwise as gw
from groupwise.aggregators import AdaNormalHedge, Prod, Specialists
from groupwise.errors import ConfigurationError, GroupwiseError, SnapshotError
from groupwise.learners import FTPL, Foreign, Logistic, NamedGroup, Ridge

SEX, REGION = gw.by("sex"), gw.by("region")
MIXED: dict[Any, Any] = {
    "sex=m": Ridge(10.0),
    REGION: [Ridge(1.0), Ridge(3.0, forward=True), Ridge(0.1, forgetting=0.9)],
    ...: [Ridge(2.0), Ridge(5.0, everybody="only")],
}


class Mean:
    """The mean of a group's labels; in plain Python."""

    copies = 0

    def __init__(self):
        self.total, self.weight = 0.5, 1.0

    def __deepcopy__(self, memo):
        Mean.copies += 1
        made = Mean()
        made.total, made.weight = self.total, self.weight
        return made

    def advise(self, row, weight):
        return self.total / self.weight

    def update(self, row, label, weight):
        self.total, self.weight = self.total + weight * label, self.weight + weight


def stream(count=120, seed=0, adverse=False):
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = [
        {
            "sex": str(draw.choice(["m", "f"])),
            "region": str(draw.choice(["n", "s", "e"][: 1 + 3 * t // count])),
            "x": float(draw.random()),
            "z": float(draw.random()),
        }
        for t in range(count)
    ]
    labels = [float(one["x"] > 0.5) if one["sex"] == "m" else float(draw.random()) for one in rows]
    return rows, [float(t % 2) for t in range(count)] if adverse else labels


def frame_of(rows, labels):
    return pandas.DataFrame(rows).assign(y=labels)


def looped(model, rows, labels):
    told = []
    for row, label in zip(rows, labels, strict=True):
        ticket = model.predict(row)
        told.append(ticket.prediction)
        model.learn(ticket, label)
    return told


def arrays(count=200, seed=3):
    draw = np.random.default_rng(seed)
    X = np.column_stack([np.ones(count), draw.random((count, 2))])
    y = np.clip(X @ [0.2, 0.5, 0.1] + 0.2 * draw.normal(size=count), 0.0, 1.0)
    member = np.column_stack([draw.random((count, 3)) < 0.5, np.ones(count)]).astype(float)
    return X, y, member, ["a", "b", "c", "always_on"]


def inside(model) -> Any:
    return model._reduction.divided


# What groups are told.


def test_every_group_is_advised_as_if_its_learners_were_alone():
    X, y, member, names = arrays()
    lists: dict[str, list[Any]] = {
        "a": [Ridge(10.0)],
        "b": [Ridge(1.0, forward=True), Mean(), Ridge(3.0)],
        "c": [Mean()],
        "always_on": [Ridge(0.5), Ridge(2.0)],
    }
    whole: Any = gw.replay(X, y, member, learner=lists, names=names)
    entries = np.argwhere(member > 0.0)
    for column, name in enumerate(names):
        own = lists[name]
        alone: Any = gw.replay(X, y, member[:, [column]], learner=own, names=[name])
        said = whole.advice[entries[:, 1] == column]
        np.testing.assert_array_equal(said[:, : len(own)], alone.advice.reshape(-1, len(own)))
        weights = whole.weights[entries[:, 1] == column]
        assert (weights[:, : len(own)] > 0.0).all()
        assert (weights[:, len(own) :] == 0.0).all()
    sums = np.bincount(entries[:, 0], whole.weights.sum(axis=1))
    assert np.abs(sums - 1.0).max() < 1e-12


def test_a_name_goes_before_a_declaration_and_all_others_are_the_dots():
    keys: dict[Any, Any] = {
        gw.by("a"): Ridge(2.0),
        ...: Ridge(4.0),
        "a=x": [Ridge(3.0), Ridge(5.0)],
    }
    model = gw.Groupwise([gw.by("a"), gw.by("b")], learner=keys)
    for t in range(4):
        model.learn_one({"a": "xy"[t % 2], "b": t % 2, "u": 0.5}, 0.5)
    found = {
        name: [one.penalty for one in model._reduction.learners_of(g)]
        for g, name in enumerate(model.group_names)
    }
    named = {"a=x": [3.0, 5.0], "a=y": [2.0]}
    assert found == named | {name: [4.0] for name in ("b=0", "b=1", "always_on")}


@pytest.mark.parametrize("aggregator", [Specialists(), AdaNormalHedge()])
def test_weights_and_masses_are_those_of_the_formula(aggregator):
    X, y, member, names = arrays(80)
    lists = {"a": Ridge(10.0), "b": [Ridge(1.0), Ridge(3.0), Ridge(9.0)], ...: [Ridge(2.0), Mean()]}
    prior = [1.0, 2.0, 0.5, 4.0]
    out: Any = gw.replay(
        X, y, member, learner=lists, names=names, aggregator=aggregator, prior=prior
    )
    sizes = [1, 3, 2, 2]
    regret: dict[Any, float] = {}
    absolute: dict[Any, float] = {}
    entry = 0
    for t in range(len(y)):
        awake = np.flatnonzero(member[t])
        said, odds = out.advice[entry : entry + len(awake)], out.weights[entry : entry + len(awake)]
        entry += len(awake)
        experts = [(g, k) for g in awake for k in range(sizes[g])]
        raw = {}
        for g, k in experts:
            R, C = regret.get((g, k), 0.0), absolute.get((g, k), 0.0)
            if isinstance(aggregator, Specialists):
                weight = math.exp(2.0 * R)
            else:
                phi = [math.exp(max(R + s, 0.0) ** 2 / (3.0 * (C + 1.0))) for s in (1, -1)]
                weight = (phi[0] - phi[1]) / 2.0
            raw[g, k] = prior[g] / sizes[g] * weight
        total = sum(raw.values())
        if total == 0.0:
            raw = {(g, k): prior[g] / sizes[g] for g, k in experts}
            total = sum(raw.values())
        place = {g: i for i, g in enumerate(awake)}
        for g, k in experts:
            assert odds[place[g], k] == pytest.approx(raw[g, k] / total, rel=1e-9)
            loss = (said[place[g], k] - y[t]) ** 2
            r = (out.prediction[t] - y[t]) ** 2 - loss
            regret[g, k] = regret.get((g, k), 0.0) + r
            absolute[g, k] = absolute.get((g, k), 0.0) + abs(r)


def test_groups_lean_to_an_always_on_group_that_has_other_learners():
    rows, labels = stream()
    light, held = Ridge(0.5), Ridge(10.0, everybody="only")
    both = Ridge(4.0, everybody=True)
    same = gw.Groupwise([SEX], learner=[light, held, both], aggregator=AdaNormalHedge())
    apart = gw.Groupwise(
        [SEX],
        learner={"always_on": [light, Mean(), both], SEX: [both, held]},
        aggregator=AdaNormalHedge(),
    )
    for row, label in zip(rows, labels, strict=True):
        one, other = same.predict(row), apart.predict(row)
        # light, held, plain and leaning of both; and in the other model both's two, then held
        np.testing.assert_array_equal(one.advice[0, [2, 3, 1]], other.advice[0, :3])
        np.testing.assert_array_equal(one.advice[1, [0, 2, 3]], other.advice[1, [0, 2, 3]])
        same.learn(one, label)
        apart.learn(other, label)


def test_learners_are_copied_for_their_own_groups_alone():
    rows, labels = stream()
    model = gw.Groupwise([SEX, REGION], learner={"sex=f": [Ridge(), Mean()], ...: Ridge()})
    Mean.copies = 0
    looped(model, rows, labels)
    assert Mean.copies == sum(row["sex"] == "f" for row in rows)  # one per update, no other
    crew = inside(model).crew
    number = model.group_names.index("sex=f")
    made = [set(np.flatnonzero(one.banks[0].store.block >= 0)) for one in crew.divisions]
    assert made[0] == {number}
    assert number not in made[1]


# One way through a stream is as good as another.


def ways(learner, **options):
    rows, labels = stream()
    model = gw.Groupwise([SEX, REGION], learner=learner, **options)
    whole, chunked, alone = (copy.deepcopy(model) for _ in range(3))
    told = looped(model, rows, labels)
    frame = frame_of(rows, labels)
    pieces = [frame[:7], frame[7:50], frame[50:]]
    assert whole.replay(frame, "y", jobs=2).prediction.tolist() == told
    assert chunked.replay(pieces, "y", jobs=1).prediction.tolist() == told
    assert alone.replay(frame, "y", jobs=1).prediction.tolist() == told
    tables = [repr(one.regret().rows) for one in (model, whole, chunked, alone)]
    assert len(set(tables)) == 1
    return model, told


@pytest.mark.parametrize("aggregator", [Prod(), Specialists(), AdaNormalHedge()])
def test_loop_and_replay_agree(aggregator):
    model, _ = ways(MIXED, aggregator=aggregator)
    sizes = {"sex=m": 1, "sex=f": 2, "always_on": 2}
    for number, name in enumerate(model.group_names):
        assert model._reduction.experts_of(number) == sizes.get(name, 3)


def test_loop_and_replay_agree_with_learners_in_python():
    ways({**MIXED, "sex=f": [Mean(), Ridge(3.0)]})


def test_loop_and_replay_agree_for_a_function():
    def by_length(group):
        if group.declaration is None:
            return Ridge(2.0)
        return [
            Ridge(float(k + 1)) for k in range(1 + len(group.values[0]) + ord(group.name[-1]) % 3)
        ]

    model, told = ways(by_length)
    assert len({model._reduction.experts_of(g) for g in range(len(model.group_names))}) > 1
    assert len(told) == 120


@pytest.mark.parametrize(
    "options",
    [
        {"loss": gw.losses.Log(), "recalibrate": True},
        {"loss": gw.losses.Log(classes=["low", "mid", "high"])},
        {"loss": gw.losses.Log(), "experts": ["z"]},
    ],
)
def test_probabilities(options, tmp_path):
    rows, labels = stream(150)
    loss = options["loss"]
    if loss.nodes > 1:
        labels = [loss.classes[min(int(3 * row["x"]), 2)] for row in rows]
    learner = {REGION: [Logistic(), Logistic(5.0, 4.0)], ...: Logistic(2.0, keep_rows=5)}
    model = gw.Groupwise([SEX, REGION], learner=learner, **options)
    other = copy.deepcopy(model)
    told = [list(p.values()) if isinstance(p, dict) else p for p in looped(model, rows, labels)]
    found = other.replay(frame_of(rows, labels), "y", jobs=2).prediction.tolist()
    assert found == told
    model.save(tmp_path / "one.gw")
    other.save(tmp_path / "other.gw")
    assert (tmp_path / "one.gw").read_bytes() == (tmp_path / "other.gw").read_bytes()
    again = gw.load(tmp_path / "one.gw")
    assert again.predict_one(rows[0]) == model.predict_one(rows[0])
    for row in again.regret():
        assert row["regret"] <= row["certificate"] + 1e-9


def test_classes_of_rows_that_nobody_is_awake_for():
    loss = gw.losses.Log(classes=["low", "mid", "high"])
    learner = {SEX: [Logistic(), Logistic(bound=12.0)], ...: Logistic()}  # in another order inside
    model = gw.Groupwise([SEX, REGION], learner, loss=loss, always_on=False)
    rows = [{"sex": None, "region": None, "x": 0.5}] * 2
    other = copy.deepcopy(model)
    told = [list(one.values()) for one in looped(model, rows, ["low", "high"])]
    assert other.replay(frame_of(rows, ["low", "high"]), "y").prediction.tolist() == told


def test_groups_are_compared_with_the_class_of_their_own_learners():
    rows, labels = stream(150)
    model = gw.Groupwise(
        [SEX], learner={"sex=m": Logistic(), ...: [Mean(), Ridge()]}, loss=gw.losses.Log()
    )
    looped(model, rows, labels)
    table = model.regret()
    assert "logistic" in table["sex=m"]["comparator"]
    assert table["always_on"]["comparator"] == "the group's own best learner"
    assert "own learners" in table.comparator
    assert "Against the group's own best learner: sex=f, always_on." in str(table)
    own = model._reduction.books.of(model.group_names.index("always_on"))
    assert table["always_on"]["best_loss"] == pytest.approx(own.expert_loss[:2].min())


def test_late_labels():
    rows, labels = stream()
    model = gw.Groupwise([SEX, REGION], learner=MIXED)
    same = gw.Groupwise([SEX, REGION], learner=MIXED)
    tickets = [model.predict(row) for row in rows[:60]]
    for number in [*range(59, -1, -2), *range(0, 60, 2)]:
        passed = gw.Ticket.from_json(tickets[number].to_json())
        model.learn(passed, labels[number])
        same.learn(same.predict(rows[number]), labels[number])
    for row, other in zip(model.regret(), same.regret(), strict=True):
        assert row["regret"] <= row["certificate"]
        assert row["best_loss"] == other["best_loss"]


# Certificates.


@pytest.mark.parametrize("aggregator", [Prod(), Specialists(), AdaNormalHedge()])
def test_certificates_hold_at_every_label_of_an_adversary(aggregator):
    model = gw.Groupwise([SEX, REGION], learner=MIXED, aggregator=aggregator)
    rows, _ = stream(90, seed=5)
    past: dict[str, list[Any]] = {}
    for row in rows:
        ticket = model.predict(row)
        label = 0.0 if ticket.prediction > 0.5 else 1.0
        for name in ticket.groups:
            past.setdefault(name, []).append((row, label, (ticket.prediction - label) ** 2))
        model.learn(ticket, label)
        table = model.regret()
        assert len(table) == len(past)
        for name, rounds in past.items():
            lost = sum(loss for *_, loss in rounds)
            shown = table[name]
            assert shown["status"] in ("proved", "loose", "vacuous")
            assert shown["loss"] == pytest.approx(lost)
            assert shown["regret"] <= shown["certificate"]
            assert shown["certificate"] <= shown["a_priori"] + 1e-9
    names = model.feature_names
    for name, rounds in past.items():  # the best linear model, by least squares
        X = np.array([[_cell(row, feature) for feature in names] for row, *_ in rounds])
        labels = np.array([label for _, label, _ in rounds])
        best = labels - X @ np.linalg.lstsq(X, labels, rcond=None)[0]
        assert table[name]["best_loss"] == pytest.approx(best @ best, abs=1e-8)


def _cell(row, feature):
    if feature in row:
        return row[feature]
    column, _, value = feature.partition("=")
    return float(row[column] == value) if value else 1.0


def test_the_learner_term_is_of_the_groups_own_learners():
    """A learner that would do best on a group counts for nothing where it is another's."""

    class Right:
        def advise(self, row, weight):
            return float(row.mapping()["x"])

        def update(self, row, label, weight):
            pass

    rows, _ = stream()
    model = gw.Groupwise([SEX], learner={"sex=m": Right(), ...: Mean()}, indicators=False)
    looped(model, rows, [row["x"] for row in rows])
    books = {name: model._reduction.books.of(k) for k, name in enumerate(model.group_names)}
    table = model.regret()
    assert table["sex=m"]["learner"] == pytest.approx(0.0, abs=1e-9)
    for name in ("sex=f", "always_on"):
        assert table[name]["learner"] == pytest.approx(
            float(books[name].expert_loss[0]) - table[name]["best_loss"]
        )
        assert table[name]["learner"] > 1.0


def test_actions(tmp_path):
    edges = gw.oracles.Finite(np.eye(3))
    learner = {"sex=m": FTPL(edges, 3.0), ...: [FTPL(edges, 3.0), FTPL(edges, 2.6)]}
    model = gw.Groupwise([SEX], learner=learner, loss=gw.losses.Linear(0.0, 1.0))
    draw = np.random.default_rng(0)
    rows = [{"sex": str(draw.choice(["m", "f"]))} for _ in range(80)]
    costs = draw.random((80, 3)) * [1.0, 0.6, 0.9]
    looped(model, rows[:50], costs[:50])
    model.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    for one, other in zip(
        looped(model, rows[50:], costs[50:]), looped(again, rows[50:], costs[50:]), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    for row in again.regret():
        own = np.array(
            [
                c
                for r, c in zip(rows, costs, strict=True)
                if row["group"] in (f"sex={r['sex']}", "always_on")
            ]
        )
        assert row["best_loss"] == pytest.approx(own.sum(axis=0).min())
        assert row["status"] in ("in expectation", "in expectation, sampled", "vacuous")
    with pytest.raises(ConfigurationError, match="same learners"):
        again.best_elsewhere("sex=m", "sex=f")


# Files.


def test_a_mapping_is_in_the_file(tmp_path):
    rows, labels = stream()
    model = gw.Groupwise([SEX, REGION], learner=MIXED, intersections=2)
    looped(model, rows[:30], labels[:30])
    model.predict_one({**rows[0], "region": "never seen"})
    model.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    assert looped(again, rows[30:], labels[30:]) == looped(model, rows[30:], labels[30:])
    assert repr(again.regret().rows) == repr(model.regret().rows)
    model.save(tmp_path / "model.gw")
    again.save(tmp_path / "again.gw")
    assert (tmp_path / "model.gw").read_bytes() == (tmp_path / "again.gw").read_bytes()
    with pytest.raises(ConfigurationError, match="holds all of its learners"):
        gw.load(tmp_path / "model.gw", learner=Ridge())


def chosen(group: NamedGroup) -> Any:
    if group.name == "region=e":
        return [Ridge(7.0), Ridge(8.0), Ridge(9.0), Ridge(10.0)]
    return Ridge(2.0) if group.declaration == SEX else [Ridge(1.0), Ridge(3.0)]


def test_of_a_function_the_answers_are_in_the_file(tmp_path):
    rows, labels = stream()
    early = [t for t, row in enumerate(rows) if row["region"] != "e"][:40]
    late = [t for t, row in enumerate(rows) if row["region"] == "e"][:20]
    model, asked = (gw.Groupwise([SEX, REGION], learner=chosen) for _ in range(2))
    for t in early:
        asked.predict_one({**rows[t], "region": "e"})  # a question leaves no trace
        model.learn_one(rows[t], labels[t])
        asked.learn_one(rows[t], labels[t])
    asked._key = model._key
    model.save(tmp_path / "model.gw")
    asked.save(tmp_path / "asked.gw")
    assert (tmp_path / "model.gw").read_bytes() == (tmp_path / "asked.gw").read_bytes()
    alone, whole = (
        gw.load(tmp_path / "model.gw"),
        gw.load(tmp_path / "model.gw", learner=chosen),
    )
    assert looped(alone, [rows[t] for t in early], [labels[t] for t in early])
    with pytest.raises(ConfigurationError, match=r"'region=e' is new.*learner=function"):
        alone.predict(rows[late[0]])
    some = [rows[t] for t in late], [labels[t] for t in late]
    assert looped(whole, *some) == looped(model, *some) == looped(asked, *some)
    assert repr(whole.regret().rows) == repr(asked.regret().rows)


def test_learners_in_python_are_not_in_files(tmp_path):
    model = gw.Groupwise([SEX], learner={"sex=m": Mean(), ...: Ridge()})
    with pytest.raises(SnapshotError, match="Mean"):
        model.save(tmp_path / "model.gw")


@pytest.mark.parametrize("number", [-1, 3, 1 << 40])
def test_files_with_wrong_rosters_are_damaged(number, tmp_path):
    rows, labels = stream(20)
    model = gw.Groupwise([SEX, REGION], learner=MIXED)
    looped(model, rows, labels)
    header, held = model.contents()
    held["rosters.number"][0] = number
    gw.archive.write(tmp_path / "model.gw", header, held)
    with pytest.raises(SnapshotError, match="damaged"):
        gw.load(tmp_path / "model.gw")


# What is refused.


@pytest.mark.parametrize(
    ("learner", "said"),
    [
        ({"sex:m": Ridge()}, "'sex:m'. is of no group"),
        ({"age=3": Ridge()}, "is of no group"),
        ({gw.by("age"): Ridge()}, "not among the declarations"),
        ({SEX: None}, "is None"),
        ({SEX: []}, "no learner in it"),
        ({}, "no learner in it"),
        ({SEX: "ridge"}, r"give gw\.learners\.Ridge\(\)"),
        ({3: Ridge()}, "keys are names"),
        ({"sex=m": FTPL(gw.oracles.Finite(np.eye(2)), cost_norm=1.0)}, "actions|Linear"),
        ({"always_on": Mean(), SEX: Ridge(everybody="only")}, "no ridge learner"),
        ({"always_on": Ridge(2.0), SEX: Ridge(everybody=True)}, "no such learner"),
        ({"always_on": Mean()}, "no ridge learner"),
        (lambda group: None, "gave None for the group 'always_on'"),
        (lambda group: [Ridge(), 3], "must return a learner"),
    ],
)
def test_what_is_refused(learner, said):
    with pytest.raises(ConfigurationError, match=said):
        gw.Groupwise([SEX], learner=learner)


def test_three_classes_need_learners_that_tell_them_apart():
    loss = gw.losses.Log(classes=["a", "b", "c"])
    with pytest.raises(ConfigurationError, match="cannot tell 3 classes"):
        gw.Groupwise([SEX], learner={"sex=m": Ridge()}, loss=loss)


def test_an_answer_that_is_refused_leaves_the_model_as_it_was():
    rows, labels = stream(40)

    def moody(group):
        if group.name == "region=s":
            return FTPL(gw.oracles.Finite(np.eye(2)), cost_norm=1.0)
        return 7 if group.name == "region=e" else Ridge()

    model = gw.Groupwise([SEX, REGION], learner=moody)
    calm = [t for t, row in enumerate(rows) if row["region"] == "n"]
    looped(model, [rows[t] for t in calm], [labels[t] for t in calm])
    before = repr(model.regret().rows)
    for region in "se":
        with pytest.raises(GroupwiseError):
            model.learn_one({**rows[0], "region": region}, 0.5)
        with pytest.raises(GroupwiseError):
            model.replay(frame_of([{**rows[0], "region": region}], [0.5]), "y")
    assert repr(model.regret().rows) == before
    model.learn_one(rows[0], labels[0])


def test_columns_of_arrays_have_names():
    X, y, member, names = arrays(30)
    with pytest.raises(ConfigurationError, match="is of no group"):
        gw.replay(X, y, member, learner={"d": Ridge()}, names=names)
    seen = []

    def asking(group):
        seen.append(group)
        return Ridge()

    gw.replay(X, y, member, learner=asking, names=names)
    assert set(seen) == {NamedGroup(name) for name in names}


def test_foreign_models_serve_one_group():
    sklearn = pytest.importorskip("sklearn.linear_model")
    rows, labels = stream(30)
    foreign = Foreign(sklearn.SGDRegressor(random_state=0))
    learner = {"sex=m": [Ridge(), foreign], ...: Ridge()}
    model = gw.Groupwise([SEX], learner=learner, features=["x", "z"])
    looped(model, rows, labels)
    (own,) = (x for team in inside(model).teams for x in team.others)
    assert {group for group, _, _ in own.learners} == {model.group_names.index("sex=m")}


class Always:
    """A learner that always says the same."""

    def __init__(self, said):
        self.said = said

    def advise(self, row, weight):
        return self.said

    def update(self, row, label, weight):
        pass


@pytest.mark.parametrize("options", [{}, {"aggregator": AdaNormalHedge(), "play": "sample"}])
def test_books_have_what_was_issued_also_where_the_function_changes_its_mind(options):
    asked = []

    def fickle(group):
        asked.append(group)
        return [Always(float(len(asked) % 2)), Always(0.25)][: 1 + len(asked) % 3]

    model = gw.Groupwise([gw.by("i")], learner=fickle, always_on=False, **options)
    lost = {}
    for i in range(12):
        ticket = model.predict({"i": str(i), "x": 0.5})
        label = float(ticket.prediction < 0.5)
        if i % 3 == 0:
            ticket = gw.Ticket.from_json(ticket.to_json())
        model.learn(ticket, label)
        lost[f"i={i}"] = (ticket.prediction - label) ** 2
    assert len(asked) == 24
    for row in model.regret():
        assert row["realised_loss"] == lost[row["group"]]
        assert row["regret"] <= row["certificate"]
