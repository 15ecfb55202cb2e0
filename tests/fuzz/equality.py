"""Every way through the same stream gives the same numbers and the same file, bit for bit.

    python -m tests.fuzz.equality --seconds 600 --seed 1 --jobs 2

The loop is compared with replays of whole frames and of pieces, with one thread and with two, with
loops and replays in turn, through files, pickles and copies, and with questions in between: text
whose levels appear, rows that nobody is awake for, columns that come in mid-stream, features up to
1e40. Replays in segments are compared with each other. Where labels come late or in part, or where
actions are played, loops are compared with loops.
"""

import copy
import io
import json
import math
import pickle
import tempfile
import zipfile
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow

import groupwise as gw
from tests.fuzz import draws
from tests.fuzz.runner import main

LIMITS = (-40, 40)
SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
FRAMES: list[Any] = [polars.DataFrame, pandas.DataFrame, pyarrow.table]
TARGET, DATE = "y", "when"


def part(rows, start, stop):
    """Some rows of {field: values}."""
    return {name: values[start:stop] for name, values in rows.items()}


def dicts(rows):
    """{field: values} as rows."""
    return [dict(zip(rows, one, strict=True)) for one in zip(*rows.values(), strict=True)]


def fields(draw, rows, known, levels, kind):
    """Columns of a chunk: those known already go on in kind, others may be new."""
    found: dict[str, list[Any]] = {}
    for name in ("a", "b"):
        absent = draws.choose(draw, [0.0, 0.0, 0.4])
        newest = 1 + np.arange(rows) * levels // rows
        column = [f"v{int(k)}" for k in draw.integers(0, newest)]
        found[name] = [None if draw.random() < absent else value for value in column]
    found["w"] = np.where(draw.random(rows) < 0.3, 0.0, draw.random(rows)).tolist()
    found["c"] = draw.uniform(0, 10, rows).tolist()
    found[DATE] = draws.dates(draw, rows, kind)
    for name in known:
        kinds = name.rstrip("0123456789")
        make = getattr(draws, kinds, draws.calm) if kinds not in draws.NEED_OTHERS else draws.calm
        about = {"low": LIMITS[0], "high": LIMITS[1]} if kinds == "scaled" else {}
        found[name] = make(draw, rows, [], **about).tolist()
    return found


class Stream:
    """Chunks of rows with labels; later chunks may have more columns."""

    def __init__(self, draw):
        width = draws.choose(draw, [1, 2, 4, 30], [4, 4, 4, 0.5])
        known = list(draws.columns(draw, 2, width, LIMITS))
        levels = draws.choose(draw, [2, 4, 15])
        kind = draws.choose(draw, draws.DATES)
        self.chunks = []
        for _ in range(draws.choose(draw, [1, 2, 4], [3, 3, 1])):
            rows = int(draws.choose(draw, [1, 7, 40, 150], [2, 8, 5, 0.3]))
            chunk = fields(draw, rows, known, levels, kind)
            chunk[TARGET] = draw.random(rows).tolist()
            self.chunks.append(chunk)
            if draw.random() < 0.5:
                known = [*known, f"calm{len(known)}"]
        self.numbers = known

    def pieces(self, draw):
        """The chunks, cut further."""
        for chunk in self.chunks:
            rows, start = len(chunk[TARGET]), 0
            while start < rows:
                stop = int(draw.integers(start + 1, rows + 1)) if draw.random() < 0.6 else rows
                yield part(chunk, start, stop)
                start = stop


def model_for(draw, stream, recently=True):
    """A model that the stream fits."""
    loss = draws.choose(
        draw,
        [
            gw.losses.Square(),
            gw.losses.Absolute(),
            gw.losses.Log(0.01),
            gw.losses.Log(),
            gw.losses.Log(classes=["no", "yes"]),
            gw.losses.Log(classes=["red", "green", "blue"]),
        ],
        [4, 1, 1, 2, 1, 1],
    )
    if loss.classes is not None:
        for chunk in stream.chunks:
            count = len(loss.classes)
            chunk[TARGET] = [loss.classes[int(count * label)] for label in chunk[TARGET]]
    one = draws.logistic if isinstance(loss, gw.losses.Log) and draw.random() < 0.8 else draws.ridge
    first = [name for name in stream.numbers if name in stream.chunks[0]]
    declared: Any = None
    if draw.random() < 0.4:
        declared = first if draw.random() < 0.5 else dict.fromkeys(first, (0.0, 10.0))
    makers = draws.makers(draw, ["a", "b"], first, DATE, 0.6) if loss.nodes == 1 else []
    if declared is None and all(one.kind != "calendar" for one in makers):
        for chunk in stream.chunks:  # dates are read by makers alone
            del chunk[DATE]
    if makers:
        named = declared if isinstance(declared, list) else [declared] if declared else []
        declared = [*named, *makers]
    groups = [gw.by("a"), gw.by("b"), gw.weight("w"), gw.cut("c", [3, 6]), gw.where("c", ">", 9.0)]
    crossed = draw.random() < 0.2
    groups += [] if crossed else [gw.by("a") & gw.by("b"), ~gw.where("a", "==", "v0")]
    chosen = [one for one in groups if draw.random() < 0.4]
    fields_made = [name for one in makers for name in one.fields if one.kind == "calendar"]
    chosen += [gw.by(name) for name in fields_made if draw.random() < 0.3]
    options: dict[str, Any] = {
        "learner": draws.learners(draw, one) if draw.random() < 0.85 else None,
        "loss": loss,
        "features": declared,
        "indicators": bool(draw.random() < (0.6 if declared is None else 0.3)),
        "always_on": bool(draw.random() < 0.6) or not chosen,
        "intersections": 2 if len(chosen) > 1 and crossed else None,
        "seed": int(draw.integers(100)),
        **draws.aggregation(draw, loss),
    }
    if isinstance(loss, gw.losses.Log) and loss.nodes == 1 and draw.random() < 0.3:
        options["recalibrate"] = draws.choose(draw, [True, gw.Gap(0.1)])
    if loss.nodes > 1:
        options["learner"] = draws.logistic(draw)
    else:
        rows = [len(chunk[TARGET]) for chunk in stream.chunks]
        said = draws.predictions(draw, sum(rows), 0.0, 1.0)
        ends = np.cumsum(rows)[:-1]
        for name, column in said.items():
            for chunk, some in zip(stream.chunks, np.split(column, ends), strict=True):
                chunk[name] = some.tolist()
        options["experts"] = list(said)
    if draw.random() < 0.35:
        kind = draws.logistic if loss.nodes > 1 else one
        options["learner"] = draws.learners_by_group(draw, chosen, options["always_on"], kind)
    if recently:
        options["windows"] = draws.windows(options)
    return gw.Groupwise(chosen, **options, **draws.intercept(draw.random() < 0.6))


def through_file(model):
    """Saved and loaded."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        model.save(Path(folder) / "model.gw")
        assigned = getattr(getattr(model, "model", model), "assignment", None)
        return gw.load(Path(folder) / "model.gw", learner=assigned and assigned.function)


def file_of(model):
    """The bytes of its snapshot."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        model.save(Path(folder) / "model.gw")
        return (Path(folder) / "model.gw").read_bytes()


def disturbed(draw, model, rows, often=0.3):
    """The same model after something that must not matter."""
    if draw.random() >= often:
        return model
    what = draws.choose(draw, ["ask", "copy", "pickle", "file", "undo", "wrong", "table"])
    if what == "copy":
        return copy.deepcopy(model)
    if what == "pickle":
        return pickle.loads(pickle.dumps(model))
    if what == "file":
        try:
            return through_file(model)
        except gw.errors.SnapshotError:  # parts in Python
            return model
    if what == "table":
        model.regret()
        return model
    row = draws.choose(draw, rows)
    if what == "ask":
        model.predict_one({**row, "a": f"v{draw.integers(40)}"})
        model.predict_one({**row, "never": 1.0} if draw.random() < 0.5 else row)
    elif what == "undo" and hasattr(model, "all_or_nothing"):
        with suppress(KeyError, gw.errors.LabelError), model.all_or_nothing():
            model.learn_one(row, 0.0)
            raise KeyError
    else:
        with suppress(gw.GroupwiseError):
            model.predict_one({**row, "w": 7.0, "c": math.inf})
    return model


def loop(model, pieces, disturb=None):
    """Round by round."""
    told = []
    for piece in pieces:
        rows = dicts(without_labels(piece))
        for row, label in zip(rows, piece[TARGET], strict=True):
            model = model if disturb is None else disturb(model, rows)
            ticket = model.predict(row)
            told.append(shown(ticket.prediction))
            model.learn(ticket, label)
    return model, told


def shown(prediction):
    """A prediction as replays give it."""
    return list(prediction.values()) if isinstance(prediction, dict) else prediction


def replayed(model, pieces, frame, jobs, together, **about):
    """By replays: of all pieces in one call, or one after another."""
    frames = [frame(piece) for piece in pieces]
    if together:
        return model, model.replay(frames, TARGET, jobs=jobs, **about).prediction.tolist()
    return model, [
        p for one in frames for p in model.replay(one, TARGET, jobs=jobs).prediction.tolist()
    ]


def mixed(draw, model, pieces):
    """Loops and replays in turn, with disturbances in between."""
    told: list[float] = []
    for piece in pieces:
        rows = dicts(without_labels(piece))
        model = disturbed(draw, model, rows, 0.7)
        if draw.random() < 0.5:
            model, some = loop(model, [piece])
        else:
            model, some = replayed(
                model, [piece], draws.choose(draw, FRAMES), int(draw.integers(1, 3)), False
            )
        told += some
    return model, told


def frames_case(draw, found):
    """Loop and replays."""
    stream = Stream(draw)
    fresh = model_for(draw, stream)
    makers = [one for one in fresh.features or () if not isinstance(one, str)]
    found.about = f"{fresh.learners}; {fresh.aggregator}; {makers}; {stream.numbers[:8]}"
    first = Outcome(*loop(copy.deepcopy(fresh), stream.chunks))
    frame = draws.choose(draw, FRAMES)
    ways = {
        "disturbed loop": lambda m: loop(
            m, stream.chunks, lambda now, rows: disturbed(draw, now, rows, 0.1)
        ),
        "replay": lambda m: replayed(m, stream.chunks, frame, 1, True),
        "replay of pieces, two jobs": lambda m: replayed(
            m, list(stream.pieces(draw)), frame, 2, bool(draw.random() < 0.5)
        ),
        "mixed": lambda m: mixed(draw, m, stream.pieces(draw)),
    }
    for name, way in ways.items():
        compare(found, name, first, Outcome(*way(copy.deepcopy(fresh))))
    segment = draws.segment(draw, len(first.told), 0.2)
    if segment:
        segments_case(draw, found, fresh, stream, frame, segment)


def segments_case(draw, found, fresh, stream, frame, segment):
    """In segments: whatever the frames are that bring the rows, and how many threads there are."""
    about = {"segment": segment, "aggregators_at": draws.choose(draw, ["stream", "segment"])}
    try:
        one = Outcome(*replayed(copy.deepcopy(fresh), stream.chunks, frame, 1, True, **about))
    except gw.errors.ConfigurationError:
        found.count("segments refused")
        return
    pieces = list(stream.pieces(draw))
    twin = disturbed(draw, copy.deepcopy(fresh), dicts(without_labels(stream.chunks[0])))
    other = replayed(twin, pieces, draws.choose(draw, FRAMES), 2, True, **about)
    compare(found, f"segments of {segment}", one, Outcome(*other))
    found.count("in segments")


def without_labels(rows):
    """{field: values} but for the label."""
    return {name: values for name, values in rows.items() if name != TARGET}


class Outcome:
    """A model, what it has predicted, its file and its table; both are made once."""

    def __init__(self, model, told):
        self.model, self.told = model, told

    @cached_property
    def file(self):
        """The bytes of its snapshot, or None where parts are in Python."""
        try:
            return file_of(self.model)
        except gw.errors.SnapshotError:
            return None

    @cached_property
    def keeps_rows(self):
        """May it have rows that only a replay has?"""
        return any(isinstance(one, gw.learners.Logistic) for one in learners_of(self.model))

    @cached_property
    def table(self):
        """The lines of the regret table, as text.

        Without rows that only a replay has, where a model keeps some: that of the file. Where there
        is none, what they tell of the best is left out, and what is made of that.
        """
        model = self.model
        if not self.keeps_rows:
            recent = [1, 5, 20] if getattr(model, "windows", None) else []
            tables = [model.regret(), *(model.regret(last=length) for length in recent)]
            return repr([row for one in tables for row in one])
        if self.file is not None:
            return repr(through_file(model).regret().rows)
        kept = ("group", "rounds", "loss", "realised_loss", "delay")
        return repr([{key: line[key] for key in kept} for line in model.regret()])


def compare(found, name, one, other):
    """Two models that have seen the same, and what they predicted.

    Tables that are made from files need no look where the files are the same.
    """
    found.count("comparisons")
    differing = [
        t for t, (p, q) in enumerate(zip(one.told, other.told, strict=True)) if not same(p, q)
    ]
    text = f"{len(differing)} of {len(one.told)} predictions, from {differing[:1]} on"
    found.require(not differing, f"predictions, {name}", text, found.about)
    alike = one.file == other.file
    if not (one.keeps_rows and one.file is not None and alike):
        found.require(one.table == other.table, f"regret, {name}", found.about)
    if one.file is None or other.file is None:
        found.count("cannot be saved")
    elif not alike:
        found.require(False, f"snapshot, {name}", difference(one.file, other.file), found.about)


def learners_of(model):
    """The learners of its groups; rosters that no group has are not in files."""
    if not isinstance(model, gw.Groupwise):
        return ()
    divided = model._reduction.divided
    if divided is None:
        return model._reduction.learners
    rosters = np.unique(divided.division[: len(model.group_names)]).tolist()
    return [one for number in rosters for one in divided.rosters[number]]


def difference(one, other):
    """Where two snapshots differ."""
    pages = []
    for data in (one, other):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        header = json.loads(members.pop("groupwise.json"))
        pages.append({**members, **{f"{key} in the header": header[key] for key in header}})
    return ", ".join(
        key for key in pages[0].keys() | pages[1].keys() if pages[0].get(key) != pages[1].get(key)
    )


def same(one, other):
    """Bit for bit; NaN is never the same."""
    return np.array_equal(np.asarray(one), np.asarray(other))


# Loops only.


def tickets_case(draw, found):
    """Labels late, in any order or never; partial feedback; actions."""
    kind = draws.choose(draw, ["numbers", "paying", "actions", "policies", "tasting"])
    count = int(draws.choose(draw, [10, 40, 90], [4, 3, 1]))
    model, rows, labels = MAKERS[kind](draw, count)
    found.about = f"{kind}, {count} rows, {getattr(model, 'model', model).learners}"
    events = order(draw, count)
    one = Outcome(*drive(copy.deepcopy(model), rows, labels, events, None))
    other = Outcome(*drive(copy.deepcopy(model), rows, labels, events, draw))
    compare(found, f"tickets, {kind}", one, other)


def order(draw, count):
    """Predictions in order; labels at once or later, some of them never."""
    late, lost = draws.choose(draw, [0.0, 0.6, 0.95]), draws.choose(draw, [0.0, 0.1])
    events, open_ = [], []
    for t in range(count):
        events.append(("predict", t))
        open_.append(t)
        while open_ and draw.random() >= late:
            place = open_.pop(int(draw.integers(len(open_))))
            events.append(("forget" if draw.random() < lost else "learn", place))
    return events + [("learn", t) for t in draw.permutation(open_).tolist()]


def drive(model, rows, labels, events, draw):
    """Do all that; with ``draw``, disturb the model and send tickets through text."""
    tickets: dict[int, Any] = {}
    told = []
    for what, t in events:
        if draw is not None:
            model = disturbed(draw, model, rows, 0.15)
        if what == "predict":
            tickets[t] = model.predict(rows[t])
            told.append(shown(tickets[t].prediction))
            continue
        ticket = tickets.pop(t)
        if draw is not None and draw.random() < 0.2:
            ticket = gw.Ticket.from_json(ticket.to_json())
        elif draw is not None and draw.random() < 0.1:
            ticket = pickle.loads(pickle.dumps(ticket))
        if what == "forget":
            model.forget(ticket)
        elif ticket.wants_label:
            model.learn(ticket, labels[t])
    return model, told


def numbers(draw, count, recently=True):
    """A model of numbers, and rows."""
    stream = Stream(draw)
    while sum(len(chunk[TARGET]) for chunk in stream.chunks) < count:
        stream = Stream(draw)
    model = model_for(draw, stream, recently)
    labels = [y for chunk in stream.chunks for y in chunk[TARGET]]
    plain = [{k: v for k, v in chunk.items() if k != TARGET} for chunk in stream.chunks]
    return model, [row for one in plain for row in dicts(one)], labels


def paying(draw, count):
    """The same where every label costs."""
    model, rows, labels = numbers(draw, count, recently=False)
    horizon = draws.choose(draw, [None, count, 5 * count])
    return gw.PayForFeedback(model, horizon, bool(draw.random() < 0.5)), rows, labels


def people(draw, count):
    """Rows with two groups and two contexts."""
    names = draw.choice(["v0", "v1", "v2"], count)
    bits = draw.integers(0, 2, (count, 2)).tolist()
    weights = draw.random(count).tolist()
    return [
        {"a": str(a), "w": w, "u": u, "v": v}
        for a, w, (u, v) in zip(names, weights, bits, strict=True)
    ]


def actions(draw, count):
    """Follow the perturbed leader, with costs as labels."""
    size = int(draw.integers(2, 5))
    learner = gw.learners.FTPL(gw.oracles.Finite(np.eye(size)), cost_norm=float(size))
    model = gw.Groupwise(
        [gw.by("a"), gw.weight("w")],
        learner,
        loss=gw.losses.Linear(0, 1),
        seed=int(draw.integers(99)),
    )
    return model, people(draw, count), [row.tolist() for row in draw.random((count, size))]


def policies(draw, count):
    """Contextual follow the perturbed leader, with labels 0 and 1."""
    contexts = [[0, 0], [0, 1], [1, 0], [1, 1]]
    learner = gw.learners.ContextualFTPL(gw.oracles.Stumps(), contexts)
    model = gw.Groupwise(
        [gw.by("a"), gw.weight("w")],
        learner,
        loss=gw.losses.ZeroOne(),
        features=["u", "v"],
        seed=int(draw.integers(99)),
    )
    return model, people(draw, count), draw.integers(0, 2, count).tolist()


def tasting(draw, count):
    """The same where labels are seen for what is accepted."""
    model, rows, labels = policies(draw, count)
    return gw.AppleTasting(model, draws.choose(draw, [None, count])), rows, labels


MAKERS = {
    "numbers": numbers,
    "paying": paying,
    "actions": actions,
    "policies": policies,
    "tasting": tasting,
}


def case(draw, found):
    """One stream."""
    (frames_case if draw.random() < 0.75 else tickets_case)(draw, found)


if __name__ == "__main__":
    main("tests.fuzz.equality")
